"""Results are frozen, pickle without loss, and show themselves in one short line."""

import dataclasses
import io
import pickle
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

import tallyveil as tv

Q = tv.Query.count(6)
G = tv.geometric(Q, "1/2")
RESPONSE = tv.Consumer("absolute").respond(G)
BAYES = tv.Consumer("zero_one", "uniform").respond(tv.uniform(Q, 1))
FLAT = tv.derivability(tv.fair(Q, "1/2"), tv.exponential(Q, "1/2"))
COMPARISON = tv.compare([G, tv.fair(Q, "1/2")], ["absolute", ("beyond", 1)], {"flat": None})

VALUES = {
    "Mechanism": G, "Posterior": tv.posterior(G, 3), "Interpretation": tv.interpret(G, [3, 0]),
    "ConfidenceSets": tv.confidence_sets(G), "UnbiasedEstimator": tv.unbiased(G),
    "Estimate": tv.estimate_total(G, [1, 2, 3]),
    "Consumer": tv.Consumer(("beyond", 2), side_information=[1, 2]),
    "Response": RESPONSE, "BoundCertificate": RESPONSE.certificate, "Tie": BAYES.ties[0],
    "Derivability": tv.derivability(tv.geometric(Q, "1/4"), G),
    "Obstacle": tv.derivability(tv.fair(Q, 1), tv.geometric(Q, 1)).obstacle,
    "Separation": FLAT.obstacle, "Comparison": COMPARISON, "Row": COMPARISON.rows[0],
    "CountErrors": tv.count_errors([1, 2], [1, 3]), "Design": tv.design(Q, 1),
    "CertifiedMechanism": tv.certify(G), "CertifiedGeometric": tv.certify_geometric(Q, 1),
    "ImplicitTransport": tv.implicit_transport(2, 1.0, [0.5, 0.25, 0.25]),
}  # fmt: skip
SHORT = sorted(set(VALUES) - {"Row", "Obstacle", "Design"})  # plain records


@pytest.mark.parametrize("name", VALUES)
def test_pickles_without_loss(name, same):
    value = VALUES[name]
    again = pickle.loads(pickle.dumps(value))
    assert type(again).__name__ == name
    assert same(value, again)
    assert repr(again) == repr(value)


@pytest.mark.parametrize("name", VALUES)
def test_frozen(name):
    value = VALUES[name]
    field = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, field, None)


@pytest.mark.parametrize("again", [False, True], ids=["made", "unpickled"])
@pytest.mark.parametrize(
    "name",
    [
        "Mechanism", "Posterior", "Interpretation", "ConfidenceSets", "UnbiasedEstimator",
        "Response", "BoundCertificate", "Derivability", "Separation",
    ],
)  # fmt: skip
def test_arrays_are_read_only(name, again):
    value = pickle.loads(pickle.dumps(VALUES[name])) if again else VALUES[name]
    arrays = [held for held in vars(value).values() if isinstance(held, np.ndarray)]
    assert arrays
    assert not any(array.flags.writeable for array in arrays)


@pytest.mark.parametrize("name", SHORT)
def test_shows_itself_in_one_short_line(name):
    shown = repr(VALUES[name])
    assert len(shown) <= 140
    assert "\n" not in shown
    assert "array(" not in shown


class Checker(HTMLParser):
    """Tags opened and closed in order, and which they were."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.open.append(tag)
        assert not any(name.startswith("on") or name == "id" for name, _ in attrs)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_html(text):
    checker = Checker()
    checker.feed(text)
    assert not checker.open
    assert "script" not in checker.seen
    return checker.seen


@pytest.mark.parametrize(
    "name",
    ["Mechanism", "Posterior", "Comparison", "Design", "CertifiedMechanism", "CertifiedGeometric"],
)
def test_notebooks_show_well_formed_html_that_never_changes(name):
    text = VALUES[name]._repr_html_()
    assert set(check_html(text)) & {"svg", "table"}
    assert text == pickle.loads(pickle.dumps(VALUES[name]))._repr_html_()


def test_names_are_escaped_in_html_and_in_the_terminal():
    bad = tv.Mechanism(G.matrix, Q, 1, name='<script>alert("x")</script>[bold]')
    check_html(bad._repr_html_())
    check_html(tv.compare({"<b onclick=x>": bad}, priors={"<i>": None})._repr_html_())
    console = Console(width=200, file=io.StringIO())
    console.print(tv.compare(bad).table())
    assert "[bold]" in console.file.getvalue()


def test_a_large_matrix_stays_small_on_the_page():
    text = tv.geometric(tv.Query.count(1500), "0.01")._repr_html_()
    assert len(text) < 150_000
    assert "64 × 64 groups of adjacent answers" in text
    wide = tv.certify_geometric(tv.Query.count(10**6), 1)._repr_html_()
    assert "svg" not in check_html(wide)
