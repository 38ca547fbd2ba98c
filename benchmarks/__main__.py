"""All benchmarks: ``python -m benchmarks [names...]``."""

import sys

from benchmarks.table import main

if __name__ == "__main__":
    sys.exit(main())
