"""What finished policies leave behind: states, weights and figures, safe on disk.

- :class:`Archive`: a folder of entries that only grows, one entry at a stroke;
- :class:`Entry`: one policy's states, columns, figures and weights, read as they are asked for;
- :class:`ArchiveError`: whatever is wrong with an archive, in a sentence.

On disk an archive is a ``manifest.json``, which lists every file with its size and SHA-256, and per
entry a folder ``entries/0001`` of two memory-mapped TensorDicts, ``states`` and ``policy``, and an
``entry.json``. There is no pickle, and reading an archive runs no code from it.
"""

from sipo_trl.archive.archive import Archive
from sipo_trl.archive.entry import Entry
from sipo_trl.archive.error import ArchiveError

__all__ = ["Archive", "ArchiveError", "Entry"]
