"""Typeset the pages of the documentation while the site is built.

Pages write LaTeX between dollar signs. Markdown leaves it alone (pymdownx.arithmatex), and here it
becomes MathML, which browsers draw themselves: no scripts, nothing fetched, prints well. A display
may break where \\qquad stands, and nothing breaks between a formula and the mark after it, or inside
an option of the command line.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
NAME = re.compile(r"<mo(?: movablelimits=\"true\")?>(Pr|Var|E)</mo>")
"""Names of functions, which the converter takes for operators and sets apart."""

TIGHT = re.compile(r"<mo>(&#x0002F;|&#x0007C;)</mo>")
"""A slash and a bar of an absolute value, which browsers would set apart as well."""

BEFORE_MARK = re.compile(r'(<math xmlns="[^"]*" display="inline">(?:(?!</math>).)*</math>[.,;:)]+)')
CODE = re.compile(r"<code.*?</code>", re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
UNBROKEN = r'<span class="unbroken">{}</span>'

MISREAD = re.compile(r"<m\w+>(\\[^<]*|&|&amp;)</m\w+>|<merror")
"""A command or a column mark that the converter did not know and passed on as text."""


def set_formula(latex: str, *, display: bool) -> str:
    """One formula as MathML; a ValueError if any of it was not understood."""
    written = convert(latex, display="block" if display else "inline")
    if MISREAD.search(written):
        raise ValueError(f"The formula {latex!r} cannot be set.")
    written = NAME.sub(r'<mi mathvariant="normal">\1</mi>', written)
    return TIGHT.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', written)


def on_page_content(content: str, **_: Any) -> str:
    """Set the formulas and the options on a page; mkdocs calls this for each."""

    def replace(found: re.Match[str]) -> str:
        latex = html.unescape(found["latex"]).strip()
        if found["tag"] == "span":
            return set_formula(latex, display=False)
        parts = (set_formula(part, display=True) for part in latex.split(r"\qquad"))
        return f'<div class="formula">{"".join(parts)}</div>'

    content = BEFORE_MARK.sub(UNBROKEN.format(r"\1"), FORMULA.sub(replace, content))
    return CODE.sub(lambda code: OPTION.sub(UNBROKEN.format(r"\g<0>"), code[0]), content)
