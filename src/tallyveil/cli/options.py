"""Flags of a release on the command line: each is a key of a request, the rest is for --set.

Nothing heavy is imported here, so that help pages are quick.
"""

from __future__ import annotations

import difflib
import inspect
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any, NamedTuple

import typer

import tallyveil as tv

BASIC = "Most releases need only these"
MICRODATA, PRIVACY, TOTALS, FILES = ("Microdata", "Privacy and method", "Totals", "Files")
MANY = list[str]


class Flag(NamedTuple):
    """A flag: the key of a request that it sets, or "" for a parameter of the command itself."""

    key: str
    name: str
    kind: Any
    metavar: str | None
    panel: str

    @property
    def parameter(self) -> str:
        """The name of the command's parameter."""
        return self.name.removeprefix("--").replace("-", "_")


FLAGS = (
    Flag("count", "--count", MANY, "COLUMN", BASIC),
    Flag("keep", "--keep", MANY, "COLUMN", BASIC),
    Flag("upper", "--upper", MANY, "N", BASIC),
    Flag("epsilon", "--epsilon", MANY, "E", BASIC),
    Flag("hierarchy", "--hierarchy", str, "COLUMNS", BASIC),
    Flag("by", "--by", MANY, "COLUMN", BASIC),
    Flag("categories", "--categories", MANY, "LIST", BASIC),
    Flag("out", "--out", str, "FOLDER", BASIC),
    Flag("ledger", "--ledger", str, "FILE", BASIC),
    Flag("dataset", "--dataset", str, "NAME", BASIC),
    Flag("", "--dry-run", bool, None, BASIC),
    Flag("microdata.where", "--where", MANY, "CONDITION", MICRODATA),
    Flag("microdata.bins", "--bins", MANY, "COLUMN=LIMITS", MICRODATA),
    Flag("microdata.other", "--other", str, "NAME", MICRODATA),
    Flag("unit.id_column", "--id-column", str, "COLUMN", MICRODATA),
    Flag("budget.accuracy", "--within", float, "K", PRIVACY),
    Flag("unit.kind", "--unit", str, "UNIT", PRIVACY),
    Flag("unit.contributions", "--contributions", int, "N", PRIVACY),
    Flag("method", "--method", str, "METHOD", PRIVACY),
    Flag("priority", "--priority", str, "WHAT", PRIVACY),
    Flag("margins", "--margins", str, "COLUMNS", TOTALS),
    Flag("counts.allow_totals", "--allow-totals", bool, None, TOTALS),
    Flag("source.sheet_name", "--sheet", str, "NAME", FILES),
    Flag("source.delimiter", "--delimiter", str, "CHAR", FILES),
    Flag("source.na_values", "--missing", MANY, "CODE", FILES),
    Flag("output.format", "--format", str, "FORMAT", FILES),
    Flag("", "--save-request", str, "FILE", FILES),
    Flag("output.confidential_report", "--confidential-report", str, "FILE", FILES),
    Flag("", "--set", MANY, "KEY=VALUE", FILES),
    Flag("", "--json", bool, None, FILES),
)
"""The flags of `tallyveil privatize`, in the order of its help page."""

HELP = {
    "--count": "Count column to protect. Repeatable.",
    "--keep": "Public column to release unchanged. Repeatable, or 'all'. Other columns are not "
    "released.",
    "--upper": "Largest count to release; larger counts are top-coded. Take it from public "
    "knowledge, never from the data. [default: 1,000,000,000]",
    "--epsilon": "Privacy loss of each count column. Smaller is more private.",
    "--hierarchy": "Also release totals by these columns, coarse to fine, e.g. state,county. Rows "
    "add up to them exactly. Needs --upper.",
    "--by": "Microdata: count records by this column. Repeatable.",
    "--categories": "Microdata: every category to release, as a file or a,b,c. With several --by "
    "columns: COLUMN=a,b,c. Repeatable.",
    "--out": "Release folder to create.",
    "--ledger": "Ledger to debit: a file or postgresql://...",
    "--dataset": "Dataset to debit in the ledger.",
    "--dry-run": "Show cost and expected accuracy. Reads no count, spends nothing.",
    "--where": "Count only matching records, e.g. 'age >= 18'. Repeatable.",
    "--bins": "Count by ranges of a number, e.g. age=0,18,65. Repeatable.",
    "--other": "Category for all values not in --categories.",
    "--id-column": "Column that identifies a person; at most --contributions records of each "
    "person are counted, chosen at random. Never released.",
    "--within": "Instead of --epsilon: choose it so that released counts are within K of the true "
    "counts with 95% probability.",
    "--unit": "Protect one person or one event. [default: person]",
    "--contributions": "Times one person is counted in each column. Multiplies the cost. "
    "[default: 1]",
    "--method": "preserve (keeps the distribution of counts), geometric (plain noise), fair, "
    "design, a mechanism file, or auto. [default: auto]",
    "--priority": "What matters most to preserve: distribution, balanced, counts, or a number (how "
    "much cell error one unit of distribution error is worth).",
    "--margins": "Also release crossing margins, e.g. age+sex,education.",
    "--allow-totals": "Accept rows labelled Total; you assert that nobody is counted twice.",
    "--sheet": "Sheet of a workbook.",
    "--delimiter": "Character between cells, or 'tab'.",
    "--missing": "Code of a missing count, e.g. '*'. Rows with it are not released; which rows "
    "these are must be public. Repeatable.",
    "--format": "csv or parquet. [default: parquet for Parquet files, else csv]",
    "--save-request": "Write these options to a request file for 'tallyveil run'.",
    "--confidential-report": "Write a comparison with the true counts. Keep it secret.",
    "--set": "Any other key of a request file, e.g. about.title='Cases 2026', "
    "method.weights=1,4,1. Repeatable.",
    "--json": "Print JSON.",
}
SOURCE_KEYS = "Key of [source] in a request file, e.g. source.skiprows=2. Repeatable."
"""The help of --set where only these keys apply."""

METHOD_FLAGS = {"hierarchy": "columns", "margins": "columns", "priority": "priority"}
"""Flags that set a key of a method, which they choose as well."""


def takes_flags(
    names: Collection[str] = (), required: Collection[str] = (), *, keys: str = HELP["--set"]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command flags of a release, all of them or those in `names`.

    `keys` is the help of --set. The command gets the keys that were typed as the dict `request`,
    and what follows --set as `settings`.
    """
    offered = [flag for flag in FLAGS if not names or flag.name in names]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**values: Any) -> None:
            for flag in offered:
                if flag.kind not in (MANY, bool):
                    values[flag.parameter] = _read_once(flag, values[flag.parameter])
            keys = {flag.key: values.pop(flag.parameter) for flag in offered if flag.key}
            settings = values.pop("set") or ()
            _refuse_repeated(keys, settings)
            command(request=_gather(keys), settings=settings, **values)

        signature = inspect.signature(command, eval_str=True).parameters
        replaced = {"request", "settings", *(flag.parameter for flag in offered)}
        first = [p for p in signature.values() if p.name not in replaced]
        options = (
            _make_parameter(flag, flag.name in required, not names, keys) for flag in offered
        )
        parameters = [*first, *options]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        return call

    return decorate


def _refuse_repeated(keys: Mapping[str, Any], settings: Sequence[str]) -> None:
    """Refuse a key of --set that a flag of the same command gives as well."""
    typed = {flag.key: flag.name for flag in FLAGS if keys.get(flag.key)}
    for flag in ("method", *METHOD_FLAGS):
        if flag in typed:
            paths = ["method", "method.name", f"method.{METHOD_FLAGS.get(flag, 'name')}"]
            typed |= dict.fromkeys(paths, typed[flag])
    for key in (text.partition("=")[0].strip() for text in settings):
        if key in typed:
            raise tv.UsageError(f"{typed[key]} and --set {key} exclude each other: use one.")


def _read_once(flag: Flag, values: list[Any] | None) -> Any:
    """Return the value of a flag; refuse it twice, since the second would win silently."""
    if values and len(values) > 1:
        hint = f", such as {flag.name} state,county" if flag.metavar == "COLUMNS" else ""
        raise tv.UsageError(f"Give {flag.name} once{hint}.")
    return values[0] if values else None


def _make_parameter(flag: Flag, required: bool, panels: bool, keys: str) -> inspect.Parameter:
    words = keys if flag.name == "--set" else HELP[flag.name]
    words = words.partition(" [default")[0] if required else words
    option: Any = typer.Option(
        flag.name,
        help=words,
        metavar=flag.metavar,
        rich_help_panel=flag.panel if panels else None,
        show_default=False,
    )
    default = inspect.Parameter.empty if required else False if flag.kind is bool else None
    several: Any = list
    kind = flag.kind if flag.kind in (MANY, bool) else several[flag.kind]
    kind = kind | None if default is None else kind
    keyword, annotation = inspect.Parameter.KEYWORD_ONLY, Annotated[kind, option]
    return inspect.Parameter(flag.parameter, keyword, default=default, annotation=annotation)


def _gather(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that were typed, as a request file nests them."""
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
                raise tv.UsageError(f"--{key} chooses the method: leave out other methods.")
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
    values: dict[str, list[str]] = {}
    for text in settings:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise tv.UsageError("--set takes KEY=VALUE, such as about.title='Cases 2026'.")
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
    from tallyveil.release.methods.registry import find_method
    from tallyveil.release.options import SECTIONS
    from tallyveil.structs import read_text

    kinds: dict[str, Any] = dict(SECTIONS)
    if isinstance(method := request.get("method"), Mapping):
        kinds["method"] = find_method(str(method.get("name", "auto")))
    for section, kind in kinds.items():
        keys = request.get(section)
        if not isinstance(keys, Mapping):
            continue
        for key, value in keys.items():
            if isinstance(value, str) and (section, key) != ("method", "name"):
                request[section] = request[section] | {key: read_text(kind, key, value)}
    return request


def make_options(request: Mapping[str, Any], settings: Sequence[str] = ()) -> tv.ReleaseOptions:
    """Return the options that a request asks for, changed by settings KEY=VALUE."""
    return tv.ReleaseOptions(**_merge(request, settings))


NEAR_ENOUGH = 0.75
"""How alike a misspelt option and the right one are, from 0 to 1."""

KEY = re.compile(r"(?<!Got )(?<!olumn )(?<!method )(?<!key )'([a-z_]+(?:\.[a-z_]+)?)'")
SETTING = re.compile(r"(?<![\w'.])([a-z_]+(?:\.[a-z_]+)?)=('[^']*'|\w+)")


def spell_message(message: str, names: Collection[str] = (), *, every: bool = True) -> str:
    """Spell the keys that a message quotes as flags of a command, or for its --set.

    The command offers the flags in `names`, by default all of `privatize`. Unless `every` quoted
    name is a key, only dotted ones, assignments and those after "with" are: others may be columns.

    >>> spell_message("Use keep='all', or counts.allow_duplicates=True.")
    'Use --keep all, or --set counts.allow_duplicates=true.'
    """
    offered = (flag for flag in FLAGS if flag.key and (not names or flag.name in names))
    flags = {flag.key: flag.name for flag in offered} | {"method.priority": "--priority"}
    words, command, rest = message.partition(": tallyveil ")
    paths = _import_paths()

    def name(match: re.Match[str]) -> str:
        path = match[1] if match[1] in paths.values() else paths.get(match[1], "")
        is_advice = match.string[: match.start()].endswith("with ")
        if not (every or is_advice or "." in match[1] or "=" in match[0]):
            return match[0]
        flag = flags.get(path) or flags.get(match[1])
        return flag or (f"--set {path}" if path else match[0])

    def assign(match: re.Match[str]) -> str:
        shown, value = name(match), match[2].strip("'")
        is_setting, is_switch = shown.startswith("--set "), value in ("True", "False")
        if shown == match[0] or (is_switch and not is_setting):
            return shown
        value = value.lower() if is_switch else shlex.quote(value)
        return f"{shown}{'=' if is_setting else ' '}{value}"

    return KEY.sub(name, SETTING.sub(assign, words)) + command + rest


def suggest_flag(name: str, flags: Sequence[str], *, every_key: bool = True) -> str:
    """Name the flag, or the key for --set, that is nearest to a misspelt flag.

    >>> suggest_flag("--uper", ["--upper", "--out"]), suggest_flag("--title", ["--upper"])
    (' Perhaps you mean --upper.', ' Perhaps you mean --set about.title=VALUE.')
    """
    key = name.lstrip("-").replace("-", "_")
    paths = _import_paths() if every_key else {}
    near = difflib.get_close_matches(name, flags, 1, NEAR_ENOUGH)
    if not near and (keys := difflib.get_close_matches(key, list(paths), 1, NEAR_ENOUGH)):
        near = [f"--set {paths[keys[0]]}=VALUE"]
    return f" Perhaps you mean {near[0]}." if near else ""


def _import_paths() -> Mapping[str, str]:
    from tallyveil.release.options import list_paths

    return list_paths()
