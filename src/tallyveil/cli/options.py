"""The command line's options for a release, made from the one list in `ReleaseOptions`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from tallyveil.request.options import ReleaseOptions

__all__ = ["make_options", "takes_given_options", "takes_release_options"]

KINDS: dict[str, Any] = {
    "text": str,
    "many": list[str],
    "number": float,
    "whole": int,
    "switch": bool,
    "path": Path,
}


def takes_release_options(
    leave_out: Sequence[str] = (), required: Sequence[str] = (), panel: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a release beside its own.

    The command gets them as one `ReleaseOptions` in its argument `options`. Those in
    `leave_out`, and what only Python takes, are not offered; with `panel`, only its own are.
    """
    offered = [
        field
        for field in fields(ReleaseOptions)
        if field.metadata["cli"] != "none"
        and field.name not in leave_out
        and panel in (None, field.metadata["panel"])
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**given: Any) -> None:
            asked = {field.name: given.pop(field.name) for field in offered}
            command(options=make_options(asked), **given)

        own = inspect.signature(command, eval_str=True).parameters
        added = [_make_parameter(field, field.name in required) for field in offered]
        _set_parameters(call, [*own.values()], "options", added)
        return call

    return decorate


def takes_given_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every option of a release beside its own, as the dict `given` of those
    that stand on the command line.
    """
    offered = [field for field in fields(ReleaseOptions) if field.metadata["cli"] != "none"]

    @wraps(command)
    def call(context: typer.Context, **every: Any) -> None:
        asked = {field.name: every.pop(field.name) for field in offered}
        given = {name: value for name, value in asked.items() if _is_typed(context, name)}
        command(given=given, **every)

    own = inspect.signature(command, eval_str=True).parameters
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = inspect.Parameter("context", kind, annotation=typer.Context)
    added = [_make_parameter(field, False) for field in offered]
    _set_parameters(call, [first, *own.values()], "given", added)
    return call


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _set_parameters(
    call: Callable[..., None],
    own: Sequence[inspect.Parameter],
    replaced: str,
    added: Sequence[inspect.Parameter],
) -> None:
    """Let a command be called with its own parameters, but one, and those that are added.

    Options of its own come last, so that help pages begin with the table and not with the output.
    """
    kept = [p for p in own if p.name != replaced]
    last = [p for p in kept if p.kind is inspect.Parameter.KEYWORD_ONLY]
    parameters = [*(p for p in kept if p not in last), *added, *last]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}


def _make_parameter(field: Field[Any], required: bool) -> inspect.Parameter:
    told = field.metadata
    kind, repeats = KINDS[told["cli"]], told["cli"] == "many"
    default = None if field.default is MISSING or repeats else field.default
    optional = not required and default is None
    flag = told["flag"] or f"--{field.name.replace('_', '-')}"
    option = typer.Option(
        flag, help=told["help"], rich_help_panel=told["panel"], show_default=not required
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else default,
        annotation=Annotated[kind | None if optional else kind, option],
    )


def make_options(asked: Mapping[str, Any]) -> ReleaseOptions:
    """The options as the library takes them; what was not given keeps its default."""
    found = {name: value for name, value in asked.items() if value is not None}
    if isinstance(found.get("categories"), list) and all(
        isinstance(text, str) for text in found["categories"]
    ):
        from tallyveil.tables.microdata import read_column_lists

        found["categories"] = read_column_lists(found["categories"])
    if "loss" in found:
        from tallyveil.loss import parse_loss

        found["loss"] = parse_loss(found["loss"])
    return ReleaseOptions(**found)
