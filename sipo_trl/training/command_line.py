"""From a command line to settings: Hydra's composition, with errors that a user can act on."""

import difflib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import hydra
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sipo_trl.archive import ArchiveError
from sipo_trl.training.config import ENVS, MEASURES
from sipo_trl.training.run_folder import RunError

CONF = Path(__file__).parents[2] / "conf"


def launch(program: str, schema: type, main: Callable[[DictConfig], None]) -> None:
    """Composes the settings of a program from its command line and runs it.

    Args:
        program: name of the program and of its file in ``conf/``.
        schema: dataclass of all its settings.
        main: what to run.
    """
    _register(program, schema)
    # The plus is Hydra's way to say that a group has no default; nobody has to know.
    sys.argv[1:] = [re.sub("^env=", "+env=", argument) for argument in sys.argv[1:]]
    try:
        if not any(argument.startswith("-") for argument in sys.argv[1:]):
            _check(program, sys.argv[1:])
    except RunError as error:
        _fail(str(error))

    # Within Hydra, which would print a traceback for any exception that leaves it.
    @hydra.main(version_base="1.3", config_path=str(CONF), config_name=program)
    def run(config: DictConfig) -> None:
        try:
            main(config)
        except (RunError, ArchiveError) as error:
            _fail(str(error))

    run()


def _register(program: str, schema: type) -> None:
    store = ConfigStore.instance()
    store.store(f"{program}_schema", schema)
    for name, env in ENVS.items():
        store.store(name, env, group="schema/env")
    for name, measure in MEASURES.items():
        store.store(name, measure, group="schema/measure")


def _check(program: str, arguments: list[str]) -> None:
    """Composes once beforehand, to explain what Hydra would only report."""
    named = {argument.lstrip("+").split("=")[0] for argument in arguments}
    if not named & {"env", "resume", "extend"}:
        names = "\n".join(f"  +env={path.stem}" for path in sorted((CONF / "env").glob("*.yaml")))
        _fail(f"Choose an environment:\n{names}\n--help explains all the rest.")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        try:
            config = compose(program, arguments)
            if "env" in named:
                OmegaConf.to_object(config)
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            raise RunError(_explain(program, arguments, error)) from error


def _explain(program: str, arguments: list[str], error: Exception) -> str:
    """One sentence for what is wrong, with the closest right name."""
    text = str(error)
    if option := re.search(r"Could not find '(\w+)/(.+?)'", text):
        group, name = option.groups()
        known = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
        return (
            f"There is no {group}={name}.{_closest(name, known)} Choose one of {', '.join(known)}."
        )
    key = re.search(r"full_key: ([\w.]+)", text) or re.search(r"override '\+*([\w.]+)'", text)
    if key and ("not in struct" in text or "Could not override" in text):
        groups = [argument for argument in arguments if re.match(r"^\+?\w+=\w+$", argument)]
        names = _names(program, [argument for argument in groups if argument.startswith("+env")])
        return f"There is no setting {key[1]}.{_closest(key[1], names)} --help lists all settings."
    reason = text.splitlines()[0]
    return f"{key[1]}: {reason}." if key else reason


def _names(program: str, groups: list[str]) -> list[str]:
    """All settings and groups that exist, as they are written on the command line."""

    def walk(node: DictConfig, prefix: str = "") -> list[str]:
        names = []
        for name in map(str, node):
            inner = None if OmegaConf.is_missing(node, name) else node._get_node(name)
            names.append(f"{prefix}{name}")
            if isinstance(inner, DictConfig) and not inner._is_none():
                names += walk(inner, f"{prefix}{name}.")
        return names

    return walk(compose(program, groups))


def _closest(name: str, known: list[str]) -> str:
    match = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" Did you mean {match[0]}?" if match else ""


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"{message}\n")
    raise SystemExit(2)
