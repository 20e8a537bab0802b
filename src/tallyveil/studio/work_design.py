"""Mechanism design and six small experiments, on public or invented numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil.budget.accounting import compose, share_epsilon
from tallyveil.certified.certify import certify
from tallyveil.certified.ladder import Ladder
from tallyveil.errors import ArgumentError, InfeasibleError
from tallyveil.evaluate import audit_mechanism, wasserstein
from tallyveil.exact import exact_epsilon
from tallyveil.loss import Loss, parse_loss
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.design import Design, design
from tallyveil.prior import Prior
from tallyveil.properties import PROPERTIES, check_names
from tallyveil.query import Query
from tallyveil.release.demo import counts_of, demo_csv
from tallyveil.release.receipt import promise
from tallyveil.request.unit import PrivacyUnit
from tallyveil.studio.errors import RefusedError
from tallyveil.studio.work_check import describe_matrix
from tallyveil.studio.workers import Say

__all__ = ["LESSONS", "certify_design", "find_prices", "learn", "solve"]

MOST_ANSWERS = 301
QUERIES = {
    "count": ("upper",),
    "mean": ("records", "lower", "upper"),
    "maximum": ("lower", "upper"),
    "minimum": ("lower", "upper"),
    "median": ("lower", "upper"),
}
Asked = Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """What a page asks for, checked."""

    query: Query
    epsilon: str
    loss: Loss
    prior: Prior
    worst_case: bool
    properties: tuple[str, ...]


def solve(say: Say, *, asked: Asked) -> dict[str, Any]:
    """Design a mechanism and describe it for the page."""
    question = _read(asked)
    found = _design(say, question)
    made = found.mechanism
    say("describing the mechanism")
    interval = made.interval(0.95)
    return {
        "name": made.name,
        "objective": found.objective,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "method": found.method,
        "reason": found.reason,
        "seconds": found.seconds,
        "expected": made.expected_loss(question.loss, question.prior),
        "worst_loss": made.worst_loss(question.loss),
        "truth": 1 - made.error_probability(question.prior),
        "bias": made.bias().tolist(),
        "rmse": made.rmse().tolist(),
        "low": interval[:, 0].tolist(),
        "high": interval[:, 1].tolist(),
        "properties": made.properties(),
        "python": _write_python(question),
        **describe_matrix(made),
    }


def find_prices(say: Say, *, asked: Asked) -> list[dict[str, Any]]:
    """The loss with each property alone, beside the loss without any."""
    question = replace(_read(asked), properties=())
    free = _design(say, question).objective
    lines = [{"property": "", "loss": free, "price": 0.0, "refused": ""}]
    for at, name in enumerate(PROPERTIES, 1):
        words = f"{at} of {len(PROPERTIES)}: {name.replace('_', ' ')}"
        try:
            value = _design(say, replace(question, properties=(name,)), words).objective
            price = value / free - 1 if free > 0 else 0.0
            lines.append({"property": name, "loss": value, "price": price, "refused": ""})
        except InfeasibleError as problem:
            lines.append({"property": name, "loss": None, "price": None, "refused": str(problem)})
    return lines


def certify_design(say: Say, *, asked: Asked) -> dict[str, str]:
    """The mechanism of a design, proved in integers: its file and its certificate's."""
    found = _design(say, _read(asked))
    say("proving it in integers")
    proved = certify(found.mechanism)
    return {"mechanism.json": proved.to_json(), "certificate.json": proved.certificate_json()}


def _design(say: Say, asked: Question, what: str = "searching for the best mechanism") -> Design:
    """Design, and tell of what and how far the search is."""
    say(what)
    return design(
        asked.query,
        asked.epsilon,
        asked.loss,
        prior=asked.prior,
        worst_case=asked.worst_case,
        properties=asked.properties,
        progress=lambda step, _: say(f"{what}, step {step}"),
    )


def _read(asked: Asked) -> Question:
    """The question in a message, checked; what is not a number is refused by name."""
    kind = asked.get("query", "count")
    if kind not in QUERIES:
        raise RefusedError(400, "There is no such question.")
    numbers = {name: _read_whole(asked, name) for name in QUERIES[kind]}
    widest = numbers["upper"] - numbers.get("lower", 0)
    if not 0 < widest * numbers.get("records", 1) < MOST_ANSWERS:
        raise RefusedError(422, f"Here a question has up to {MOST_ANSWERS - 1} possible answers.")
    query = Query.from_dict({"kind": kind, **numbers, "categories": 1, "extend": 1})
    text = asked.get("loss", "absolute")
    loss = parse_loss(text if isinstance(text, str) else "")
    words = asked.get("properties", [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise RefusedError(400, "The properties cannot be read.")
    return Question(
        query,
        str(asked.get("epsilon", "1")),
        loss,
        _read_prior(asked.get("prior", "uniform")),
        asked.get("worst_case") is True,
        check_names(words),
    )


def _read_whole(asked: Asked, name: str) -> int:
    value = asked.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 10**6:
        raise ArgumentError(name, "be a whole number", value if isinstance(value, str) else None)
    return value


def _read_prior(given: Any) -> Prior:
    if not isinstance(given, str) or len(given) > 5000:
        raise RefusedError(400, "The prior cannot be read.")
    name, colon, value = given.strip().partition(":")
    try:
        if given.strip() in ("", "uniform"):
            return None
        if colon and name == "binomial":
            return ("binomial", float(value))
        return [float(part) for part in given.split(",")]
    except ValueError:
        rule = "be uniform, binomial:P, or numbers with commas between them"
        raise ArgumentError("prior", rule, given) from None


def _write_python(asked: Question) -> str:
    """The same design in Python."""
    words = [f"tv.{asked.query!r}", repr(asked.epsilon), f"loss={asked.loss!r}"]
    words += [f"prior={asked.prior!r}"] if asked.prior is not None else []
    words += ["worst_case=True"] if asked.worst_case else []
    words += [f"properties={list(asked.properties)!r}"] if asked.properties else []
    inner = "".join(f"    {word},\n" for word in words)
    return (
        f"import tallyveil as tv\n\nd = tv.design(\n{inner})\nprint(d)\n"
        'tv.certify(d.mechanism).save("mechanism.json")\n'
    )


UPPER = 20
ROUGH = 1e-3
"""Probabilities below this the lesson rounds to 0, as a few printed digits would."""

Answer = dict[str, Any]


def learn(say: Say, *, lesson: str, epsilon: str, at: int) -> Answer:
    """What one of the six pages shows for these sliders."""
    if lesson not in LESSONS:
        raise RefusedError(404, "There is no such page.")
    return LESSONS[lesson](exact_epsilon(epsilon), at)


def _one_person(epsilon: Fraction, at: int) -> Answer:
    """The releases of two tables that differ by one person: how alike they are."""
    made = geometric(Query.count(UPPER), epsilon).matrix
    count = min(max(at, 0), UPPER - 1)
    factor = math.exp(epsilon)
    return {
        "without": made[count].tolist(),
        "with": made[count + 1].tolist(),
        "factor": factor,
        "certain": factor / (1 + factor),
        "promise": promise(epsilon, PrivacyUnit()),
    }


def _clamped(epsilon: Fraction, at: int) -> Answer:
    """The bias of noise that is cut off at the ends of the range, and of a fair mechanism."""
    made = geometric(Query.count(UPPER), epsilon)
    count = min(max(at, 0), UPPER)
    return {
        "chances": made.matrix[count].tolist(),
        "bias": made.bias().tolist(),
        "here": float(made.bias()[count]),
        "mean": float(made.bias()[count] + count),
    }


def _solver(epsilon: Fraction, at: int) -> Answer:
    """A matrix as solvers leave it, with zeros beside positives, and the one that was repaired."""
    size = 8
    best = design(Query.count(size), epsilon, loss="absolute", properties="fair", method="lp")
    rough = np.where(best.mechanism.matrix < ROUGH, 0.0, best.mechanism.matrix)
    rough = rough / rough.sum(axis=1, keepdims=True)
    loose = Mechanism(rough, Query.count(size), epsilon, name="a solver's")
    audit = audit_mechanism(loose)
    proved = certify(best.mechanism)
    return {
        "rough": describe_matrix(loose),
        "realised": audit.realised_epsilon if math.isfinite(audit.realised_epsilon) else None,
        "worst": audit.worst,
        "claimed": float(epsilon),
        "proved": float(proved.certificate["achieved_epsilon"]),
        "zeros": int((rough == 0).sum()),
    }


def _distribution(epsilon: Fraction, at: int) -> Answer:
    """An invented table's histogram, with plain noise and with the distribution kept."""
    from tallyveil.release.privatize import privatize

    counts = np.minimum(counts_of(demo_csv()), UPPER)
    before = np.bincount(counts, minlength=UPPER + 1)
    answer: Answer = {"before": before.tolist()}
    for method in ("geometric", "preserve"):
        made = privatize(counts, upper=UPPER, epsilon=epsilon, method=method)
        after = np.bincount(np.asarray(made.table), minlength=UPPER + 1)
        answer[method] = after.tolist()
        shares = (before / before.sum(), after / after.sum())
        answer[f"{method}_distance"] = float(wasserstein(*shares))
    return answer


def _levels(epsilon: Fraction, at: int) -> Answer:
    """Two levels of one table: what readers of both learn together."""
    far = epsilon / 2
    ladder = Ladder(Query.count(UPPER), [epsilon, far])
    held = ladder.verify_coalitions()
    count = min(max(at, 0), UPPER)
    query = Query.count(UPPER)
    return {
        "near": geometric(query, epsilon).matrix[count].tolist(),
        "far": geometric(query, far).matrix[count].tolist(),
        "epsilons": [float(epsilon), float(far)],
        "together": float(epsilon),
        "apart": float(epsilon + far),
        "holds": all(held.values()),
    }


def _composition(epsilon: Fraction, at: int) -> Answer:
    """What many releases cost together: added up, and composed exactly at a small delta."""
    most, delta = 40, Fraction(1, 10**6)
    times = min(max(at, 1), most)
    several = [1, 2, 5, 10, 20, 30, 40]
    exact = [float(compose([epsilon] * n).epsilon(delta)) for n in several]
    return {
        "times": several,
        "added": [float(epsilon * n) for n in several],
        "exact": exact,
        "here": float(epsilon * times),
        "here_exact": float(compose([epsilon] * times).epsilon(delta)),
        "share": float(share_epsilon(times, Fraction(1), delta)),
        "chosen": times,
    }


LESSONS: Mapping[str, Callable[[Fraction, int], Answer]] = {
    "epsilon": _one_person,
    "bias": _clamped,
    "solvers": _solver,
    "distribution": _distribution,
    "levels": _levels,
    "composition": _composition,
}
