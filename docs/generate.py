"""Write what the package says of itself: public names, command-line reference, tolerances.

Run: python docs/generate.py
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import tallyveil as tv
from tallyveil.cli import common
from tallyveil.cli.app import app
from tallyveil.request.request_file import make_schema

ROOT = Path(__file__).parents[1]
STUBS = {"tv": "__init__.pyi", "tv.results": "results.pyi", "tv.papers": "papers/__init__.pyi"}
WIDTH = 80
"""The longest line of code that a page shows without scrolling."""

TITLES = {"tv": "Public names", "tv.results": "Result classes", "tv.papers": "The papers"}


def sections(space: str) -> dict[str, list[tuple[str, str]]]:
    """Home module and name of everything in a stub, under the stub's own headings."""
    found: dict[str, list[tuple[str, str]]] = {}
    heading = TITLES[space]
    stub = ROOT / "src" / "tallyveil" / STUBS[space]
    for line in stub.read_text(encoding="utf-8").splitlines()[1:]:
        words = line.split()
        if words[:1] == ["#"]:
            heading = line.removeprefix("# ")
        elif words[:1] == ["from"] and words[-1] != "__version__":
            found.setdefault(heading, []).append((words[1], words[-1]))
    return found


def api_page() -> str:
    """Every public name under its heading, with the first sentence of its docstring."""
    lines = ["# Public names", "", "Written by `python docs/generate.py`; a test keeps it true."]
    for space in STUBS:
        module = {"tv": tv, "tv.results": tv.results, "tv.papers": tv.papers}[space]
        for heading, names in sections(space).items():
            lines += ["", f"## {heading}", ""]
            for _, name in names:
                summary = (inspect.getdoc(getattr(module, name)) or "").split("\n\n")[0]
                lines.append(f"- `{space}.{name}`: {' '.join(summary.split())}")
    return "\n".join(lines) + "\n"


def reference_page() -> str:
    """Directives from which the site builds the full reference out of the docstrings."""
    lines = [
        "# API reference",
        "",
        "Every public name with its whole docstring, as the site builds it; "
        "[the short list](api.md) has one line for each.",
    ]
    for space in STUBS:
        for heading, names in sections(space).items():
            shown = [(module, name) for module, name in names if module != "tallyveil"]
            lines += ["", f"## {heading}"] if shown else []
            for module, name in shown:
                options = f"{{heading: {space}.{name}, toc_label: {name}}}"
                lines += ["", f"::: {module}.{name}", f"    options: {options}"]
    return "\n".join(lines) + "\n"


def command_line_page() -> str:
    """Every command of the program: usage, arguments, options with defaults, examples."""
    program = typer.main.get_command(app)
    commands = dict(_commands(program))
    lines = [
        "# Command line",
        "",
        "Written by `python docs/generate.py` from the program itself; a test keeps it true. "
        "`tallyveil COMMAND --help` shows the same.",
        "",
        _exit_codes(),
        "",
        "| Command | What it does |",
        "|---|---|",
    ]
    for words, command in commands.items():
        anchor = "-".join(("tallyveil", *words))
        summary = _text(command.help).split(". ")[0].rstrip(".")
        lines.append(f"| [`{' '.join(words)}`](#{anchor}) | {summary} |")
    lines += ["", "## tallyveil", "", _text(program.help), ""]
    lines += _options([option for option in program.params if not option.hidden])
    for words, command in commands.items():
        lines += ["", *_command(words, command)]
    return "\n".join(lines) + "\n"


def tolerances() -> dict[str, tuple[str, str]]:
    """Value and meaning of every module-level constant that holds a small number, by name.

    A number strictly between 0 and 0.01 bounds an error, a gap or a probability; anything
    larger is a size or a count. The meaning is the string or the comment beside the constant.
    What replays the papers is left out: its small numbers are printed results.
    """
    package = ROOT / "src" / "tallyveil"
    found = {}
    for path in sorted(package.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        body = ast.parse(source).body
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        if module.startswith("papers."):
            continue
        for node, after in zip(body, [*body[1:], None], strict=True):
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            name = node.targets[0].id
            if name == name.upper() and any(0 < x < 0.01 for x in _numbers(node.value)):
                note = source.splitlines()[node.end_lineno - 1].partition("  # ")[2]
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                    note = str(after.value.value)
                found[f"{module}.{name}"] = ast.unparse(node.value), _text(note).rstrip(".")
    return found


def _numbers(value: ast.expr) -> list[float]:
    """The numbers in a literal, a power of literals, or a tuple of them; else none."""
    if isinstance(value, ast.Tuple):
        return [x for element in value.elts for x in _numbers(element)]
    plain = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    if not all(isinstance(node, plain) for node in ast.walk(value)):
        return []
    number = eval(ast.unparse(value))
    return [float(number)] if isinstance(number, int | float) else []


def tolerances_page() -> str:
    """The page of tolerances, with its table made anew."""
    page = (ROOT / "docs" / "tolerances.md").read_text(encoding="utf-8")
    lines = ["| Constant | Value | What it bounds |", "|---|---|---|"]
    lines += [
        f"| `{name}` | `{value}` | {_cell(note)} |" for name, (value, note) in tolerances().items()
    ]
    table = "\n".join(lines)
    return re.sub(r"(?s)(?<=<!-- table -->\n\n).*(?=\n\n<!-- end -->)", lambda _: table, page)


def _commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*words, name))
        elif not command.hidden:
            yield (*words, name), command


def _exit_codes() -> str:
    """The paragraph on exit codes where they are defined."""
    paragraphs = (inspect.getdoc(common) or "").split("\n\n")
    return _text(next(text for text in paragraphs if text.startswith("Exit codes")))


def _command(words: tuple[str, ...], command: Any) -> list[str]:
    name = " ".join(("tallyveil", *words))
    shown = [parameter for parameter in command.params if not parameter.hidden]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    options = [p for p in shown if p.param_type_name == "option"]
    usage = [name, *(_value(p) if p.required else f"[{_value(p)}]" for p in arguments)]
    usage += [f"{p.opts[0]} {_value(p)}" for p in options if p.required] + ["[OPTIONS]"]
    lines = [f"## {name}", ""]
    for paragraph in (command.help or "").split("\n\n"):
        lines += [_text(paragraph), ""]
    lines += ["```text", _break_line(" ".join(usage)), "```", ""]
    if arguments:
        lines += ["| Argument | |", "|---|---|"]
        lines += [f"| `{_value(p)}` | {_cell(p.help)} |" for p in arguments]
        lines.append("")
    lines += _options(options)
    examples = [
        text.strip()
        for text in (command.epilog or "").split("\n\n")
        if text.strip().startswith("tallyveil ")
    ]
    return [*lines, "", "```sh", *map(_break_line, examples), "```"]


def _options(options: list[Any]) -> list[str]:
    lines = ["| Option | | Default |", "|---|---|---|"]
    for option in options:
        names = ", ".join(f"`{word}`" for word in (*option.opts, *option.secondary_opts))
        value = "" if option.is_flag else f" `{_value(option)}`"
        told = any(word in option.help for word in ("repeat", "Once", "several"))
        again = " May be given several times." if option.multiple and not told else ""
        lines.append(f"| {names}{value} | {_cell(option.help)}{again} | {_default(option)} |")
    return lines


def _value(parameter: Any) -> str:
    """What stands for the value: an option's own word, an argument's name."""
    option = parameter.param_type_name == "option"
    word = parameter.opts[0].lstrip("-").replace("-", "_") if option else parameter.name
    return parameter.metavar or word.upper()


def _default(option: Any) -> str:
    if option.required:
        return "required"
    if option.is_flag or option.default in (None, (), [], ""):
        return ""
    values = option.default if isinstance(option.default, list | tuple) else [option.default]
    return ", ".join(f"`{value}`" for value in values)


def _break_line(command: str) -> str:
    """A long command over several lines, broken before options, so that pages show all of it."""
    lines = [""]
    for part in re.split(r" (?=--)", command):
        if lines[-1] and len(f"{lines[-1]} {part} \\") > WIDTH:
            lines.append("   ")
        lines[-1] = f"{lines[-1]} {part}" if lines[-1] else part
    return " \\\n".join(lines)


def _text(text: str | None) -> str:
    return " ".join((text or "").split())


def _cell(text: str | None) -> str:
    return _text(text).replace("|", "\\|")


def request_schema() -> str:
    """The JSON schema of request files."""
    return json.dumps(make_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "request.schema.json").write_text(request_schema(), encoding="utf-8")
    (ROOT / "docs" / "api.md").write_text(api_page(), encoding="utf-8")
    (ROOT / "docs" / "reference.md").write_text(reference_page(), encoding="utf-8")
    (ROOT / "docs" / "tolerances.md").write_text(tolerances_page(), encoding="utf-8")
    (ROOT / "docs" / "command-line.md").write_text(command_line_page(), encoding="utf-8")
