"""From a command line to settings: Hydra's composition, with errors that a user can act on."""

import difflib
import operator
import os
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import NoReturn

import hydra
import torch
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sipo_trl.archive import ArchiveError
from sipo_trl.envs import EnvError
from sipo_trl.envs.config import ENVS
from sipo_trl.training.config import MEASURES, ITRConfig
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
    _compute_with_one_thread()
    # Hydra wants settings in one piece, whereas nobody looks where --multirun stands.
    settings = [_plus(argument) for argument in sys.argv[1:] if re.match(r"~|[^-].*=", argument)]
    flags = [argument for argument in sys.argv[1:] if not re.match(r"~|[^-].*=", argument)]
    sys.argv[1:] = [*settings, *flags]

    # Within Hydra, which would print a traceback for any exception that leaves it.
    @hydra.main(version_base="1.3", config_path=str(CONF), config_name=program)
    def run(config: DictConfig) -> None:
        try:
            _validate(config)
            main(config)
        except (RunError, ArchiveError, EnvError) as error:
            _fail(str(error))
        except KeyboardInterrupt:
            _fail("Stopped at once: resume= goes on from the last checkpoint.")

    try:
        if not any(flag.startswith("-") for flag in flags):
            _check(program, schema, sys.argv[1:])
    except RunError as error:
        _fail(str(error))
    try:
        run()
    except BrokenPipeError:  # as in `--help | head`: nobody reads what is left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _compute_with_one_thread() -> None:
    """Unless the environment says otherwise.

    Threads wait for each other by spinning. Where two runs share two cores, that makes both a
    hundred times slower; alone, tensors of our sizes are no faster with two.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


def _plus(argument: str) -> str:
    """The setting with a plus where Hydra wants one: for what has no default."""
    setting = argument.lstrip("+")
    if setting.startswith("env="):
        return f"+{setting}"
    return f"++{setting}" if setting.startswith("logger.options.") else setting


def _register(program: str, schema: type) -> None:
    OmegaConf.register_new_resolver("over", operator.truediv, replace=True)
    store = ConfigStore.instance()
    store.store(f"{program}_schema", schema)
    for name, env in ENVS.items():
        store.store(name, env, group="schema/env")
    for name, measure in MEASURES.items():
        store.store(name, measure, group="schema/measure")


def _check(program: str, schema: type, arguments: list[str]) -> None:
    """Composes once beforehand, to explain what Hydra would only report."""
    named = set(map(_name, arguments))
    if not named & {"env", "resume", "extend"}:
        names = "\n".join(f"  +env={name}" for name in _options("env"))
        raise RunError(f"Choose an environment:\n{names}\n--help explains all the rest.")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        try:
            compose(program, arguments)
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            raise RunError(_explain(program, arguments, error)) from error
    if named & {"resume", "extend"}:
        changing = {field.name for field in fields(schema)} - {f.name for f in fields(ITRConfig)}
        ignored = named - changing - ({"iterations"} if "extend" in named else set())
        if ignored:
            raise RunError(
                f"A run goes on with its own settings: leave out {', '.join(sorted(ignored))}, "
                "or start a new run."
            )


def _validate(config: DictConfig) -> None:
    """Lets the settings' own classes check them."""
    if OmegaConf.is_missing(config, "env"):  # those of the run that goes on were checked before
        return
    try:
        OmegaConf.to_object(config)
    except (OmegaConfBaseException, ValueError) as error:
        raise RunError(f"{str(error).splitlines()[0].rstrip('.')}.") from error


def _explain(program: str, arguments: list[str], error: Exception) -> str:
    """One sentence for what is wrong, with the closest right name."""
    if isinstance(error, OverrideParseException):
        return (
            f"{error.override} cannot be read as name=value: put quotes around a value with "
            "unusual characters."
        )
    reason = str(error.__cause__ or error)
    text = f"{error}\n{reason}"
    if option := re.search(r"Could not find '(\w+)/(.+?)'", text):
        group, name = option.groups()
        known = _options(group)
        return (
            f"There is no {group}={name}.{_closest(name, known)} Choose one of {', '.join(known)}."
        )
    if several := re.search(r"Ambiguous value for argument '(.+?)'", text):
        return f"{several[1]} is more than one value: add --multirun to run one after the other."
    key = re.search(r"full_key: ([\w.]+)", text)
    if key and "Could not override" in text:
        groups = [argument for argument in arguments if _options(_name(argument))]
        names = _names(program, groups)
        return f"There is no setting {key[1]}.{_closest(key[1], names)} --help lists all settings."
    reason = reason.splitlines()[0].rstrip(".")
    return f"{key[1]}: {reason}." if key else f"{reason}."


def _name(argument: str) -> str:
    return argument.lstrip("+").split("=")[0]


def _options(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


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
