"""Damage any file of a folder and write its checksums again: nothing that was changed passes.

Certificates are changed value by value and sealed again as a forger would; a verifier that shares
no code with the program must find private what the program accepts.
"""

import json
import random

import pytest

import tallyveil as tv
from tallyveil.proof import certificate as document
from tests.attacks import forging, releases
from tests.independent import judge as second

NAMES = ("data.csv", "datapackage.json", "METHODOLOGY.html", "receipt.json", "mechanism.json",
         "certificate.json", "SHA256SUMS")  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return releases.make_release("fair", tmp_path_factory.mktemp("honest"))


def damage(content, draw):
    """Make one small change of a text, of many kinds."""
    place = draw.randrange(len(content))
    lines = content.split(b"\n")
    row = draw.randrange(len(lines) - 1)
    return draw.choice(
        (
            lambda: (
                content[:place]
                + bytes([content[place] ^ 1 << draw.randrange(7)])
                + content[place + 1 :]
            ),
            lambda: content[:place] + content[place + 1 :],
            lambda: content[:place] + b" " + content[place:],
            lambda: b"\n".join(lines[:row] + lines[row + 1 :]),
            lambda: b"\n".join(lines[: row + 1] + lines[row:]),
            lambda: content + draw.choice((b" ", b"\n", b"\x00", b"<script>")),
            lambda: b"\xef\xbb\xbf" + content,
            lambda: content.replace(b"\n", b"\r\n"),
        )
    )()


def damage_files(honest, place, times):
    """List the damaged files that pass."""
    draw = random.Random(7)
    passed = []
    forged, _ = forging.copy(honest, place)
    for name in NAMES:
        path = forged / name
        content = path.read_bytes()
        for _ in range(times):
            changed = damage(content, draw)
            path.write_bytes(changed)
            check = forging.checks if name == "SHA256SUMS" else forging.passes
            if changed != content and check(forged):
                passed.append((name, changed))
        path.write_bytes(content)
        forging.reseal(forged)
    assert forging.checks(forged)
    return passed


@pytest.mark.parametrize("times", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_no_small_change_of_any_file_passes(honest, tmp_path, times):
    assert damage_files(honest, tmp_path, times) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[::-1],
        lambda lines: [*lines, lines[0]],
        lambda lines: [*lines, "0" * 64 + "  ../x"],
        lambda lines: [line.upper() for line in lines],
        lambda lines: [line.replace("  ", " *") for line in lines],
        lambda lines: [*lines, ""],
        lambda lines: lines[1:],
    ],
)
def test_checksums_have_one_form(honest, tmp_path, change):
    forged = forging.copy(honest, tmp_path)[0]
    lines = (forged / "SHA256SUMS").read_text().splitlines()
    (forged / "SHA256SUMS").write_text("".join(line + "\n" for line in change(lines)))
    assert not forging.checks(forged)


@pytest.mark.parametrize(
    "name", ["x.csv", "receipt.json.bak", "METHODOLOGY.HTML", "mechanism-2.json", ".hidden"]
)
def test_no_file_may_be_added(honest, tmp_path, name):
    forged = forging.copy(honest, tmp_path)[0]
    (forged / name).write_text("1,2,3\n")
    assert not forging.passes(forged)


def certificates():
    query = tv.Query.count(3)
    return {
        "weights": tv.certify(tv.fair(query, 1)),
        "delta": tv.certify(tv.discrete_gaussian(query, 1, delta="1/100")),
        "geometric": tv.certify_geometric(query, 2),
        "noise": tv.certify_noise(2),
        "ladder": tv.Ladder(query, [2, 1]),
        "mean": tv.certify(tv.laplace(tv.Query.mean(2, 0, 2), 1)),
        "listed": tv.certify(
            tv.exponential(tv.Query.custom([0, 1, 2], [0, 1, 2], [(0, 1), (0, 2)]), 1)
        ),
    }


MORE = ("0", "-1", "1/1000000", "700", "1e-9", "nan", [], {}, -1, 2**70, 0.5)


def mutants(data, more):
    """Change one value of the document, with the old seal and with a new one."""
    for path in forging.list_places(data):
        old = forging.get(data, path)
        for value in [*forging.mutate(old), *(MORE if more else ())]:
            if value == old and type(value) is type(old):
                continue
            changed = forging.put(data, path, value)
            yield changed
            if isinstance(changed.get("certificate"), dict):
                yield changed | {"certificate": document.seal(changed["certificate"])}


def judge_mutants(more):
    tried, accepted = 0, []
    for name, honest in certificates().items():
        for changed in mutants(json.loads(honest.to_json()), more):
            tried += 1
            if not tv.verify(changed):
                continue
            accepted.append((name, changed))
            assert second.judge(json.dumps(changed)), f"{name}: accepted and not private"
    return tried, accepted


@pytest.mark.parametrize("more", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_changed_certificate_is_accepted_unless_it_is_private(more):
    tried, accepted = judge_mutants(more)
    assert tried > (4000 if more else 1500)
    free = {"program", "name", "loss", "delta"}  # remarks, and a delta that holds as well
    labelled = {"listed": {"query"}}  # what the answers of a query of one's own are called
    for name, changed in accepted:
        honest = json.loads(certificates()[name].to_json())
        claim = changed.get("certificate", {})
        differing = {
            key
            for key in claim
            if json.dumps(claim[key]) != json.dumps(honest["certificate"].get(key))
            and (key != "query" or claim[key] != honest["certificate"][key])  # a width of 1 or 1.0
        }
        stated = claim.get("achieved_epsilon"), honest["certificate"].get("achieved_epsilon")
        if "achieved_epsilon" in differing and stated[0] == pytest.approx(stated[1], rel=1e-9):
            differing.discard("achieved_epsilon")  # a logarithm in doubles; the proof needs none
        assert differing - {"digest"} <= free | labelled.get(name, set()), (name, differing)
        assert json.dumps(changed | {"certificate": 0}) == json.dumps(honest | {"certificate": 0})
