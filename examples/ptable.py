"""A perturbation table of a statistical office, audited: noise that ends is never private.

Run: python examples/ptable.py
"""

import io

import numpy as np
from scipy.optimize import brentq

import tallyveil as tv

NOISE = np.arange(-2, 3)


def spread(rate):
    """Return the noise of largest entropy with mean 0 whose variance `rate` decides."""
    weights = np.exp(-rate * NOISE**2)
    return weights / weights.sum()


def one_row(d):
    """Return the probabilities of 0 to 3 for a count of 1: mean 1, variance 1."""
    return [(1 + d) / 3, (1 + d) / 3, (1 - 5 * d) / 3, d]


# The smallest example of the R package ptable: noise of at most 2 with variance 1.
rate = brentq(lambda b: spread(b) @ NOISE**2 - 1, 0.01, 5)
d = brentq(
    lambda d: 5 * np.log((1 - 5 * d) / 3) - 2 * np.log((1 + d) / 3) - 3 * np.log(d), 1e-3, 0.19
)
rows = {0: [1.0], 1: one_row(d), 2: spread(rate)}
text = io.StringIO()
text.write("i,j,p\n")
for count, row in rows.items():
    for released, probability in enumerate(row):
        text.write(f"{count},{released},{float(probability)!r}\n")

published = tv.Mechanism.from_csv(text.getvalue(), upper=10)
print("epsilon:", published.realised_epsilon())
for epsilon in (0.5, 1.0, 2.0):
    (delta,) = published.privacy_profile([epsilon])
    print(f"at epsilon {epsilon} it needs delta {delta:.3f}")
