"""Our docstrings as Markdown, for the site.

Sections are numpydoc's (a name and its type on one line, the meaning indented below), examples
stand after them without a heading, and a reference is a line of its own. This turns each section
into a list, and each example into code, before the page is made.
"""

import re
from typing import Any

from griffe import Extension

TITLES = "Parameters|Attributes|Returns|Yields|Raises|References"
SECTION = re.compile(
    rf"^({TITLES})\n-{{3,}}\n((?:(?!\n\S+\n-{{3,}}\n).)*?)(?=\n\n|\Z)", re.M | re.S
)
EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.M | re.S)


def as_markdown(text: str) -> str:
    """`text` with every section as a bold heading and a list, and examples as code."""
    text = SECTION.sub(lambda found: f"**{found[1]}**\n\n{_items(found[1], found[2])}", text)
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


def _items(title: str, body: str) -> str:
    items: list[str] = []
    for line in body.splitlines():
        if line.startswith(" ") and items:
            # a type ends where a capital letter begins the meaning
            fresh = line.strip()[0].isupper() and not items[-1].endswith((".", ":"))
            items[-1] += (". " if fresh else " ") + line.strip()
        elif title == "References" and items and not items[-1].endswith("."):
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
