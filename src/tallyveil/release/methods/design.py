"""Methods fair, design and a mechanism file: each row is drawn from a table of probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallyveil.loss import Loss, parse_loss
from tallyveil.properties import check_names
from tallyveil.release.methods.base import Method
from tallyveil.structs import set_field

__all__ = ["Design", "DesignMethod", "Fair", "MechanismFile"]


class Fair(Method, frozen=True, tag="fair"):
    """Report the truth with the same probability for every true count."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_unbiased()


class Design(Method, frozen=True, tag="design"):
    """Draw from the table of probabilities with the least expected loss.

    Attributes
    ----------
    loss : str, or any loss of `tallyveil.loss`
        "absolute", "squared", "zero_one", "beyond:D" or "power:P".
    properties : tuple of str
        Properties that the table keeps; see `tallyveil.PROPERTIES`.
    """

    loss: str | Any = "absolute"
    properties: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_field(self, "properties", check_names(self.properties))
        super().__post_init__()
        self.refuse_unbiased()
        if isinstance(self.loss, str):
            parse_loss(self.loss)

    @property
    def loss_table(self) -> Loss:
        """The loss as `tallyveil.design` takes it."""
        loss: Loss | Callable[..., Any] = self.loss
        return parse_loss(loss) if isinstance(loss, str) else loss


class MechanismFile(Method, frozen=True, tag="file"):
    """Draw from a mechanism file of the publisher, certified for this release.

    Attributes
    ----------
    path : str
        The file. No receipt repeats it.
    """

    path: str = ""

    def __post_init__(self) -> None:
        set_field(self, "path", str(self.path))
        super().__post_init__()
        self.refuse_unbiased()


DesignMethod = Design
"""The public name, beside the mechanism that `tallyveil.design` returns."""
