"""The one exception of the archive."""


class ArchiveError(Exception):
    """An archive cannot be read or written; the message names the file, the reason and the remedy.

    Example:
        >>> from sipo_trl.archive import Archive, ArchiveError
        >>> try:
        ...     Archive.open("no/such/folder")
        ... except ArchiveError as error:
        ...     print(str(error).split(": ")[1])
        there is no such folder
    """
