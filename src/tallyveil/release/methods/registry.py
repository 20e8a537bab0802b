"""The methods there are, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tallyveil.errors import ArgumentError, PackageError
from tallyveil.release.methods.auto import Auto
from tallyveil.release.methods.base import Method
from tallyveil.release.methods.design import Design, Fair, File
from tallyveil.release.methods.geometric import Canonical, Geometric, Staircase
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.release.methods.ladder import Ladder
from tallyveil.release.methods.margins import Margins
from tallyveil.release.methods.preserve import Preserve
from tallyveil.release.methods.strata import Strata

if TYPE_CHECKING:
    from tallyveil.documents.receipt import Receipt
    from tallyveil.documents.records import ColumnRecord
    from tallyveil.request.request import Request

__all__ = [
    "ASKED_FOR",
    "METHODS",
    "AnyMethod",
    "find_kind",
    "method_of_record",
    "method_of_request",
]

AnyMethod: TypeAlias = (
    Auto | Preserve | Geometric | Fair | Design | File | Strata | Ladder | Hierarchy | Margins
)
"""What msgspec decodes a method as, by its tag."""

METHODS: Mapping[str, type[Method]] = {
    str(method.__struct_config__.tag): method
    for method in (
        *(Auto, Preserve, Strata, Geometric, Canonical, Staircase, Fair, Design, Ladder),
        *(Hierarchy, Margins, File),
    )
}

ASKED_FOR = tuple(name for name, method in METHODS.items() if method.asked_for)
"""The methods that need a name only."""


def find_kind(name: str) -> type[Method]:
    """The method that a receipt names."""
    if name not in METHODS or METHODS[name] is Auto:
        raise PackageError("The receipt names a method that does not exist.")
    return METHODS[name]


def method_of_request(request: Request) -> Method:
    """The method that a request asks for, with its options."""
    name, sums = request.method, request.hierarchy
    method = METHODS.get(name, File)
    fields: dict[str, Any] = {"unbiased": request.unbiased}
    if method is Margins and sums is not None:
        fields["columns"] = sums.margins
    elif method is Hierarchy and sums is not None:
        fields |= {"columns": sums.columns, "weights": sums.weights}
        fields["invariant"] = (sums.exact,) if sums.exact else ""
    elif method is Strata:
        fields["columns"] = request.strata
    elif method is Ladder:
        fields["epsilons"] = tuple(map(str, request.levels))
    elif method is Preserve:
        fields["priority"] = _name_priority(request.tradeoff)
    elif method is Geometric:
        fields["signed"] = request.signed
    elif method is Design:
        fields |= {"loss": request.loss, "properties": request.properties}
    elif method is File:
        fields["path"] = name
    return method(**fields)


def method_of_record(column: ColumnRecord, receipt: Receipt) -> Method:
    """The method that a receipt names, with what it says of its options."""
    method, sums, strata = column.kind, receipt.sums, receipt.strata
    if method.adds_up != (sums is not None) or (sums and sums.method.name != column.method):
        raise PackageError("The receipt's hierarchy is not its method's.")
    if method.by_group != (strata is not None):
        raise PackageError("The receipt's strata are not its method's.")
    if sums is not None:
        return sums.method
    fields: dict[str, Any] = {}
    if strata is not None:
        fields["columns"] = strata.columns
    elif method is Preserve:
        fields["priority"] = _name_priority(column.tradeoff)
    elif method is Geometric:
        fields["signed"] = column.signed
    elif method is Ladder:
        fields["epsilons"] = (
            () if receipt.ladder is None else tuple(map(str, receipt.ladder.epsilons))
        )
    try:
        return method(**fields)
    except ArgumentError:
        raise PackageError(f"The receipt contradicts the method of {column.name}.") from None


def _name_priority(tradeoff: Any) -> str:
    """A tradeoff as the option `priority` of the method preserve."""
    if tradeoff is None:
        return "distribution"
    return "balanced" if isinstance(tradeoff, str) else str(tradeoff)
