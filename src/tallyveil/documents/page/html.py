"""The paper our documents are printed on: one self-contained HTML page, no network needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = [
    "figure",
    "list_words",
    "notes",
    "page",
    "paragraph",
    "quote",
    "section",
    "table",
]

STYLE = """
:root { --ink: #22303c; --soft: #5f6f7c; --line: #dfe5e9; --blue: #2f6f9f; --wash: #f5f8fa; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff;
       font: 16px/1.6 "Source Sans 3", "Segoe UI", Helvetica, Arial, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 3.2rem 1.5rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .3rem; font-weight: 600; }
h2 { font-size: 1.25rem; margin: 2.8rem 0 .6rem; font-weight: 600; }
h3 { font-size: 1.02rem; margin: 1.8rem 0 .4rem; font-weight: 600; }
p { margin: .5rem 0; }
.title { color: var(--blue); font-size: 1.15rem; font-weight: 600; margin: 0 0 .2rem;
         overflow-wrap: anywhere; }
.lead { color: var(--soft); margin: 0 0 1.6rem; } .note { color: var(--soft); font-size: .9rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr));
         gap: 1px; background: var(--line); border: 1px solid var(--line);
         border-radius: 8px; overflow: hidden; margin: 1.4rem 0; }
.facts div { background: #fff; padding: .8rem 1rem; }
.facts b { display: block; font-size: 1.35rem; font-weight: 600; color: var(--blue);
           overflow-wrap: anywhere; line-height: 1.3; }
.facts span { color: var(--soft); font-size: .84rem; }
.promise { background: var(--wash); border-left: 4px solid var(--blue); padding: 1rem 1.2rem;
           border-radius: 0 8px 8px 0; font-size: 1.06rem; }
.warning { background: #fdf1e7; border-left: 4px solid #c7762b; padding: .8rem 1.2rem;
           border-radius: 0 8px 8px 0; font-weight: 600; }
figure { margin: 1.2rem 0 1.6rem; break-inside: avoid; }
figure svg { width: 100%; height: auto; display: block; font-family: inherit; }
figure.narrow svg { max-width: 34rem; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; margin: .8rem 0;
        font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--line);
     padding: .35rem .8rem .35rem 0; vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); padding: .35rem .8rem .35rem 0; vertical-align: top; }
td.number, th.number { text-align: right; } td.number { white-space: nowrap; }
table.facts td { overflow-wrap: anywhere; } table.facts td:first-child { min-width: 8rem; }
table.marked td { padding-top: 0; padding-bottom: 0; vertical-align: middle; line-height: 1.35; }
table.marked td:first-child { overflow-wrap: break-word; min-width: 6.5rem; max-width: 16rem; }
table.marked .dots { width: 8.5rem; padding: 0; line-height: 0; font-weight: 400; }
.dots svg { width: 8.5rem; display: block; font-family: inherit; }
tr.absent td { color: var(--soft); font-style: italic; }
blockquote { margin: .8rem 0; padding: .8rem 1.2rem; border: 1px solid var(--line);
             border-radius: 8px; font-size: .95rem; }
tr { break-inside: avoid; }
ul, ol { padding-left: 1.2rem; margin: .4rem 0; } li { margin: .25rem 0; }
code, pre { font: .87em/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }
code { overflow-wrap: anywhere; }
pre { background: var(--wash); padding: .8rem 1rem; border-radius: 8px; overflow-x: auto; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line);
         color: var(--soft); font-size: .87rem; }
.mark { position: sticky; top: 0; z-index: 9; background: #9c2b2b; color: #fff; padding: .25rem;
        text-align: center; font-weight: 600; letter-spacing: .12em; font-size: .85rem;
        -webkit-print-color-adjust: exact; print-color-adjust: exact; }
table.sheet, table.sheet > tbody > tr > td { margin: 0; padding: 0; border: 0; font-size: 1rem; }
table.sheet > thead > tr > th { padding: 0; border: 0; position: sticky; top: 0; z-index: 9; }
table.sheet > tbody > tr { break-inside: auto; }
@media (max-width: 36rem) {  /* a phone: pictures keep a size that can be read, and scroll */
  .facts { grid-template-columns: 1fr 1fr; } h1 { font-size: 1.6rem; }
  main { padding: 1.8rem 1rem 3rem; }
  th, td { padding-right: .5rem; } th:last-child, td:last-child { padding-right: 0; }
  figure { overflow-x: auto; } figure svg { min-width: 34rem; }
  figcaption { position: sticky; left: 0; }
}
@page { margin: 18mm 16mm; }
@media print {
  main { max-width: none; padding: 0; } body { font-size: 10.5pt; }
  .sheet main { padding-top: 4mm; }
  h2, h3 { break-after: avoid; }
  .facts, .promise, pre { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""


def page(title: str, body: str, confidential: bool = False) -> str:
    """A whole HTML document; a confidential one says so at the top of every printed page."""
    if confidential:  # a table's head is the one thing that browsers repeat on every sheet
        mark = '<div class="mark">CONFIDENTIAL: NOT FOR RELEASE</div>'
        open_, close = (
            f'<table class="sheet"><thead><tr><th>{mark}</th></tr></thead><tbody><tr><td><main>',
            "</main></td></tr></tbody></table>",
        )
    else:
        open_, close = "<main>", "</main>"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{open_}\n{body}\n{close}\n</body>\n</html>\n"
    )


def section(title: str, *parts: str, level: int = 2) -> str:
    """A heading and what stands under it."""
    return f"<h{level}>{escape(title)}</h{level}>\n" + "\n".join(parts)


def paragraph(text: str, kind: str = "") -> str:
    """One paragraph of plain text."""
    marked = f' class="{kind}"' if kind else ""
    return f"<p{marked}>{escape(text)}</p>"


def notes(items: Iterable[str], ordered: bool = False) -> str:
    """A list of plain sentences."""
    tag = "ol" if ordered else "ul"
    return f"<{tag}>" + "".join(f"<li>{escape(item)}</li>" for item in items) + f"</{tag}>"


def figure(svg: str, caption: str, narrow: bool = False) -> str:
    """A picture with its caption."""
    kind = ' class="narrow"' if narrow else ""
    return f"<figure{kind}>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def quote(text: str) -> str:
    """A passage that a reader may copy."""
    return f"<blockquote>{escape(text)}</blockquote>"


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[int] = (),
    absent: Sequence[int] = (),
    marks: tuple[str, Sequence[str]] | None = None,
) -> str:
    """A table of plain text; columns in `numbers` are flush right, rows in `absent` are greyed.

    `marks` are pictures for a last column: that of the header and one for every row.
    """

    def cells(values: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=number' if at in numbers else ''}>{escape(value)}</{tag}>"
            for at, value in enumerate(values)
        )

    def picture(tag: str, at: int | None = None) -> str:
        if marks is None:
            return ""
        return f"<{tag} class=dots>{marks[0] if at is None else marks[1][at]}</{tag}>"

    body = "".join(
        f"<tr{' class=absent' if at in absent else ''}>{cells(row, 'td')}{picture('td', at)}</tr>"
        for at, row in enumerate(rows)
    )
    head = f"<thead><tr>{cells(header, 'th')}{picture('th')}</tr></thead>" if header else ""
    kind = ' class="marked"' if marks else "" if header else ' class="facts"'
    return f'<div class="scroll"><table{kind}>{head}<tbody>{body}</tbody></table></div>'


def list_words(names: Sequence[str], most: int = 12) -> str:
    """Names with commas and a last "and"; of many only the first, and how many more there are."""
    shown = [str(name) for name in names[:most]]
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
