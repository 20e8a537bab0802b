"""What a certificate is about, in words: the question, who are neighbours, and the unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tallyveil.neighbours import Neighbours
from tallyveil.proof.certificate import LADDER_FORMAT
from tallyveil.query import Query

__all__ = ["NOT_PROVED", "PROVED", "describe_question"]

PROVED = (
    "Whoever sees one released answer finds it as likely under a neighbouring true answer, up to a "
    "factor of e^epsilon (and delta, where one is claimed)."
)
NOT_PROVED = (
    "That draws were really made from these numbers, once, and with good random bits; that the "
    "question and the neighbours are those of the data at hand."
)
"""What verifying a file promises, and what it cannot."""


def describe_question(document: Mapping[str, Any]) -> dict[str, str]:
    """Describe the query, the neighbours and the unit of a verified document.

    >>> from tallyveil.certified.certify import certify_geometric
    >>> describe_question(certify_geometric(Query.count(9), 1).to_dict())["query"]
    'a count from 0 to 9'
    """
    claim = document if document.get("format") == LADDER_FORMAT else document["certificate"]
    if claim.get("law") == "noise":
        return {
            "query": "whole numbers without bounds, to each of which noise is added",
            "neighbours": "numbers of which one differs by one",
            "unit": "whoever moves one of the numbers by one",
        }
    query = Query.from_dict(claim["query"])
    return {
        "query": _describe_query(query),
        "neighbours": _describe_relation(query.neighbours),
        "unit": f"whoever moves the true answer {_describe_move(query.neighbours)}",
    }


def _describe_move(neighbours: Neighbours) -> str:
    if neighbours.kind == "explicit" and not neighbours.is_path:
        return "from one of a listed pair to the other"
    steps = neighbours.width
    return f"by {'one step' if steps == 1 else f'up to {steps:,} steps'} at the most"


def _describe_query(query: Query) -> str:
    given = dict(query.arguments)
    numbers = f"whole numbers from {given.get('lower', 0)} to {given.get('upper', 0)}"
    words = {
        "count": f"a count from 0 to {given.get('upper')}",
        "mean": f"the mean of {given.get('records')} {numbers}",
        "custom": f"{len(query.inputs):,} answers from {query.inputs[0]:g} to {query.inputs[-1]:g}",
    }.get(query.kind, f"the {query.kind} of {numbers}")
    if query.is_square:
        return words
    return f"{words}, released as {len(query.outputs):,} answers or ranges"


def _describe_relation(neighbours: Neighbours) -> str:
    if neighbours.is_path:
        return "true answers next to each other"
    if neighbours.kind == "explicit":
        alone = neighbours.size - len(np.unique(neighbours.pairs))
        listed = f"{neighbours.count:,} listed pairs of {neighbours.size:,} true answers"
        return f"{listed}, {alone:,} of which are in no pair" if alone else listed
    return {
        "band": f"true answers at most {neighbours.width:,} steps apart",
        "complete": "all true answers",
    }[neighbours.kind]
