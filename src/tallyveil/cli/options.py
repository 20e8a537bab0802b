"""The command line's options for a release, made from the one list in `ReleaseOptions`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from tallyveil.publish.options import ReleaseOptions

__all__ = ["takes_release_options"]

KINDS: dict[str, Any] = {
    "text": str,
    "many": list[str],
    "number": float,
    "whole": int,
    "switch": bool,
    "path": Path,
}


def takes_release_options(
    leave_out: Sequence[str], required: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a release beside its own.

    The command gets them as one `ReleaseOptions` in its argument `options`. Those in
    `leave_out`, and what only Python takes, are not offered.
    """
    offered = [
        field
        for field in fields(ReleaseOptions)
        if field.metadata["cli"] != "none" and field.name not in leave_out
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**given: Any) -> None:
            asked = {field.name: given.pop(field.name) for field in offered}
            command(options=_make_options(asked), **given)

        own = inspect.signature(command, eval_str=True).parameters
        parameters = [
            *(parameter for parameter in own.values() if parameter.name != "options"),
            *(_make_parameter(field, field.name in required) for field in offered),
        ]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        return call

    return decorate


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


def _make_options(asked: dict[str, Any]) -> ReleaseOptions:
    """The options as the library takes them; what was not given keeps its default."""
    if "loss" in asked:
        from tallyveil.loss import parse_loss

        asked["loss"] = parse_loss(asked["loss"])
    return ReleaseOptions(**{name: value for name, value in asked.items() if value is not None})
