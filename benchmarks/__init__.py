"""Speed and accuracy measured side by side with the peers; `python -m benchmarks` runs all."""

SUITE = (
    "sampling",
    "design",
    "uneven",
    "preserve",
    "certification",
    "large_ranges",
    "throughput",
    "scale",
    "startup",
    "studio",
    "accuracy",
    "consumers",
    "sums",
    "composition",
)
"""One module per question, in the order of the page."""

SHARED = (
    *("measure", "peers", "page", "paired", "no_upper", "bounds"),
    *("sum_ways", "sum_bounds", "sum_scale"),
)
"""Modules of this folder that the others use."""
