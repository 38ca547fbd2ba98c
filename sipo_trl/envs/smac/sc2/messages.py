"""The game's protobuf messages, under any protobuf."""

import ast
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

# Each after those that it builds on.
MODULES = ("common", "data", "debug", "error", "query", "raw", "score", "spatial", "ui", "sc2api")
_SERIALIZED = re.compile(r"serialized_pb=_b\((.*)\)$", re.MULTILINE)


def register_messages() -> None:
    """Makes ``s2clientprotocol``, and with it pysc2, importable in this process.

    The package's modules were generated for a protobuf that is long gone: newer ones refuse them.
    What they describe is still good, so we take the descriptions out of the sources and hand them
    to protobuf ourselves. (Its pure Python mode would accept the modules, and parse some 50 times
    slower.)

    Raises:
        ModuleNotFoundError: if pysc2 is not installed.

    Examples:
        >>> register_messages()
        >>> from s2clientprotocol import sc2api_pb2
        >>> sc2api_pb2.Request(ping=sc2api_pb2.RequestPing()).WhichOneof("request")
        'ping'
    """
    require_pysc2()
    import s2clientprotocol
    from google.protobuf import descriptor_pool
    from google.protobuf.internal import builder

    for short in MODULES:
        name = f"s2clientprotocol.{short}_pb2"
        if name in sys.modules:
            continue
        source = Path(s2clientprotocol.__path__[0], f"{short}_pb2.py").read_text(encoding="utf-8")
        found = _SERIALIZED.search(source)
        if found is None:
            return  # a release with newer modules: these can be imported as they are
        content: str = ast.literal_eval(found[1])
        descriptor = descriptor_pool.Default().AddSerializedFile(content.encode("latin1"))
        module = ModuleType(name)
        builder.BuildMessageAndEnumDescriptors(descriptor, vars(module))
        builder.BuildTopDescriptorsAndMessages(descriptor, name, vars(module))
        sys.modules[name] = module
        setattr(s2clientprotocol, f"{short}_pb2", module)


def require_pysc2() -> None:
    """Says how to install pysc2 where it is missing."""
    for name in ("pysc2", "s2clientprotocol"):
        if find_spec(name) is None:
            raise ModuleNotFoundError(
                f"backend='sc2' needs the package {name}: pip install 'sipo-trl[smac]', or use "
                "backend='embedded', which needs neither it nor the game.",
                name=name,
            )
