"""Write what the package says of itself: public names, type stub, command-line reference.

Run: python docs/generate.py
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import tallyveil as tv
from tallyveil.cli import common
from tallyveil.cli.app import app

ROOT = Path(__file__).parents[1]
HEADINGS = {
    "query": "Queries and mechanisms",
    "loss": "Queries and mechanisms",
    "mechanism": "Queries and mechanisms",
    "closed_form": "Closed forms",
    "proof": "Certify and release",
    "release": "Certify and release",
    "optimize": "Design",
    "preserve": "Preserving distributions",
    "consume": "Consumers",
    "distribution": "Preserving distributions",
    "table": "Tables",
    "evaluate": "Comparing",
    "report": "Reports",
    "errors": "Errors",
}


def api_page() -> str:
    """Every public name under its heading, with the first sentence of its docstring."""
    sections: dict[str, list[str]] = {heading: [] for heading in HEADINGS.values()}
    for module, names in tv._HOMES.items():
        heading = HEADINGS[module.split(".")[1]]
        for name in names:
            summary = (inspect.getdoc(getattr(tv, name)) or "").split("\n\n")[0]
            sections[heading].append(f"- `tv.{name}`: {' '.join(summary.split())}")
    lines = [
        "# Public names",
        "",
        "Written by `python docs/generate.py`; a test keeps it true.",
    ]
    for heading, entries in sections.items():
        if entries:
            lines += ["", f"## {heading}", "", *sorted(entries, key=str.lower)]
    lines += ["", "## Modules", ""]
    for name in sorted(tv._MODULES):
        summary = (inspect.getdoc(getattr(tv, name)) or "").split("\n\n")[0]
        lines.append(f"- `tv.{name}`: {' '.join(summary.split())}")
    return "\n".join(lines) + "\n"


def reference_page() -> str:
    """Directives from which the site builds the full reference out of the docstrings."""
    lines = [
        "# API reference",
        "",
        "Every public name with its whole docstring, as the site builds it; "
        "[the short list](api.md) has one line for each.",
    ]
    for module, names in sorted(tv._HOMES.items()):
        if module != "tallyveil.errors":
            lines += ["", f"## {module}", ""]
            lines += [f"::: {module}.{name}" for name in sorted(names, key=str.lower)]
    for module in sorted({*tv._MODULES.values(), "tallyveil.errors"}):
        lines += ["", f"## {module}", "", f"::: {module}"]
    return "\n".join(lines) + "\n"


def stub() -> str:
    """What type checkers see of the lazily loaded package."""
    homes = [("tallyveil._version", "__version__", "__version__")]
    homes += [(module, name, name) for module, names in tv._HOMES.items() for name in names]
    for name, module in tv._MODULES.items():
        package, _, last = module.rpartition(".")
        homes.append((package, last, name))
    lines = ["# Written by docs/generate.py; a test keeps it in step.", ""]
    lines += [f"from {module} import {name} as {public}" for module, name, public in sorted(homes)]
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
    lines += ["```text", " ".join(usage), "```", ""]
    if arguments:
        lines += ["| Argument | |", "|---|---|"]
        lines += [f"| `{_value(p)}` | {_cell(p.help)} |" for p in arguments]
        lines.append("")
    lines += _options(options)
    examples = [text.strip() for text in (command.epilog or "").split("\n\n")
                if text.strip().startswith("tallyveil ")]  # fmt: skip
    return [*lines, "", "```sh", *examples, "```"]


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


def _text(text: str | None) -> str:
    return " ".join((text or "").split())


def _cell(text: str | None) -> str:
    return _text(text).replace("|", "\\|")


if __name__ == "__main__":
    (ROOT / "docs" / "api.md").write_text(api_page(), encoding="utf-8")
    (ROOT / "docs" / "reference.md").write_text(reference_page(), encoding="utf-8")
    (ROOT / "docs" / "command-line.md").write_text(command_line_page(), encoding="utf-8")
    (ROOT / "src" / "tallyveil" / "__init__.pyi").write_text(stub(), encoding="utf-8")
