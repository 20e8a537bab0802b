"""The verifier: accepts what holds, names what does not, and never trusts a file."""

import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.proof import certificate as document
from tallyveil.proof.exponent import Growth
from tallyveil.proof.ratios import check_weights
from tallyveil.proof.verify import describe_findings

QUERIES = [
    tv.Query.count(6), tv.Query.mean(records=3, lower=0, upper=2), tv.Query.maximum(0, 5),
    tv.Query.custom(range(4), range(4), [(0, 1), (1, 3), (3, 2)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def certified():
    return tv.certify(tv.geometric(tv.Query.count(6), 1.0))


def resealed(certified, weights: np.ndarray) -> dict:
    """A document with other weights whose hashes and findings all fit: only privacy is left."""
    claim = dict(certified.certificate)
    claim["weights_sha256"] = document.weights_sha256(weights)
    query = certified.query
    found = check_weights(weights, query.neighbours, certified.exact_epsilon)
    claim |= describe_findings(found)
    data = certified.to_dict()
    return {**data, "certificate": document.seal(claim), "weights": document.rows_text(weights)}


def test_holds_as_object_document_and_file(certified, tmp_path):
    path = certified.save(tmp_path / "mechanism.json")
    for source in (certified, certified.to_dict(), path, str(path)):
        verdict = tv.verify(source)
        assert verdict
        assert verdict.epsilon == 1
        assert verdict.reason == "Private: 6 neighbour pairs and 7 outputs checked in integers."
        assert abs(verdict.achieved_epsilon - 1) < 1e-12


def test_certificate_beside_its_mechanism(certified, tmp_path):
    path = certified.save_certificate(tmp_path / "certificate.json")
    assert "not beside it" in tv.verify(path).reason
    certified.save(tmp_path / "mechanism.json")
    assert tv.verify(path)
    assert tv.load(path) == certified
    tv.certify(tv.geometric(tv.Query.count(6), 2.0)).save(tmp_path / "mechanism.json")
    assert "not the one inside" in tv.verify(path).reason


def test_saved_text_is_stable(certified, tmp_path):
    path = certified.save(tmp_path / "mechanism.json")
    again = tv.load(path)
    assert again.to_json() == path.read_text(encoding="utf-8")
    assert document.canonical(json.loads(certified.to_json())) == certified.to_json()
    assert np.array_equal(again.weights, certified.weights)


def test_wanted_epsilon(certified):
    assert tv.verify(certified, epsilon=1)
    assert tv.verify(certified, epsilon="1.5")
    verdict = tv.verify(certified, epsilon=0.999)
    assert not verdict
    assert "above the wanted 999/1000" in verdict.reason


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_one_unit_too_many_at_the_boundary_fails(query, private):
    """Tight cells: raise a weight to its cap (holds), then by one more (fails)."""
    certified = tv.certify(tv.exponential(query, 1.0))
    growth = Growth.of(certified.exact_epsilon)
    pairs = query.neighbours.pairs
    rng = np.random.default_rng(1)
    for _ in range(30):
        i, k = rng.permutation(pairs[rng.integers(len(pairs))])
        j = int(rng.integers(query.shape[1]))
        weights = certified.weights.copy()
        cap = int(growth.cap(weights[k, j : j + 1])[0])
        beside = [a if b == i else b for a, b in pairs if i in (a, b)]
        cap = min([cap, *(int(growth.cap(weights[a, j : j + 1])[0]) for a in beside)])
        weights[i, j] = cap
        assert private(weights[:, [j]].tolist(), pairs.tolist(), certified.exact_epsilon)
        weights[i, j] = cap + 2  # the rational bound is within one unit of the true factor
        assert not private(weights[:, [j]].tolist(), pairs.tolist(), certified.exact_epsilon)
        weights[i, j] = cap + 1
        rest = [c for c in range(query.shape[1]) if c != j]
        weights[i, rest[0]] += 2**62 - int(weights[i].sum())
        verdict = check_weights(weights, query.neighbours, certified.exact_epsilon)
        assert not verdict.ok


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_weight_mutants_with_every_hash_renewed(query, private):
    """1,200 mutants over four graphs: none accepted that exact arithmetic rejects."""
    peaked = tv.Mechanism(np.eye(*query.shape), query, 1.0)
    certified = tv.certify(tv.repair(peaked).mechanism)  # tight almost everywhere
    rng = np.random.default_rng(2)
    rejected = 0
    for _ in range(300):
        weights = certified.weights.copy()
        i = int(rng.integers(query.shape[0]))
        j, k = rng.choice(query.shape[1], size=2, replace=False)
        step = min(int(2 ** rng.uniform(0, 62)), int(weights[i, j]))
        weights[i, j] -= step
        weights[i, k] += step if rng.random() < 0.9 else step + int(rng.choice([-1, 1]))
        holds = bool((weights.sum(axis=1) == 2**62).all()) and private(
            weights.tolist(), query.neighbours.pairs.tolist(), Fraction(1)
        )
        verdict = tv.verify(resealed(certified, weights))
        assert not (verdict.ok and not holds), verdict
        rejected += not verdict.ok
        assert not tv.verify({**certified.to_dict(), "weights": document.rows_text(weights)})
    assert 50 < rejected < 290  # it rejects, and not everything


def test_every_kind_of_byte_mutant_fails(certified, tmp_path):
    """500 mutants of the mechanism file and 250 of the certificate beside it."""
    whole = certified.save(tmp_path / "mechanism.json")
    alone = certified.save_certificate(tmp_path / "certificate.json")
    assert tv.verify(alone)
    rng = np.random.default_rng(3)
    for path, mutants in ((whole, 500), (alone, 250)):
        original = path.read_bytes()
        for _ in range(mutants):
            changed = bytearray(original)
            at = int(rng.integers(len(changed)))
            kind = int(rng.integers(3))
            if kind == 0:
                changed[at] = (changed[at] + int(rng.integers(1, 256))) % 256
            elif kind == 1:
                changed.insert(at, int(rng.choice(list(b' 0123456789"\n,'))))
            else:
                del changed[at]
            path.write_bytes(bytes(changed))
            assert bytes(changed) == original or not tv.verify(path)
        path.write_bytes(original)


def test_every_single_byte_of_the_certificate_counts(certified, tmp_path):
    certified.save(tmp_path / "mechanism.json")
    path = certified.save_certificate(tmp_path / "certificate.json")
    original = path.read_bytes()
    for at in range(len(original)):
        changed = bytearray(original)
        changed[at] ^= 1
        path.write_bytes(bytes(changed))
        assert not tv.verify(path)


def test_failure_names_pair_output_and_ratio(certified):
    weights = certified.weights.copy()
    weights[2, 5] += 2**58
    weights[2, 2] -= 2**58
    verdict = tv.verify(resealed(certified, weights))
    assert not verdict.ok
    assert (verdict.worst.likelier, verdict.worst.rarer, verdict.worst.output) in {
        (2, 1, 5), (3, 2, 2), (1, 2, 2),
    }  # fmt: skip
    assert verdict.worst.epsilon > 1
    for word in ("output", "inputs", "weights", "ratio"):
        assert word in verdict.reason
    weights = certified.weights.copy()
    weights[0, 1] += weights[0, 6]
    weights[0, 6] = 0  # a zero beside a positive
    verdict = tv.verify(resealed(certified, weights))
    assert not verdict.ok
    assert verdict.worst.epsilon == np.inf


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [("epsilon", "1/2", "factor is not"), ("version", 2, "version"),
     ("neighbours", {"kind": "band", "size": 7, "width": 2}, "neighbours"),
     ("shape", [7, 8], "shape"), ("total_bits", 61, "bits"),
     ("achieved_epsilon", 0.5, "achieved"), ("law", "geometric", "do not belong"),
     ("query", {"kind": "nothing"}, "readable"), ("query", [], "readable")],
)  # fmt: skip
def test_resealed_lies_are_found(certified, field, value, reason):
    claim = document.seal({**certified.certificate, field: value})
    verdict = tv.verify({**certified.to_dict(), "certificate": claim})
    assert not verdict.ok
    assert reason in verdict.reason


def test_a_smaller_epsilon_with_its_own_factor_is_refused(certified):
    growth = Growth.of(Fraction(1, 2))
    claim = {**certified.certificate, "epsilon": "1/2"}
    claim["growth"] = {"numerator": str(growth.numerator), "shift": growth.shift}
    verdict = tv.verify({**certified.to_dict(), "certificate": document.seal(claim)})
    assert "Not private at epsilon 1/2: output" in verdict.reason


def test_wrapped_totals_are_seen():
    """Five weights of 2^62 sum to 2^62 modulo 2^64."""
    weights = np.full((2, 5), 2**62)
    verdict = check_weights(weights, tv.Query.count(1).neighbours, Fraction(1))
    assert verdict.reason == "Row 0 does not total 2^62."


DEEP = "[" * 100_000
HOLLOW = '{"format": "tallyveil-certified-mechanism"}'
NESTED = '{\n "certificate": [],\n "format": "tallyveil-certified-mechanism",\n "version": 1\n}\n'


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", "{", "\xff\xfe", '{"format": 3}', DEEP, HOLLOW, NESTED]
)
def test_unreadable_files_give_a_verdict(text, tmp_path):
    path = tmp_path / "mechanism.json"
    path.write_bytes(text.encode("latin-1"))
    verdict = tv.verify(path)
    assert not verdict.ok
    assert verdict.reason
    assert not tv.verify(tmp_path / "nothing.json")
    assert not tv.verify(17)


def test_an_uncertified_mechanism_does_not_verify(tmp_path):
    mechanism = tv.geometric(tv.Query.count(3), 1.0)
    assert "tallyveil-mechanism" in tv.verify(mechanism).reason
    path = tmp_path / "m.json"
    path.write_text(mechanism.to_json(), encoding="utf-8")
    with pytest.raises(tv.VerificationError, match="Not a certified"):
        tv.load(path)


def test_delta_certificates_check_the_hockey_stick():
    certified = tv.certify(tv.discrete_gaussian(tv.Query.count(12), 1.0, 1e-4))
    assert tv.verify(certified)
    claim = document.seal({**certified.certificate, "delta": "1/20000"})
    verdict = tv.verify({**certified.to_dict(), "certificate": claim})
    assert "need delta" in verdict.reason


def test_geometric_law_lies_are_found():
    certified = tv.certify_geometric(tv.Query.mean(records=4, lower=0, upper=5), 1.0)
    assert tv.verify(certified)
    data = certified.to_dict()
    noise = {**data["noise"], "epsilon": "1"}  # five steps apart would cost 5
    claim = {**data["certificate"], "weights_sha256": document.digest(noise)}
    verdict = tv.verify({**data, "noise": noise, "certificate": document.seal(claim)})
    assert "5 steps apart" in verdict.reason


def test_verifying_imports_no_solver_and_no_design_code(certified, tmp_path):
    path = certified.save(tmp_path / "mechanism.json")
    probe = (
        "import sys, json, tallyveil as tv; ok = bool(tv.verify(sys.argv[1]));"
        "print(json.dumps([ok, sorted(sys.modules)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, str(path)], capture_output=True, text=True, check=True
    )
    ok, modules = json.loads(done.stdout)
    assert ok
    ours = {name.split(".")[1] for name in modules if name.startswith("tallyveil.")}
    assert ours <= {
        "_lazy", "_version", "answers", "arrays", "proof", "errors", "exact", "neighbours",
        "passwords", "query", "untrusted",
    }  # fmt: skip
    solvers = {"scipy", "clarabel", "highspy", "cryptography"}
    assert not solvers & {name.split(".")[0] for name in modules}
