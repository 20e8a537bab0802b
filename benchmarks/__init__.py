"""Speed and accuracy in ratio to what a user would otherwise pick: `python -m benchmarks`."""

SUITE = (
    "startup",
    "scale",
    "spark",
    "sampling",
    "accuracy",
    "sums",
    "design",
    "certification",
    "ranges",
)
"""One module for each question, in the order of the page."""
