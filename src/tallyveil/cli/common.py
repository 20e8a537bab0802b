"""Parts that commands share: consoles, JSON output, progress, errors in one paragraph.

Exit codes: 0 done; 1 the answer is no (a check or verification failed, a budget is spent,
the input was refused); 2 the command line itself was wrong; 130 interrupted; 143 terminated.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Annotated, Any, TypeAlias

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from typer.core import TyperCommand, TyperGroup

import tallyveil as tv
from tallyveil.passwords import hide_passwords
from tallyveil.untrusted import escape_controls


class SafeConsole(Console):
    """A console that shows control characters as escapes.

    Names come from tables, receipts and certificates that somebody else wrote. Lines may be
    broken in what is printed; `one_line` is for names that may not break theirs.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield everything that is shown, piece by piece."""
        for piece in super().render(renderable, options):
            safe = piece.text if piece.control else _escape_lines(piece.text)
            yield piece if safe == piece.text else Segment(safe, piece.style)

    def on_broken_pipe(self) -> None:
        """Stop printing once the reader, such as `head`, has closed the pipe.

        The command goes on: its exit code is the same for every reader.
        """
        self.quiet = True
        _drop(self.file)


def one_line(text: object) -> str:
    """Write text from a file as one line without control characters."""
    return escape_controls(str(text))


def _escape_lines(text: str) -> str:
    """Escape every line, the ends of lines kept."""
    return "\n".join(map(escape_controls, text.split("\n")))


out = SafeConsole(highlight=False, soft_wrap=True, markup=False)
errors = SafeConsole(stderr=True, highlight=False, soft_wrap=True, markup=False)

EXIT_CODES = "Exit codes: 0 done, 1 refused or failed, 2 wrong command line."
NO_LEDGER = "no ledger: other releases of this data are not tracked"

JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON for machines instead of text.")
]


LargeOption: TypeAlias = Annotated[
    bool,
    typer.Option("--large", help="Accept more rows than a file of this size usually has."),
]


def answer(data: Any, text: RenderableType, *, as_json: bool) -> None:
    """Print what a command answers: `data` as JSON for machines, else the text."""
    if as_json:
        print_json(data)
    else:
        out.print(text)


def print_json(data: Any) -> None:
    """Print `data` as JSON, and nothing else, on standard output."""
    _write(json.dumps(data, indent=2, allow_nan=False, default=str) + "\n")


def write_data(text: str) -> None:
    """Print a table on standard output: unchanged for a program, with escapes for a terminal."""
    _write(_escape_lines(text) if sys.stdout.isatty() else text)


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop(sys.stdout)


def _drop(stream: IO[str]) -> None:
    """Discard what is still to be written to `stream`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def refuse_others(context: typer.Context, allowed: Collection[str], mode: str) -> None:
    """Refuse options that do not apply in this mode; --json always applies."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        was_given = source is not None and source.name == "COMMANDLINE"
        if was_given and parameter.name not in (*allowed, "as_json"):
            raise tv.UsageError(f"{spell(parameter)} does not go with {mode}.")


def spell(parameter: Any) -> str:
    """Spell an option or argument as on the command line."""
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    return str(max(parameter.opts, key=len))


NAME_WIDTH = 20
"""Letters of an option that leave room for its help on the same line."""


def example(*commands: str, more: str = "") -> str:
    """Write the end of a help page: examples to copy, where to read more, and the exit codes."""
    shown = "\n".join(f"  {command}" for command in commands)
    lines = (f"Example{'s' if len(commands) > 1 else ''}:\n{shown}", more, EXIT_CODES)
    return "\n".join(filter(None, lines))


class HelpCommand(TyperCommand):
    """A command whose help page lists options under headings, as plain text."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Spell arguments as the page does, in brackets if they may be left out."""
        arguments = (p for p in self.params if p.param_type_name == "argument")
        names = ((p, str(p.metavar or p.name).upper()) for p in arguments)
        return ["[OPTIONS]", *(name if p.required else f"[{name}]" for p, name in names)]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command does."""
        formatter.write_paragraph()
        formatter.write_text(inspect.cleandoc(self.help or ""))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments that have help, then the options of every heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            names, words = parameter.get_help_record(ctx) or ("", "")
            names = re.sub(r"<[^>]+>", (parameter.name or "").upper(), names)
            heading = getattr(parameter, "rich_help_panel", None) or "Options"
            if parameter.param_type_name == "argument":
                heading, names = "Arguments", str(parameter.metavar or parameter.name).upper()
            elif parameter.name == "help" and sections:
                heading = list(sections)[-1]
            if words:
                sections.setdefault(heading, []).append((f"{names:<{NAME_WIDTH}}", words))
        for heading, records in sections.items():
            formatter.write(f"\n{heading}\n")
            with formatter.indentation():
                formatter.write_dl(records, col_max=NAME_WIDTH, col_spacing=1)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples without wrapping their lines."""
        formatter.write(f"\n{self.epilog}\n" if self.epilog else "")


class HelpGroup(TyperGroup):
    """Commands, each with its first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what every command does."""
        commands = self.commands.items()
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_paragraph(item.help)) for name, item in commands])


def _first_paragraph(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split())


HELP_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 92}


LONGEST_ERROR = 4000
"""Letters of an error that are shown: names may come from a file that somebody else wrote."""


def fail(message: str, code: int = 1) -> int:
    """Print what went wrong on standard error, in one paragraph; return the exit code."""
    words = hide_passwords(" ".join(message.split()))
    shown = words if len(words) <= LONGEST_ERROR else f"{words[:LONGEST_ERROR]} ..."
    errors.print("error: ", end="", style="bold red")
    errors.print(shown)
    return code


def note(message: str) -> None:
    """Print a remark on standard error."""
    errors.print("note: ", end="", style="bold yellow")
    errors.print(hide_passwords(" ".join(message.split())))


@contextmanager
def pictures() -> Iterator[None]:
    """Draw pictures with other files: where the plotting library is missing, say so and go on."""
    try:
        yield
    except tv.MissingExtraError as missing:
        note(f"No picture was drawn. {missing}")


@contextmanager
def progress(steps: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on standard error; call the result with the name of each of its steps.

    Shown on a terminal only, and gone when the work is done.
    """
    if not errors.is_terminal:
        yield lambda _: None
        return
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task("starting", total=steps)

        def step(name: str) -> None:
            bar.update(task, description=escape(one_line(name)), advance=1)

        yield step


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Line up columns with spaces: the first to the left, the others to the right."""
    lines = [header, *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in lines)
    return "\n".join("  ".join(cells).rstrip() for cells in aligned)
