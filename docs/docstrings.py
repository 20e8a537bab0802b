"""Our docstrings as Markdown, for the site.

Sections such as Parameters and Attributes list ``name : meaning`` (types stand in the
signature), which no docstring style of the site's generator reads as we mean it. This turns
each section into a list, and each example into code, before the page is made.
"""

import re
from typing import Any

from griffe import Extension

SECTION = re.compile(
    r"^(Parameters|Attributes)\n-{3,}\n((?:(?!\n\S+\n-{3,}\n).)*?)(?=\n\n|\Z)", re.M | re.S
)
EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.M | re.S)


def as_markdown(text: str) -> str:
    """`text` with every section as a bold heading and a list, and examples as code."""
    text = SECTION.sub(lambda found: f"**{found[1]}**\n\n{_items(found[2])}", text)
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


def _items(body: str) -> str:
    items: list[str] = []
    for line in body.splitlines():
        if line.startswith(" ") and items:
            items[-1] += " " + line.strip()
        elif " : " in line:
            name, meaning = line.split(" : ", 1)
            items.append(f"- `{name.strip()}`: {meaning.strip()}")
        elif line.strip():
            items.append(f"- {line.strip()}")
    return "\n".join(items)


class HouseDocstrings(Extension):
    """Hands every docstring over as Markdown."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        """Called by the site's generator for every object it has read."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
