"""Where the game and its maps are expected."""

import os
from pathlib import Path

from sipo_trl.envs.smac.sc2.messages import require_pysc2


def check_installation(map_name: str) -> Path:
    """The folder of the game, which has all that a map needs.

    Args:
        map_name: the SMAC map that is to be played.

    Raises:
        ModuleNotFoundError: if pysc2 is missing.
        FileNotFoundError: if the game or the map is missing.

    Examples:
        >>> check_installation("2m_vs_1z")  # doctest: +SKIP
        PosixPath('/home/me/StarCraftII')
    """
    require_pysc2()
    folder = Path(os.environ.get("SC2PATH", "~/StarCraftII")).expanduser()
    if not any(folder.glob("Versions/Base*/SC2_x64")):
        raise FileNotFoundError(
            f"There is no StarCraft II in {folder}, where Versions/Base75689/SC2_x64 or the like "
            "is expected: unpack Blizzard's Linux package there or set SC2PATH to where it is, "
            "put SMAC's maps into $SC2PATH/Maps/SMAC_Maps, or use backend='embedded', which runs "
            "without the game."
        )
    file = folder / "Maps" / "SMAC_Maps" / f"{map_name}.SC2Map"
    if not file.is_file():
        raise FileNotFoundError(
            f"The game has no map {file}: put SMAC's maps into that folder, or use "
            "backend='embedded', which runs without them."
        )
    return folder
