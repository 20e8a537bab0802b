"""Models learnt from two-way tables of counts: naive Bayes and the Chow-Liu tree.

Cormode, Kulkarni and Srivastava (2018), section 8, build them from private group counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tallyveil.arrays import Floats, Integers

__all__ = ["build_tree", "classify", "mutual_information"]


def mutual_information(table: Floats) -> float:
    """Compute the mutual information of two attributes from their table of counts, in nats.

    sum_ij p_ij ln(p_ij / (p_i. p_.j)) over the cells that are not empty.

    Parameters
    ----------
    table : array of float, shape (n, m)
        Counts, at least 0, not all 0.

    Returns
    -------
    float
        The information, 0 for independent attributes.

    References
    ----------
    Chow and Liu (1968). Cormode, Kulkarni and Srivastava (2018), section 8.

    Examples
    --------
    >>> round(mutual_information(np.array([[5.0, 0.0], [0.0, 5.0]])), 3)
    0.693
    """
    joint = table / table.sum()
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / independent[seen])).sum())


def build_tree(information: Mapping[tuple[str, str], float]) -> list[tuple[str, str]]:
    """Build the Chow-Liu tree: largest total mutual information, by Kruskal's algorithm.

    Parameters
    ----------
    information : mapping of pairs of names to float
        The mutual information of every pair of attributes.

    Returns
    -------
    list of pairs of names
        The edges of the tree, most informative first.

    References
    ----------
    Chow and Liu (1968). Cormode, Kulkarni and Srivastava (2018), section 8.

    Examples
    --------
    >>> build_tree({("a", "b"): 3.0, ("b", "c"): 2.0, ("a", "c"): 1.0})
    [('a', 'b'), ('b', 'c')]
    """
    part = {name: name for pair in information for name in pair}
    tree = []
    for pair in sorted(information, key=lambda pair: (-information[pair], pair)):
        first, second = part[pair[0]], part[pair[1]]
        if first != second:
            tree.append(pair)
            part = {name: first if home == second else home for name, home in part.items()}
    return tree


def classify(
    tables: Mapping[str, Floats], attributes: Mapping[str, Integers], smoothing: float = 0.5
) -> Integers:
    """Predict the class of every person with naive Bayes, from tables of class by attribute.

    The attributes are taken as independent given the class.

    Parameters
    ----------
    tables : mapping of names to array of float, shape (classes, values)
        Counts by class and value of each attribute, at least 0.
    attributes : mapping of names to array of int, shape (people,)
        The value of each attribute for every person.
    smoothing : float
        Added to every cell, so that a value that was never seen is not impossible.

    Returns
    -------
    array of int, shape (people,)
        The likeliest class of every person.

    References
    ----------
    Cormode, Kulkarni and Srivastava (2018), section 8.

    Examples
    --------
    >>> cells = np.array([[8.0, 2.0], [1.0, 9.0]])
    >>> classify({"sign": cells}, {"sign": np.array([0, 1])}).tolist()
    [0, 1]
    """
    totals = np.array([cells.sum(axis=1) for cells in tables.values()]).sum(axis=0) + smoothing
    people = len(next(iter(attributes.values())))
    score = np.tile(np.log(totals / totals.sum()), (people, 1))
    for name, cells in tables.items():
        given = (cells + smoothing) / (cells + smoothing).sum(axis=1, keepdims=True)
        score += np.log(given[:, attributes[name]]).T
    likeliest: Integers = score.argmax(axis=1)
    return likeliest
