"""What mkdocs has to be told about the dialect of our docstrings and pages."""

import re
from typing import Any

from griffe import Extension, Object

ROLE = re.compile(r":(class|func|meth|mod|math):`(~?)([^`]+)`")


class Roles(Extension):
    """Turns roles such as ``:class:``, which TorchRL's docstrings have too, into links."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Links what has a place in the reference; all else becomes plain code."""
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(_link, obj.docstring.value)


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Removes the mark of code that the tests do not run; mkdocs would not take it for code."""
    return markdown.replace("```python no-run\n", "```python\n")


def _link(role: re.Match[str]) -> str:
    kind, short, name = role.groups()
    if kind == "math":
        return f"`{name}`"
    shown = name.rpartition(".")[2] if short else name
    return f'<autoref optional identifier="{name}"><code>{shown}</code></autoref>'
