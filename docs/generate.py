"""Pages that the site builds from the package itself: API, command line, schema of request files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.structure.files import File, Files
from typer.testing import CliRunner

from tallyveil.cli.app import app
from tallyveil.release.request_file import make_schema

ROOT = Path(__file__).parents[1]
STUBS = {"tv": "__init__.pyi", "tv.results": "results.pyi", "tv.papers": "papers/__init__.pyi"}
TITLES = {"tv": "Public names", "tv.results": "Result classes", "tv.papers": "The papers"}
WIDTH = 100
"""Columns of the help texts."""


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to the site."""
    for name, build in PAGES.items():
        files.append(File.generated(config, name, content=build()))
    return files


def build_reference() -> str:
    """Build directives for every public name, under the headings of the type stubs."""
    lines = ["# API"]
    for space, stub in STUBS.items():
        lines += ["", f"## {TITLES[space]}"]
        source = ROOT / "src" / "tallyveil" / stub
        for line in source.read_text(encoding="utf-8").splitlines()[1:]:
            words = line.split()
            if words[:1] == ["#"]:
                lines += ["", f"## {line.removeprefix('# ')}"]
            elif words[:1] == ["from"] and words[1] != "tallyveil" and words[-1] != "__version__":
                options = f"{{heading: {space}.{words[-1]}, toc_label: {words[-1]}}}"
                lines += ["", f"::: {words[1]}.{words[-1]}", f"    options: {options}"]
    return "\n".join(lines) + "\n"


def list_commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command that is not hidden."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from list_commands(command, (*words, name))
        elif not command.hidden:
            yield (*words, name)


def build_command_line() -> str:
    """Build the page of commands from their help."""
    os.environ.update(COLUMNS=str(WIDTH), TERM="dumb")
    lines = ["# Command line", "", "`tallyveil COMMAND --help` shows the same."]
    for words in [(), *list_commands(typer.main.get_command(app))]:
        shown = CliRunner().invoke(app, [*words, "--help"], prog_name="tallyveil").stdout
        text = "\n".join(line.rstrip() for line in shown.strip("\n").splitlines())
        lines += ["", f"## {' '.join(('tallyveil', *words))}", "", "```text", text, "```"]
    return "\n".join(lines) + "\n"


def build_schema() -> str:
    """Build the JSON schema of request files."""
    return json.dumps(make_schema(), indent=2, ensure_ascii=False) + "\n"


PAGES = {
    "reference.md": build_reference,
    "command-line.md": build_command_line,
    "request.schema.json": build_schema,
}
