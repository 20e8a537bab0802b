"""Every tolerance of the search, what it bounds, and how they relate.

**What a design promises**, measured on the matrix as given: properties hold to
`PROPERTY_TOLERANCE` (that of `Mechanism.has`), output distributions come out to
`DISTRIBUTION_TOLERANCE`, and ratios between neighbours exceed e^epsilon by no more than
`RATIO_ROUNDING`, relatively.

**When the search stops.** The solver's tolerance is `SOLVER_TOLERANCE`, far below what is needed,
because the certified gap is what counts: at most `SUFFICIENT_GAP` ends the search at once, at
most `ACCEPTABLE_GAP` ends it after the first choice of cost scaling.

**Why a matrix is repaired twice.** Two steps treat small entries as zero, for two reasons:

- `polish` drops *outputs* that an interior-point solution never quite gives up. The solver is
  asked for 1e-11, so a column whose largest entry is below 1e-8 (`NEGLIGIBLE_OUTPUTS`) is an
  output that the optimum never releases. Whether dropping it is harmless is checked against the
  objective (`MAX_DROP_COST`), and properties must survive.
- `tallyveil.proof.repair` mends *ratios* of any matrix, from any source, and knows neither an
  objective nor properties. It measures the error of the ratios and drops entries below four
  times that error, up to a limit. For a matrix that comes out of `polish` the
  measured error is round-off, so repairing it again before certification changes the last
  digits only.

`polish` leaves ratios to `proof.repair` wherever it can. It mends them itself, by mixing with a
constant mechanism, only where properties, delta or a least probability must survive.
"""

from __future__ import annotations

from tallyveil.properties import TOLERANCE as PROPERTY_TOLERANCE

__all__ = [
    "ACCEPTABLE_GAP",
    "COARSE_TOLERANCE",
    "CONFLICT_MISS",
    "CUT_SHARE",
    "DISTRIBUTION_TOLERANCE",
    "FEW_VARIABLES",
    "LEAST_OUTPUT_SHARE",
    "MANY_ANSWERS",
    "MAX_DROP_COST",
    "MAX_ROW_SUM_ERROR",
    "NEGLIGIBLE_OUTPUTS",
    "PATH_TOLERANCE",
    "PROPERTY_TOLERANCE",
    "RATIO_ROUNDING",
    "ROUNDED_GAP",
    "ROUNDED_PROPERTY",
    "ROW_MARGINS",
    "SMALLEST_ENTRY",
    "SOLVER_TOLERANCE",
    "SUFFICIENT_GAP",
    "SYMMETRY_ROUNDING",
    "TAIL_SHARES",
    "TIGHT_SHARE",
]

# -- what a design promises -----------------------------------------------------------------------

DISTRIBUTION_TOLERANCE = 1e-8
"""Largest absolute error of an output distribution that was demanded."""

ROUNDED_PROPERTY = 1e-14
"""The most that a closed form may miss a property by: nothing but the rounding of doubles."""

TIGHT_SHARE = 1e-6
"""Demands missed by more than this share of the objective, in units of the largest loss, count as
missed where another mechanism meets them better."""

RATIO_ROUNDING = 1e-14
"""Ratios this close to e^epsilon, relatively, count as e^epsilon in doubles."""

LEAST_OUTPUT_SHARE = 1e-3
"""With ``zero_outputs=False``: the least probability of an output when the truth is nearest to it,
as a share of 1/m. Without such a floor there is no best mechanism, only a limit."""

# -- when the search stops ------------------------------------------------------------------------

SUFFICIENT_GAP = 1e-7
"""A relative gap at which no other window, scaling or closed form is tried."""

ACCEPTABLE_GAP = 1e-6
"""A relative gap above which the whole search is repeated with unscaled costs."""

MANY_ANSWERS = 120
"""With more answers than this, a window with an acceptable gap ends the search as well."""

ROUNDED_GAP = 1e-12
"""A relative difference between objective and bound that ratios rounded to doubles can make."""

SOLVER_TOLERANCE = 1e-11
"""Tolerance asked of the solver; it costs two or three iterations and is often reached."""

COARSE_TOLERANCE = 1e-10
"""Tolerance asked of the solver at first with more answers than `MANY_ANSWERS`: 17 of 80 iterations
less where they take longest, for a gap of 5e-7 instead of 9e-8."""

PATH_TOLERANCE = 9e-8
"""Relative error asked of `path_solver`, whose matrices need next to no repair: below
`SUFFICIENT_GAP`."""

TAIL_SHARES = (0.03, 1e-3, 1e-6)
"""Windows to try in turn: tails begin at the distance d where e^(-epsilon d) is below these."""

CUT_SHARE = 1e-9
"""The same where tails are left out and filled in afterwards, as with output privacy."""

FEW_VARIABLES = 4000
"""Programs without tails and with at most this many variables are solved at a vertex, by the
simplex method; half as many for a worst case, which takes it much longer."""

ROW_MARGINS = (0.0, 1e-10, 1e-9)
"""Slack demanded of inequalities, in turn, while polishing breaks a property by round-off."""

MAX_ROW_SUM_ERROR = 1e-4
"""A solver's matrix whose row sums are further from one is not a solution."""

CONFLICT_MISS = 1e-7
"""Demands conflict if output distributions are provably missed by more than this in total."""

# -- what counts as zero or as equal --------------------------------------------------------------

NEGLIGIBLE_OUTPUTS = (1e-8, 1e-11)
"""Columns whose largest entry is below this are set to zero. The larger limit is tried first and
kept where that costs no more than `MAX_DROP_COST`."""

MAX_DROP_COST = 1e-8
"""Largest relative increase of the objective accepted when negligible columns are set to zero."""

SMALLEST_ENTRY = 1e-290
"""Below this, doubles lose the digits that ratios between neighbours need."""

SYMMETRY_ROUNDING = 1e-13
"""Largest relative difference between a number and its mirror image that counts as none."""
