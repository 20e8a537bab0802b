"""Flags of a release on the command line: each is a key of a request, the rest is for --set.

Nothing heavy is imported here, so that help pages are quick.
"""

from __future__ import annotations

import difflib
import inspect
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from tallyveil.release.options import ReleaseOptions

__all__ = [
    "FLAGS",
    "Flag",
    "make_options",
    "spell_for_command",
    "spell_message",
    "suggest_flag",
    "takes_flags",
]

BASIC, MICRODATA, PRIVACY, TOTALS, FILES = (
    *("Most releases need only these", "Microdata", "Privacy and method"),
    *("Totals", "Files"),
)
KINDS: Mapping[str, Any] = {"text": str, "many": list[str], "number": float, "whole": int}


class Flag(NamedTuple):
    """A flag: the key of a request that it sets, or the name of a command's own parameter."""

    key: str
    name: str
    kind: str
    metavar: str
    help: str
    panel: str

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return self.name.removeprefix("--").replace("-", "_")


FLAGS = (
    Flag("count", "--count", "many", "COLUMN", "Count column to protect. Repeatable.", BASIC),
    Flag(
        *("keep", "--keep", "many", "COLUMN"),
        "Public column to release unchanged. Repeatable, or 'all'. Other columns are not released.",
        BASIC,
    ),
    Flag(
        *("upper", "--upper", "many", "N"),
        "Largest count to release; larger counts are top-coded. Take it from public knowledge, "
        "never from the data. [default: 1,000,000,000]",
        BASIC,
    ),
    Flag(
        *("epsilon", "--epsilon", "many", "E"),
        "Privacy loss of each count column. Smaller is more private.",
        BASIC,
    ),
    Flag(
        *("hierarchy", "--hierarchy", "text", "COLUMNS"),
        "Also release totals by these columns, coarse to fine, e.g. state,county. Rows add up to "
        "them exactly. Needs --upper.",
        BASIC,
    ),
    Flag(
        *("by", "--by", "many", "COLUMN"),
        "Microdata: count records by this column. Repeatable.",
        BASIC,
    ),
    Flag(
        *("categories", "--categories", "many", "LIST"),
        "Microdata: every category to release, as a file or a,b,c. With several --by columns: "
        "COLUMN=a,b,c. Repeatable.",
        BASIC,
    ),
    Flag("out", "--out", "text", "FOLDER", "Release folder to create.", BASIC),
    Flag(
        "ledger", "--ledger", "text", "FILE", "Ledger to debit: a file or postgresql://...", BASIC
    ),
    Flag("dataset", "--dataset", "text", "NAME", "Dataset to debit in the ledger.", BASIC),
    Flag(
        *("", "--dry-run", "switch", ""),
        "Show cost and expected accuracy. Reads no count, spends nothing.",
        BASIC,
    ),
    Flag(
        *("microdata.where", "--where", "many", "CONDITION"),
        "Count only matching records, e.g. 'age >= 18'. Repeatable.",
        MICRODATA,
    ),
    Flag(
        *("microdata.bins", "--bins", "many", "COLUMN=LIMITS"),
        "Count by ranges of a number, e.g. age=0,18,65. Repeatable.",
        MICRODATA,
    ),
    Flag(
        *("microdata.other", "--other", "text", "NAME"),
        "Category for all values not in --categories.",
        MICRODATA,
    ),
    Flag(
        *("unit.id_column", "--id-column", "text", "COLUMN"),
        "Column that identifies a person; at most --contributions records of each person are "
        "counted, chosen at random. Never released.",
        MICRODATA,
    ),
    Flag(
        *("budget.accuracy", "--within", "number", "K"),
        "Instead of --epsilon: choose it so that released counts are within K of the true counts "
        "with 95% probability.",
        PRIVACY,
    ),
    Flag(
        *("unit.kind", "--unit", "text", "UNIT"),
        "Protect one person or one event. [default: person]",
        PRIVACY,
    ),
    Flag(
        *("unit.contributions", "--contributions", "whole", "N"),
        "Times one person is counted in each column. Multiplies the cost. [default: 1]",
        PRIVACY,
    ),
    Flag(
        *("method", "--method", "text", "METHOD"),
        "preserve (keeps the distribution of counts), geometric (plain noise), fair, design, a "
        "mechanism file, or auto. [default: auto]",
        PRIVACY,
    ),
    Flag(
        *("priority", "--priority", "text", "WHAT"),
        "What matters most to preserve: distribution, balanced, counts, or a number (how much cell "
        "error one unit of distribution error is worth).",
        PRIVACY,
    ),
    Flag(
        *("margins", "--margins", "text", "COLUMNS"),
        "Also release crossing margins, e.g. age+sex,education.",
        TOTALS,
    ),
    Flag(
        *("counts.allow_totals", "--allow-totals", "switch", ""),
        "Accept rows labelled Total; you assert that nobody is counted twice.",
        TOTALS,
    ),
    Flag("source.sheet_name", "--sheet", "text", "NAME", "Sheet of a workbook.", FILES),
    Flag(
        *("source.delimiter", "--delimiter", "text", "CHAR"),
        "Character between cells, or 'tab'.",
        FILES,
    ),
    Flag(
        *("source.na_values", "--missing", "many", "CODE"),
        "Code of a missing count, e.g. '*'. Rows with it are not released; which rows these are "
        "must be public. Repeatable.",
        FILES,
    ),
    Flag(
        *("output.format", "--format", "text", "FORMAT"),
        "csv or parquet. [default: parquet for Parquet files, else csv]",
        FILES,
    ),
    Flag(
        *("", "--save-request", "text", "FILE"),
        "Write these options to a request file for 'tallyveil run'.",
        FILES,
    ),
    Flag(
        *("output.confidential_report", "--confidential-report", "text", "FILE"),
        "Write a comparison with the true counts. Keep it secret.",
        FILES,
    ),
    Flag(
        *("", "--set", "many", "KEY=VALUE"),
        "Any other key of a request file, e.g. about.title='Cases 2026', method.weights=1,4,1. "
        "Repeatable.",
        FILES,
    ),
    Flag("", "--json", "switch", "", "Print JSON.", FILES),
)
"""The flags of `tallyveil privatize`, in the order of its help page."""

METHOD_FLAGS = {"hierarchy": "columns", "margins": "columns", "priority": "priority"}
"""Flags that set a key of a method, which they choose as well."""


def takes_flags(
    names: Collection[str] = (), required: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command flags of a release, all of them or those in `names`.

    The command gets the keys that were typed as the dict `request`, and what follows --set as
    `settings`.
    """
    offered = [flag for flag in FLAGS if not names or flag.name in names]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**given: Any) -> None:
            keys = {flag.key: given.pop(flag.parameter) for flag in offered if flag.key}
            settings = given.pop("set", None) or ()
            command(request=_gather(keys), settings=settings, **given)

        own = inspect.signature(command, eval_str=True).parameters
        named = {flag.parameter for flag in offered}
        first = [p for p in own.values() if p.name not in {*named, "request", "settings"}]
        options = (_make_parameter(flag, flag.name in required, names) for flag in offered)
        parameters = [*first, *options]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        return call

    return decorate


def _make_parameter(flag: Flag, required: bool, names: Collection[str]) -> inspect.Parameter:
    heading = None if names else flag.panel
    words = flag.help.partition(" [default")[0] if required else flag.help
    panel: Any = {"rich_help_panel": heading, "help": words, "show_default": False}
    if flag.kind == "switch":
        kind, default = bool, False
    else:
        kind, default = KINDS[flag.kind] if required else KINDS[flag.kind] | None, None
        panel["metavar"] = flag.metavar
    return inspect.Parameter(
        flag.parameter,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else default,
        annotation=Annotated[kind, typer.Option(flag.name, **panel)],
    )


def _gather(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that were typed, as a request file nests them."""
    from tallyveil.errors import UsageError

    request: dict[str, Any] = {}
    for key, value in sorted(keys.items(), key=lambda pair: pair[0] != "method"):
        if value is None or value is False or value == []:
            continue
        if key in METHOD_FLAGS:
            method = request.get("method", {})
            name = "preserve" if key == "priority" else key
            if isinstance(method, str) and (key == "priority" or method == "auto"):
                name, method = (name if method == "auto" else method), {}
            elif method:
                raise UsageError(f"--{key} chooses the method: leave out other methods.")
            request["method"] = {"name": name, METHOD_FLAGS[key]: value}
        else:
            _put(request, key, _read_lists(key, value))
    return request


def _read_lists(key: str, texts: Any) -> Any:
    """Read categories as they are typed: one list, or COLUMN=VALUES for each column."""
    if key != "categories":
        return texts
    from tallyveil.tables.microdata import read_column_lists

    return read_column_lists(texts)


def _merge(request: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return a request with the keys of --set KEY=VALUE; repeated keys make a list."""
    from tallyveil.errors import UsageError

    values: dict[str, list[str]] = {}
    for text in settings:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise UsageError("--set takes KEY=VALUE, such as about.title='Cases 2026'.")
        values.setdefault(key.strip(), []).append(value.strip())
    merged = {name: dict(v) if isinstance(v, Mapping) else v for name, v in request.items()}
    for key, texts in values.items():
        _put(merged, key, texts[0] if len(texts) == 1 else _read_lists(key, texts))
    return _read_texts(merged)


def _put(request: dict[str, Any], key: str, value: Any) -> None:
    section, dot, name = key.partition(".")
    if not dot:
        request[section] = value
        return
    inner = request.get(section, {})
    inner = {"name": inner} if isinstance(inner, str) else dict(inner)
    request[section] = inner | {name: value}


def _read_texts(request: dict[str, Any]) -> dict[str, Any]:
    """Read the texts of --set as what their keys hold: whole numbers, numbers, True or False."""
    if not any(isinstance(value, Mapping) for value in request.values()):
        return request
    from tallyveil.release.methods.registry import find_method
    from tallyveil.release.options import SECTIONS
    from tallyveil.structs import read_text

    kinds: dict[str, Any] = dict(SECTIONS)
    if isinstance(method := request.get("method"), Mapping):
        kinds["method"] = find_method(str(method.get("name", "auto")))
    return {
        section: {
            key: read_text(kinds[section], key, value)
            if isinstance(value, str) and (section, key) != ("method", "name")
            else value
            for key, value in inner.items()
        }
        if section in kinds and isinstance(inner, Mapping)
        else inner
        for section, inner in request.items()
    }


def make_options(request: Mapping[str, Any], settings: Sequence[str] = ()) -> ReleaseOptions:
    """Return the options that a request asks for, changed by settings KEY=VALUE."""
    from tallyveil.release.options import ReleaseOptions

    return ReleaseOptions(**_merge(request, settings))


NEAR_ENOUGH = 0.75
"""How alike a misspelt option and the right one are, from 0 to 1."""

KEY = re.compile(r"(?<!Got )(?<!olumn )(?<!method )(?<!key )'([a-z_]+(?:\.[a-z_]+)?)'")
SETTING = re.compile(r"(?<![\w'.])([a-z_]+(?:\.[a-z_]+)?)=('[^']*'|\w+)")


def spell_message(message: str, flags: Mapping[str, str], *, every: bool = True) -> str:
    """Spell the keys that a message quotes as a command's `flags`, or for its --set.

    Unless `every` one is a key, only dotted ones, assignments and those after "with" are: others
    may be columns.

    >>> spell_message("Use keep='all', or counts.allow_totals=True.", {"keep": "--keep"})
    'Use --keep all, or --set counts.allow_totals=true.'
    """
    words, command, rest = message.partition(": tallyveil ")
    paths = _list_paths()

    def name(found: re.Match[str]) -> str:
        path = found[1] if found[1] in paths.values() else paths.get(found[1], "")
        is_advice = found.string[: found.start()].endswith("with ")
        if not (every or is_advice or "." in found[1] or "=" in found[0]):
            return found[0]
        known = flags.get(path) or flags.get(found[1])
        return known or (f"--set {path}" if path else found[0])

    def assign(found: re.Match[str]) -> str:
        shown, value = name(found), found[2].strip("'")
        if shown == found[0]:
            return shown
        if value in ("True", "False"):
            return shown if not shown.startswith("--set ") else f"{shown}={value.lower()}"
        value = shlex.quote(value)
        return f"{shown}={value}" if shown.startswith("--set ") else f"{shown} {value}"

    return KEY.sub(name, SETTING.sub(assign, words)) + command + rest


def spell_for_command(message: str, names: Collection[str] = (), *, every: bool = True) -> str:
    """Spell a message for a command with these flags, by default all of `privatize`."""
    offered = (flag for flag in FLAGS if flag.key and (not names or flag.name in names))
    flags = {flag.key: flag.name for flag in offered}
    flags |= {f"method.{key}": f"--{flag}" for flag, key in METHOD_FLAGS.items() if key == flag}
    return spell_message(message, flags, every=every)


def suggest_flag(name: str, flags: Sequence[str], *, every_key: bool = True) -> str:
    """Name the flag, or the key for --set, that is nearest to a misspelt flag.

    >>> suggest_flag("--uper", ["--upper", "--out"]), suggest_flag("--title", ["--upper"])
    (' Perhaps you mean --upper.', ' Perhaps you mean --set about.title=VALUE.')
    """
    key = name.lstrip("-").replace("-", "_")
    paths = _list_paths() if every_key else {}
    near = difflib.get_close_matches(name, flags, 1, NEAR_ENOUGH)
    if not near and (keys := difflib.get_close_matches(key, list(paths), 1, NEAR_ENOUGH)):
        near = [f"--set {paths[keys[0]]}=VALUE"]
    return f" Perhaps you mean {near[0]}." if near else ""


@cache
def _list_paths() -> Mapping[str, str]:
    """List every key with its path in a request."""
    from tallyveil.release.methods.registry import METHODS
    from tallyveil.release.options import SECTIONS, ReleaseOptions

    paths = {key: f"method.{key}" for kind in METHODS.values() for key in kind.__struct_fields__}
    for section, kind in SECTIONS.items():
        paths |= {key: f"{section}.{key}" for key in kind.__struct_fields__}
    top = set(ReleaseOptions.__struct_fields__) - set(SECTIONS)
    return paths | {key: key for key in top} | {path: path for path in paths.values()}
