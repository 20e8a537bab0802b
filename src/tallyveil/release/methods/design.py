"""Methods fair, design and a mechanism file: each row is drawn from a table of probabilities."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from tallyveil.certified.base import Certified
from tallyveil.certified.certify import certify
from tallyveil.certified.mechanism import CertifiedAnswers
from tallyveil.errors import ArgumentError
from tallyveil.loss import Loss, loss_name, parse_loss
from tallyveil.properties import check_names
from tallyveil.query import Query
from tallyveil.release.column import WIDEST_MATRIX
from tallyveil.release.methods.base import Method, Plan, Task
from tallyveil.structs import set_field

OWN_LOSSES = ("function", "table")
"""The names that receipts give to losses that are objects."""


class Fair(Method, frozen=True, tag="fair"):
    """Report the truth with the same probability for every true count."""

    brief: ClassVar[str] = "noise on every count, the truth equally likely for every count"
    words: ClassVar[str] = (
        "Every count was replaced by a random one near it, with the same chance of reporting the "
        "truth for every true count."
    )
    good_for: ClassVar[str] = (
        "Treating all true counts alike: each is released truthfully equally often."
    )
    closed_form: ClassVar[str] = "fair"
    widest: ClassVar[int] = WIDEST_MATRIX
    takes: ClassVar[tuple[str, ...]] = ("epsilon", "budget.accuracy")

    def certify(self, task: Task, epsilon: Fraction) -> Certified:
        """Certify the mechanism's table of probabilities."""
        from tallyveil.mechanisms.exponential import fair

        return certify(fair(task.query, epsilon))


class Design(Method, frozen=True, tag="design"):
    """Draw from the table of probabilities with the least expected loss.

    Attributes
    ----------
    loss : str, or any loss of `tallyveil.loss`
        "absolute", "squared", "zero_one", "beyond:D" or "power:P".
    properties : tuple of str
        Properties that the table keeps; `tallyveil design --help` lists them.
    """

    brief: ClassVar[str] = "noise on every count, designed for the smallest expected error"
    words: ClassVar[str] = (
        "Every count was replaced by a random one near it, drawn from a table of probabilities "
        "computed to make the expected error as small as privacy allows."
    )
    good_for: ClassVar[str] = "The least expected error, with the properties you choose."
    widest: ClassVar[int] = WIDEST_MATRIX
    takes: ClassVar[tuple[str, ...]] = ("epsilon", "budget.delta")
    with_delta: ClassVar[bool] = True

    loss: str | Any = "absolute"
    properties: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_field(self, "properties", check_names(self.properties))
        super().__post_init__()
        if isinstance(self.loss, str) and self.loss not in OWN_LOSSES:
            parse_loss(self.loss)

    def for_receipt(self) -> Design:
        """Return the method with its loss by name: "function" or "table" for one of your own."""
        name, _, rest = loss_name(self.loss).partition(" ")
        name = "function" if callable(self.loss) else f"{name}:{rest}" if rest else name
        return Design(loss=name, properties=self.properties)

    @property
    def loss_and_prior(self) -> str:
        """The loss, and the prior that every design has here."""
        return f"{self.loss}, uniform"

    @property
    def loss_table(self) -> Loss:
        """The loss as `tallyveil.design` takes it."""
        loss: Loss | Callable[..., Any] = self.loss
        return parse_loss(loss) if isinstance(loss, str) else loss

    def plan(self, task: Task, why: str = "") -> Plan:
        """Certify the design, and keep what its solver says of it."""
        from tallyveil.optimize.design import design

        table = design(
            task.query,
            task.epsilon,
            loss=self.loss_table,
            properties=self.properties,
            delta=task.delta,
        )
        solver = f"{table.method}, {table.solver}; within {table.gap:.1e} of the best possible"
        certified = certify(table.mechanism, loss=self.loss_table)
        return self.build_plan(task, why, certified, solver=solver)


class MechanismFile(Method, frozen=True, tag="file"):
    """Draw from a mechanism file of the publisher, certified for this release.

    Attributes
    ----------
    path : str
        The file. No receipt repeats it.
    """

    brief: ClassVar[str] = "noise on every count, from the publisher's mechanism file"
    words: ClassVar[str] = (
        "Every count was replaced by a random one, drawn from a table of probabilities that the "
        "publisher supplied and that was certified for this release."
    )

    path: str

    def __post_init__(self) -> None:
        set_field(self, "path", str(self.path))
        super().__post_init__()

    def plan(self, task: Task, why: str = "") -> Plan:
        """Certify what the file holds; the column costs the epsilon of that."""
        certified = _read_supplied(Path(self.path), task.query, task.epsilon)
        cost = certified.exact_epsilon
        return self.build_plan(task, why, certified, epsilon=cost, solver="supplied")

    def for_receipt(self) -> MechanismFile:
        """Return the method without the path of the file."""
        return MechanismFile(path="")


DesignMethod = Design
"""The public name: `tallyveil.design` is a function."""


def _read_supplied(path: Path, query: Query, epsilon: Fraction) -> CertifiedAnswers:
    """Read the publisher's mechanism: certified already, or certified here."""
    from tallyveil.certified.files import read_mechanism

    read = read_mechanism(path, query, epsilon)
    certified = read if isinstance(read, CertifiedAnswers) else certify(read, epsilon)
    if certified.query != query:
        raise ArgumentError("method", f"be a mechanism for {query!r}", got=repr(certified.query))
    if certified.exact_epsilon > epsilon:
        got = f"a mechanism with epsilon {certified.exact_epsilon}"
        raise ArgumentError("method", f"hold at epsilon {epsilon}", got=got)
    if certified.exact_delta:
        got = f"a delta of {certified.exact_delta}"
        raise ArgumentError("method", "be a mechanism with a delta of 0", got=got)
    return certified
