"""tv.design: methods, marginals, errors, infeasibility, cache, progress, certification."""

import builtins
import dataclasses
import inspect
import io
import json
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.optimize import solver
from tallyveil.optimize.problem import DesignOptions
from tallyveil.properties import SEVEN

Q = tv.Query.count(12)
RNG = np.random.default_rng(11)
SKEWED = RNG.dirichlet(np.ones(13))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("geometric", {"loss": "zero_one", "properties": ["row_monotone", "symmetric"]}),
        ("geometric+remap", {}),
        ("geometric+remap", {"prior": SKEWED, "loss": "squared"}),
        ("geometric+remap", {"prior": SKEWED, "side_information": range(3, 9)}),
        ("fair", {"loss": "zero_one", "properties": SEVEN}),
        ("fair", {"loss": "zero_one", "properties": ["fair"], "prior": SKEWED}),
        ("transport", {"fixed_point": SKEWED}),
        ("transport", {"prior": SKEWED, "target": SKEWED[::-1], "loss": "squared"}),
    ],
)
def test_closed_forms_equal_the_program(method, options):
    closed = tv.design(Q, 0.3, **options)
    program = tv.design(Q, 0.3, method="lp", **options)
    assert (closed.method, closed.solver) == (method, "none")
    assert program.method == "lp"
    assert program.solver.startswith("clarabel ")
    assert closed.objective == pytest.approx(program.objective, rel=1e-6)
    assert closed.gap < 1e-9
    assert closed.lower_bound <= program.objective


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "zero_one", "fixed_point": SKEWED},  # transport is not optimal there
        {"fixed_point": SKEWED, "prior": SKEWED[::-1]},  # nor for other weights
        {"loss": ("power", 0.3), "fixed_point": SKEWED},  # nor for concave losses
        {"loss": RNG.random((13, 13))},  # geometric plus remap needs a monotone loss
        {"properties": ["fair"]},
        {"delta": 0.01, "worst_case": True},
        {"worst_case": True},
        {"zero_outputs": False},
    ],
)
def test_cases_without_a_theorem_go_to_the_program(options):
    found = tv.design(Q, 0.5, **options)
    assert found.method == "lp"
    assert found.gap < 1e-6
    assert "linear program" in found.reason


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"properties": SEVEN},
        {"properties": ["column_monotone"], "prior": SKEWED},
        {"fixed_point": SKEWED, "method": "lp"},
        {"worst_case": True},
        {"delta": 0.001},
        {"query": tv.Query.maximum(0, 12), "properties": ["fair"]},
        {"query": tv.Query.mean(6, 0, 2), "properties": ["row_monotone"]},
        {"query": tv.Query.count(12, categories=2, extend=2), "properties": ["column_monotone"]},
        {"query": tv.Query.count(900)},  # its far tails underflow
    ],
)
def test_designs_are_certified_without_measurable_loss(options):
    options = dict(options)
    found = tv.design(options.pop("query", Q), 1.0, **options)
    certified = tv.certify(found.mechanism)
    before, after = found.mechanism, certified.mechanism
    assert certified.verify()
    assert after.expected_loss() == pytest.approx(before.expected_loss(), rel=1e-9)
    if not found.mechanism.delta:
        assert before.realised_epsilon() <= 1.0 + 1e-12


def test_delta_buys_accuracy():
    losses = [tv.design(Q, 0.5, delta=delta).objective for delta in (0, 1e-3, 0.05, 0.3)]
    assert losses == sorted(losses, reverse=True)
    found = tv.design(Q, 0.5, delta="0.05")
    assert found.mechanism.exact_delta == tv.design(Q, 0.5, delta=0.05).mechanism.exact_delta
    assert found.mechanism.privacy_profile([0.5])[0] <= 0.05 + 1e-12


def test_zero_outputs():
    """Croft, Sack and Shi (2020), Table 3, never releases the ends; without zeros all can come."""
    query = tv.Query.count(5)
    free = tv.design(query, 0.5)
    assert free.mechanism.matrix[:, 0].max() == 0
    held = tv.design(query, 0.5, zero_outputs=False)
    assert held.mechanism.matrix.min() > 0
    assert held.mechanism.matrix[0, 0] >= 1 / 6000 - 1e-12
    assert free.objective < held.objective < free.objective * 1.001
    assert tv.design(query, 0.5, zero_outputs=0.1).mechanism.matrix[5, 5] >= 0.1 - 1e-12


def test_two_marginals_at_once():
    """A prior may have its own target beside a fixed point."""
    z, other = np.full(4, 0.25), np.array([0.3, 0.2, 0.2, 0.3])
    found = tv.design(
        tv.Query.count(3), 1.0, prior=other, target=[0.27, 0.23, 0.23, 0.27], fixed_point=z
    )
    assert np.abs(z @ found.mechanism.matrix - z).max() < 1e-8
    assert np.abs(other @ found.mechanism.matrix - [0.27, 0.23, 0.23, 0.27]).max() < 1e-8


def test_side_information_conditions_a_prior():
    found = tv.design(Q, 1.0, side_information=[4, 5, 6])
    prior = np.zeros(13)
    prior[4:7] = 1 / 3
    assert found.objective == pytest.approx(tv.design(Q, 1.0, prior=prior).objective)
    assert found.objective == pytest.approx(found.mechanism.expected_loss(prior=prior))


FEW, LOW, HIGH = [0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8]
MONOTONE = ["fair", "row_monotone", "column_monotone"]
CONFLICTS = [
    ("privacy weakly_honest fixed_point", {"properties": ["weakly_honest"], "fixed_point": FEW}),
    ("privacy fair fixed_point", {"properties": MONOTONE, "fixed_point": FEW}),
    ("fixed_point target",
     {"prior": [0.5, 0.3, 0.2], "target": [0.2, 0.3, 0.5], "fixed_point": [0.5, 0.25, 0.25]}),
    ("privacy fixed_point target", {"prior": LOW, "target": LOW, "fixed_point": HIGH}),
    ("weakly_honest target",
     {"prior": [1, 0, 0], "target": [0, 1, 0], "properties": ["weakly_honest"]}),
]  # fmt: skip


@pytest.mark.parametrize(("conflict", "options"), CONFLICTS)
def test_conflicts_are_named_and_irreducible(conflict, options):
    query, conflict = tv.Query.count(2), set(conflict.split())
    with pytest.raises(tv.InfeasibleError) as caught:
        tv.design(query, 0.5, **options)
    assert set(caught.value.conflict) == conflict
    assert all(name in str(caught.value) for name in conflict)
    for name in conflict - {"privacy"}:  # dropping any one makes the rest possible
        fewer = {key: value for key, value in options.items() if key != name}
        fewer["properties"] = [p for p in options.get("properties", ()) if p in conflict - {name}]
        assert tv.design(query, 0.5, **fewer).gap < 1e-6


@pytest.mark.parametrize(
    ("options", "message"),
    [({"properties": ["honest"]}, "Known properties: row_honest, row_monotone"),
     ({"loss": "cubic"}, 'Known losses: "absolute"'),
     ({"loss": np.ones((3, 3))}, "shape \\(13, 13\\)"),
     ({"loss": np.full((13, 13), np.nan)}, "finite everywhere"),
     ({"side_information": []}, "at least one true answer"),
     ({"side_information": [99]}, "list true answers"), ({"delta": 1}, "lie in \\[0, 1\\)"),
     ({"delta": -0.1}, "lie in \\[0, 1\\)"), ({"prior": [1, 2]}, "13 entries"),
     ({"worst_case": True, "prior": SKEWED}, "A worst case has no prior"),
     ({"method": "simplex"}, "'auto' or 'lp'"), ({"zero_outputs": 0.5}, "least probability"),
     ({"target": [1, 2]}, "'target' must .* 13 entries"),
     ({"target": np.ones(13)}, "'target' must sum to one"),
     ({"fixed_point": np.ones(13)}, "'fixed_point' must sum to one"),
     ({"fixed_point": [1.0]}, "13 entries"),
     ({"prior": [1] + 12 * [0], "side_information": [3]}, "positive somewhere")],
)  # fmt: skip
def test_bad_input_is_explained(options, message):
    with pytest.raises(tv.ArgumentError, match=message):
        tv.design(Q, 0.5, **options)


def test_a_fixed_point_needs_a_square_query():
    wide = tv.Query.count(5, extend=2)
    with pytest.raises(tv.QueryError, match="same inputs and outputs"):
        tv.design(wide, 0.5, fixed_point=np.ones(6))
    with pytest.raises(tv.ArgumentError, match="Query"):
        tv.design("count", 0.5)


def test_results_are_kept_and_looked_up(tmp_path):
    first = tv.design(Q, 0.5, properties=["fair"], cache=tmp_path)
    (file,) = tmp_path.iterdir()
    again = tv.design(Q, 0.5, properties=["fair"], cache=tmp_path)
    assert again.seconds == 0
    assert again.mechanism == first.mechanism
    assert (again.objective, again.lower_bound) == (first.objective, first.lower_bound)
    data = json.loads(file.read_text())
    data["objective"] = 0.125
    file.write_text(json.dumps(data))
    assert tv.design(Q, 0.5, properties=["fair"], cache=tmp_path).objective == 0.125
    tv.design(Q, 0.5, properties=["fair"], prior=SKEWED, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mechanism": {}}'])
def test_a_spoilt_cache_is_recomputed(tmp_path, text):
    tv.design(Q, 0.5, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(text)
    assert tv.design(Q, 0.5, cache=tmp_path).seconds > 0


def test_progress_is_reported_and_interruption_passes_through():
    seen = []
    before = signal.getsignal(signal.SIGINT)
    tv.design(Q, 0.5, method="lp", progress=lambda *state: seen.append(state))
    assert [iteration for iteration, _ in seen] == list(range(len(seen)))

    def interrupt(iteration, objective):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        tv.design(Q, 0.5, method="lp", progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("place", ["terminal", "notebook", "file"])
@pytest.mark.parametrize("progress", [None, True, False])
def test_one_progress_line_on_a_terminal_and_in_a_notebook(place, progress, monkeypatch):
    """It is written over itself, and removed at the end."""
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(solver, "SECONDS_BEFORE_SHOWN", 0.0)
    screen = io.StringIO()
    screen.isatty = lambda: place == "terminal"
    monkeypatch.setattr("sys.stderr", screen)
    if place == "notebook":
        shell = SimpleNamespace(kernel=object())
        monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
    tv.design(Q, 0.5, method="lp", progress=progress)
    shown = screen.getvalue()
    if progress is False or place == "file":
        assert shown == ""
        return
    assert "Designing for Query.count(upper=12): iteration" in shown
    assert ("(Ctrl-C stops)" in shown) == (place == "terminal")
    *_, last, cleared, end = shown.split("\r")
    assert "\n" not in shown
    assert len(cleared) >= len(last.strip())
    assert cleared.strip() == end == ""


@pytest.mark.parametrize("method", ["auto", "lp"])
def test_a_design_is_frozen_and_tells_about_itself(method):
    found = tv.design(Q, 0.5, method=method)
    with pytest.raises(AttributeError):
        found.objective = 0
    assert "proved within" in str(found)
    assert repr(found).startswith("Design(Query.count(upper=12), objective=")
    assert len(repr(found)) < 100
    assert "\n" not in repr(found)
    assert tv.Design.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_options_are_listed_once():
    """The signature of `design` follows `DesignOptions`, in names and in defaults."""
    given = inspect.signature(tv.design).parameters
    listed = {field.name: field.default for field in dataclasses.fields(DesignOptions)}
    assert {name: one.default for name, one in given.items() if name in listed} == listed
    assert set(given) - set(listed) == {"query", "epsilon"}


@pytest.mark.parametrize(
    ("query", "epsilon", "options"),
    [
        (tv.Query.mean(records=10, lower=0, upper=4), 20, {}),
        (tv.Query.mean(records=3, lower=0, upper=2), 20, {"properties": ["fair"]}),
        (tv.Query.count(40), 20, {"properties": ["column_monotone"], "worst_case": True}),
    ],
)
def test_where_the_solver_has_no_digits_left_a_closed_form_serves(query, epsilon, options):
    found = tv.design(query, epsilon, **options)
    assert found.objective <= tv.randomized_response(query, epsilon).worst_loss() * (1 + 1e-9)
    assert 0 <= found.lower_bound <= found.objective
    assert found.mechanism.realised_epsilon() <= epsilon * (1 + 1e-9)
