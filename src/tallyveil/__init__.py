"""Tallyveil: the best private mechanism for a count, proved in integers, drawn exactly.

``import tallyveil as tv`` loads nothing but this page; each name below is fetched from its
home module on first use, so heavy libraries are imported only by those who need them.
"""

from importlib import import_module
from typing import Any

from tallyveil._version import __version__

_HOMES: dict[str, tuple[str, ...]] = {
    "tallyveil.errors": (
        "ArgumentError",
        "BudgetError",
        "CertificationError",
        "InfeasibleError",
        "LedgerError",
        "MechanismError",
        "MissingExtraError",
        "PackageError",
        "QueryError",
        "TableError",
        "TallyveilError",
        "VerificationError",
    ),
    "tallyveil.query": ("Query",),
    "tallyveil.table.privatize": ("privatize",),
    "tallyveil.table.released": ("Release",),
    "tallyveil.table.check": ("check_package",),
    "tallyveil.release.ledger": ("Ledger",),
    "tallyveil.loss": ("paper_loss",),
    "tallyveil.mechanism": ("Mechanism",),
    "tallyveil.closed_form.geometric": ("geometric",),
    "tallyveil.closed_form.transport": ("transport",),
    "tallyveil.closed_form.fair": ("fair", "randomized_response", "uniform"),
    "tallyveil.closed_form.exponential": ("exponential",),
    "tallyveil.closed_form.additive": ("discrete_gaussian", "laplace", "staircase"),
    "tallyveil.closed_form.smooth": ("cauchy", "smooth_sensitivity"),
    "tallyveil.closed_form.choose": ("Choice", "choose"),
    "tallyveil.closed_form.oblivious": ("oblivious",),
    "tallyveil.proof.repair": ("Repair", "repair"),
    "tallyveil.proof.verify": ("Verdict", "verify"),
    "tallyveil.release.certified": (
        "CertifiedGeometric",
        "CertifiedMechanism",
        "certify",
        "certify_geometric",
        "load",
    ),
    "tallyveil.release.entropy": ("Entropy", "SeededNotPrivate"),
    "tallyveil.release.noise": (
        "discrete_gaussian_noise",
        "geometric_noise",
        "geometric_release",
    ),
    "tallyveil.optimize.design": ("Design", "design"),
    "tallyveil.consume.consumer": ("Consumer", "Response"),
    "tallyveil.consume.dominate": ("dominating_remap",),
    "tallyveil.consume.derive": (
        "derivability",
        "derivation",
        "exact_derivation",
        "is_derivable",
    ),
    "tallyveil.consume.ladder": ("Ladder",),
    "tallyveil.consume.posterior": ("Posterior", "posterior"),
    "tallyveil.consume.confidence": ("confidence_sets",),
    "tallyveil.consume.unbiased": ("estimate_mean", "estimate_total", "unbiased"),
    "tallyveil.consume.interpret": ("interpret",),
    "tallyveil.consume.accuracy": ("accuracy", "chance_within", "epsilon_for"),
    "tallyveil.evaluate.compare": ("Comparison", "compare"),
    "tallyveil.optimize.named": ("am", "fm", "ucm", "variant1", "variant2", "wm"),
    "tallyveil.preserve.greedy": ("best_fixed_point", "greedy_fixed_point"),
    "tallyveil.preserve.implicit": ("implicit_transport",),
    "tallyveil.preserve.unfixed": ("unfixed_optimum",),
    "tallyveil.distribution.histogram": ("distribution_of_counts", "histogram_of_counts"),
    "tallyveil.distribution.privatizers": ("privatize_distribution",),
    "tallyveil.distribution.split": ("split_budget",),
    "tallyveil.distribution.upper_bound": ("private_upper",),
    "tallyveil.table.pipeline": ("privatize_counts",),
    "tallyveil.evaluate.distances": (
        "count_errors",
        "kolmogorov_smirnov",
        "released_share_variance",
        "total_variation",
        "wasserstein",
    ),
}
_MODULES = {
    "polytope": "tallyveil.preserve.polytope",
    "scales": "tallyveil.preserve.scales",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted([*_HOME_OF, *_MODULES])]  # noqa: PLE0604  # names are strings by type


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = import_module(_MODULES[name])
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'tallyveil' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
