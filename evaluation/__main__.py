"""``python -m evaluation COMMAND ...``: metrics of saved archives."""

import sys

from evaluation.command_line import main

if __name__ == "__main__":
    sys.exit(main())
