"""A second opinion on certificates: what the text of a file says, judged with Fractions alone.

It shares no line with the program: it reads the JSON itself, works out inputs and neighbours from
the query's own words, and compares every pair of neighbouring probabilities with e^epsilon, which
`decimal` computes with correct rounding. Slow, plain, and easy to believe.
"""

import json
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations, pairwise

ONE = 2**62
DIGITS = 60


def growth(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Two rationals that enclose e^epsilon."""
    context = Context(prec=DIGITS, Emax=10**6, Emin=-(10**6))
    exact = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    value = Fraction(context.exp(exact))
    slack = Fraction(1, 10 ** (DIGITS - 6))  # of the division and of the exponential
    return value * (1 - slack), value * (1 + slack)


def answers(query: dict) -> int:
    """How many true answers a query has."""
    kind = query["kind"]
    if kind == "custom":
        return len(query["inputs"])
    if kind == "count":
        return query["upper"] + 1
    span = query["upper"] - query["lower"]
    return span * query["records"] + 1 if kind == "mean" else span + 1


def pairs(query: dict) -> list[tuple[int, int]]:
    """Every pair of true answers that one person can turn into each other."""
    size = answers(query)
    kind = query["kind"]
    if kind == "count":
        return [(at, at + 1) for at in range(size - 1)]
    if kind == "mean":
        return near(size, query["upper"] - query["lower"])
    if kind in ("maximum", "minimum", "median"):
        return list(combinations(range(size), 2))
    relation = query["neighbours"]
    if relation["size"] != size:
        raise ValueError("the relation is of another size")
    if relation["kind"] == "complete":
        return list(combinations(range(size), 2))
    if relation["kind"] == "band":
        if type(relation["width"]) is not int or not 1 <= relation["width"] < size:
            raise ValueError("the band has no width")
        return near(size, relation["width"])
    listed = [(low, high) for low, high in relation["pairs"]]
    if not listed or not all(0 <= low < high < size for low, high in listed):
        raise ValueError("the pairs are none")
    return listed


def near(size, width):
    return [
        (low, high) for low in range(size) for high in range(low + 1, min(size, low + width + 1))
    ]


def read_table(lines: list[str]) -> list[list[int]]:
    table = [[int(cell) for cell in line.split(" ")] for line in lines]
    for row in table:
        if sum(row) != ONE or min(row) < 0:
            raise ValueError("a row is no distribution")
    return table


def largest_delta(table, related, epsilon) -> Fraction:
    """The largest hockey-stick divergence over neighbours, an upper bound."""
    factor = growth(epsilon)[0]
    total = sum(table[0])
    worst = Fraction(0)
    for low, high in related:
        for first, second in ((low, high), (high, low)):
            excess = sum(
                max(Fraction(0), a - factor * b)
                for a, b in zip(table[first], table[second], strict=True)
            )
            worst = max(worst, excess / total)
    return worst


def ratios_hold(table, related, epsilon) -> bool:
    """Whether every ratio of neighbours is certainly at most e^epsilon."""
    factor = growth(epsilon)[0]
    number, below = factor.numerator, factor.denominator
    return all(
        a * below <= number * b and b * below <= number * a
        for low, high in related
        for a, b in zip(table[low], table[high], strict=True)
    )


def multiply(left, right):
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns]
            for row in left]  # fmt: skip


def judge_levels(ladder) -> bool:
    related = pairs(ladder["query"])
    size = answers(ladder["query"])
    epsilons = [Fraction(text) for text in ladder["epsilons"]]
    tables = [read_table(lines) for lines in ladder["weights"]]
    if len(tables) != len(epsilons) or sorted(set(epsilons), reverse=True) != epsilons:
        return False
    product = [[int(i == j) for j in range(size)] for i in range(size)]
    for table, epsilon in zip(tables, epsilons, strict=True):
        product = multiply(product, table)
        if not ratios_hold(product, related, epsilon):
            return False
    return True


def judge_noise(noise, steps, epsilon) -> bool:
    """Probabilities at whole numbers one apart: listed ones, and three blocks of the tail."""
    near_weights = [int(cell) for cell in noise["near"].split(" ")]
    block = [int(cell) for cell in noise["block"].split(" ")]
    beyond, again = int(noise["beyond"]), int(noise["again"])
    if min(near_weights) < 1 or min(block) < 1 or beyond < 1 or not 0 < again < ONE:
        return False
    whole = near_weights[0] + 2 * sum(near_weights[1:]) + 2 * beyond
    if whole != ONE or sum(block) != ONE:
        return False
    # probabilities over the common denominator ONE^5, three blocks far: later blocks repeat the
    # second join, because every block is the one before times again / ONE
    chain = [weight * ONE**4 for weight in near_weights]
    for turn in range(3):
        scale = beyond * again**turn * (ONE - again) * ONE ** (2 - turn)
        chain += [scale * weight for weight in block]
    factor = growth(Fraction(noise["epsilon"]))[0]
    number, below = factor.numerator, factor.denominator
    step_holds = all(
        a * below <= number * b and b * below <= number * a for a, b in pairwise(chain)
    )
    return step_holds and Fraction(noise["epsilon"]) * steps <= epsilon


def judge(text: str) -> bool:
    """Whether the privacy claim in the text of a mechanism file is true."""
    try:
        data = json.loads(text)
        return judge_document(data)
    except (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError, AttributeError):
        return False


def judge_document(data) -> bool:  # noqa: PLR0911
    if data["format"] == "tallyveil-ladder":
        return judge_levels(data)
    claim = data["certificate"]
    epsilon, delta = Fraction(claim["epsilon"]), Fraction(claim["delta"])
    if epsilon <= 0 or not 0 <= delta < 1:
        return False
    if claim["law"] == "noise":
        return delta == 0 and judge_noise(data["noise"], 1, epsilon)
    query = claim["query"]
    related = pairs(query)
    if claim["law"] == "geometric":
        steps = max(high - low for low, high in related)
        return delta == 0 and judge_noise(data["noise"], steps, epsilon)
    if claim["law"] == "ladder":
        ladder = data["ladder"]
        stated = Fraction(ladder["epsilons"][0 if claim["published"] == "every level" else -1])
        same = ladder["query"] == query and stated == epsilon and delta == 0
        return same and judge_levels(ladder)
    table = read_table(data["weights"])
    if len(table) != answers(query):
        return False
    if delta:
        return largest_delta(table, related, epsilon) <= delta
    return ratios_hold(table, related, epsilon)
