"""The options of a design: the one list of their names, types and defaults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from numpy.typing import ArrayLike

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.exact import Epsilon
from tallyveil.loss import Loss
from tallyveil.optimize.progress import Progress
from tallyveil.prior import Prior

__all__ = ["DesignOptions"]


@dataclass(frozen=True, eq=False)
class DesignOptions:
    """Everything that can be asked of a design, apart from the query and epsilon; see `design`."""

    loss: Loss = "absolute"
    prior: Prior = None
    worst_case: bool = False
    side_information: Iterable[float] | None = None
    properties: Iterable[str] | str | None = ()
    delta: Epsilon = 0
    fixed_point: ArrayLike | None = None
    target: ArrayLike | None = None
    method: Literal["auto", "lp"] = "auto"
    zero_outputs: bool | float = True
    cache: str | Path | None = None
    progress: Progress = None

    def __post_init__(self) -> None:
        if self.method not in ("auto", "lp"):
            raise ArgumentError("method", "be 'auto' or 'lp'", self.method)
        if self.worst_case and self.prior is not None:
            raise UsageError(
                "A worst case has no prior. Leave out either worst_case or prior. Weights in a "
                "worst case go into the loss: see tallyveil.weigh_loss."
            )
