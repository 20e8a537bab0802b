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
from tallyveil.loss import parse_loss
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric
from tallyveil.optimize.design import Design, design, design_with
from tallyveil.optimize.problem import DesignOptions
from tallyveil.prior import Prior
from tallyveil.properties import PROPERTIES, check_names
from tallyveil.query import GRID_ARGUMENTS, Query
from tallyveil.release.demo import counts_of, demo_csv
from tallyveil.release.privatize import privatize
from tallyveil.release.receipt import promise
from tallyveil.release.unit import PrivacyUnit
from tallyveil.studio.choices import read_field
from tallyveil.studio.wording import RefusedError
from tallyveil.studio.work_check import describe_matrix
from tallyveil.studio.workers import Say

MOST_ANSWERS = 301
SEARCHING = "searching for the best mechanism"
Message = Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """A question of a page, checked."""

    query: Query
    epsilon: str
    options: DesignOptions

    def design(self, say: Say, stage: str = SEARCHING, **changes: Any) -> Design:
        """Search for the best mechanism, and say how far the search is."""
        say(stage)
        changes["progress"] = lambda step, _: say(f"{stage}, step {step}")
        return design_with(self.query, self.epsilon, replace(self.options, **changes))


def warm_up() -> None:
    """Load what the first answer would otherwise wait for."""
    certify(design(Query.count(3), 1, properties="fair").mechanism)


def solve(say: Say, *, message: Message) -> dict[str, Any]:
    """Design a mechanism and describe it for the page."""
    question = _read(message)
    result, options = question.design(say), question.options
    mechanism = result.mechanism
    say("describing the mechanism")
    return {
        "objective": result.objective,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "reason": result.reason,
        "expected": mechanism.expected_loss(options.loss, options.prior),
        "worst_loss": mechanism.worst_loss(options.loss),
        "truth": 1 - mechanism.error_probability(options.prior),
        "bias": mechanism.bias().tolist(),
        "rmse": mechanism.rmse().tolist(),
        "python": _write_python(question),
        **describe_matrix(mechanism),
    }


def find_prices(say: Say, *, message: Message) -> list[dict[str, Any]]:
    """Find the loss with each property alone, next to the loss without any."""
    question = _read(message)
    free = question.design(say, properties=()).objective
    lines = [{"property": "", "loss": free, "price": 0.0, "refused": ""}]
    for number, name in enumerate(PROPERTIES, 1):
        stage = f"{number} of {len(PROPERTIES)}: {name.replace('_', ' ')}"
        try:
            loss = question.design(say, stage, properties=(name,)).objective
            price = loss / free - 1 if free > 0 else 0.0
            lines.append({"property": name, "loss": loss, "price": price, "refused": ""})
        except InfeasibleError as problem:
            lines.append({"property": name, "loss": None, "price": None, "refused": str(problem)})
    return lines


def certify_design(say: Say, *, message: Message) -> dict[str, str]:
    """Prove the mechanism of a design in integers; return its file and its certificate's."""
    result = _read(message).design(say)
    say("proving it in integers")
    proved = certify(result.mechanism)
    return {"mechanism.json": proved.to_json(), "certificate.json": proved.certificate_json()}


def _read(message: Message) -> Question:
    """Return the question in a message; what is not a number is refused by name."""
    kind = read_field(message, "query", str, "count")
    if kind not in GRID_ARGUMENTS:
        raise RefusedError(400, "There is no such question.")
    numbers = {name: _read_whole(message, name) for name in GRID_ARGUMENTS[kind]}
    width = numbers["upper"] - numbers.get("lower", 0)
    if not 0 < width * numbers.get("records", 1) < MOST_ANSWERS:
        raise RefusedError(422, f"Here a question has up to {MOST_ANSWERS - 1} possible answers.")
    options = DesignOptions(
        loss=parse_loss(read_field(message, "loss", str, "absolute")),
        prior=_read_prior(read_field(message, "prior", str, "uniform")),
        worst_case=message.get("worst_case") is True,
        properties=check_names(read_field(message, "properties", list[str], [])),
    )
    query = Query.from_dict({"kind": kind, **numbers})
    return Question(query, read_field(message, "epsilon", str, "1"), options)


def _read_whole(message: Message, name: str) -> int:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 10**6:
        raise ArgumentError(name, "be a whole number", value if isinstance(value, str) else None)
    return value


def _read_prior(text: str) -> Prior:
    name, colon, value = text.strip().partition(":")
    try:
        if text.strip() in ("", "uniform"):
            return None
        if colon and name == "binomial":
            return ("binomial", float(value))
        return [float(part) for part in text.split(",")]
    except ValueError:
        rule = "be uniform, binomial:P, or numbers with commas between them"
        raise ArgumentError("prior", rule, text[:100]) from None


def _write_python(question: Question) -> str:
    """Write the same design in Python."""
    options = question.options
    words = [f"tv.{question.query!r}", repr(question.epsilon), f"loss={options.loss!r}"]
    words += [f"prior={options.prior!r}"] if options.prior is not None else []
    words += ["worst_case=True"] if options.worst_case else []
    words += [f"properties={list(options.properties)!r}"] if options.properties else []
    arguments = "".join(f"    {word},\n" for word in words)
    return (
        f"import tallyveil as tv\n\nd = tv.design(\n{arguments})\nprint(d)\n"
        'tv.certify(d.mechanism).save("mechanism.json")\n'
    )


UPPER = 20
ROUGH = 1e-3
"""Probabilities below this the lesson rounds to 0, as a few printed digits would."""

MOST_RELEASES = 40
Answer = dict[str, Any]


def learn(say: Say, *, lesson: str, epsilon: str, count: int) -> Answer:
    """Work out what one of the six pages shows for these sliders."""
    if lesson not in LESSONS:
        raise RefusedError(404, "There is no such page.")
    return LESSONS[lesson](exact_epsilon(epsilon), max(count, 0))


def _compare_neighbours(epsilon: Fraction, count: int) -> Answer:
    """Compare the releases of two tables that differ by one person."""
    matrix = geometric(Query.count(UPPER), epsilon).matrix
    count = min(count, UPPER - 1)
    factor = math.exp(epsilon)
    return {
        "without": matrix[count].tolist(),
        "with": matrix[count + 1].tolist(),
        "factor": factor,
        "certain": factor / (1 + factor),
        "promise": promise(epsilon, PrivacyUnit()),
    }


def _clamp(epsilon: Fraction, count: int) -> Answer:
    """Show the bias of noise that is cut off at the ends of the range."""
    mechanism = geometric(Query.count(UPPER), epsilon)
    count, bias = min(count, UPPER), mechanism.bias()
    return {
        "chances": mechanism.matrix[count].tolist(),
        "bias": bias.tolist(),
        "here": float(bias[count]),
        "mean": float(bias[count] + count),
    }


def _round_solution(epsilon: Fraction, count: int) -> Answer:
    """Compare a matrix as solvers leave it, with zeros next to positives, with its repair."""
    query = Query.count(8)
    best = design(query, epsilon, loss="absolute", properties="fair", method="lp").mechanism
    matrix = np.where(best.matrix < ROUGH, 0.0, best.matrix)
    rough = Mechanism(matrix / matrix.sum(axis=1, keepdims=True), query, epsilon, name="a solver's")
    picture = describe_matrix(rough)
    return {
        "rough": picture,
        "realised": picture["realised"],
        "worst": audit_mechanism(rough).worst,
        "claimed": float(epsilon),
        "proved": float(certify(best).certificate["achieved_epsilon"]),
        "zeros": int((matrix == 0).sum()),
    }


def _keep_distribution(epsilon: Fraction, count: int) -> Answer:
    """Release an invented table with plain noise, and with its histogram kept."""
    counts = np.minimum(counts_of(demo_csv()), UPPER)
    before = np.bincount(counts, minlength=UPPER + 1)
    answer: Answer = {"before": before.tolist()}
    for method in ("geometric", "preserve"):
        release = privatize(counts, upper=UPPER, epsilon=epsilon, method=method)
        after = np.bincount(np.asarray(release.table), minlength=UPPER + 1)
        answer[method] = after.tolist()
        shares = (before / before.sum(), after / after.sum())
        answer[f"{method}_distance"] = float(wasserstein(*shares))
    return answer


def _combine_levels(epsilon: Fraction, count: int) -> Answer:
    """Show what readers of two levels of one table learn together."""
    query, far = Query.count(UPPER), epsilon / 2
    count = min(count, UPPER)
    return {
        "near": geometric(query, epsilon).matrix[count].tolist(),
        "far": geometric(query, far).matrix[count].tolist(),
        "epsilons": [float(epsilon), float(far)],
        "apart": float(epsilon + far),
        "holds": all(Ladder(query, [epsilon, far]).verify_coalitions().values()),
    }


def _compose(epsilon: Fraction, count: int) -> Answer:
    """Add up what many releases cost, and compose it exactly at a small delta."""
    delta = Fraction(1, 10**6)
    releases = min(max(count, 1), MOST_RELEASES)
    several = [1, 2, 5, 10, 20, 30, MOST_RELEASES]
    return {
        "times": several,
        "added": [float(epsilon * n) for n in several],
        "exact": [float(compose([epsilon] * n).epsilon(delta)) for n in several],
        "here": float(epsilon * releases),
        "here_exact": float(compose([epsilon] * releases).epsilon(delta)),
        "share": float(share_epsilon(releases, Fraction(1), delta)),
        "chosen": releases,
    }


LESSONS: Mapping[str, Callable[[Fraction, int], Answer]] = {
    "epsilon": _compare_neighbours,
    "bias": _clamp,
    "solvers": _round_solution,
    "distribution": _keep_distribution,
    "levels": _combine_levels,
    "composition": _compose,
}
