"""Privacy as a ratio: Cormode et al. (2018) and Gupte and Sundararajan (2010) state alpha.

alpha = e^-epsilon lies between 0 and 1; the probabilities of neighbouring answers differ by a
factor of at least alpha and at most 1/alpha. Larger alpha is more private.
"""

from __future__ import annotations

import math

__all__ = ["epsilon_from_alpha"]


def epsilon_from_alpha(alpha: float) -> float:
    """Convert the papers' alpha to epsilon = -ln alpha.

    Parameters
    ----------
    alpha : float
        A ratio strictly between 0 and 1.

    Returns
    -------
    float
        The privacy loss, above 0.

    Examples
    --------
    >>> round(epsilon_from_alpha(0.5), 6)
    0.693147
    """
    return -math.log(alpha)
