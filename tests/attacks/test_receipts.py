"""Change any fact of a receipt and write all documents again: what still passes?

Facts that nothing else in the folder depends on cannot be checked by anybody, and are listed
here. Everything else must fail.
"""

import shutil
from fractions import Fraction

import numpy as np
import pytest

from tallyveil.release.column import WIDE
from tallyveil.release.receipt import Receipt
from tests.asking import privatize
from tests.attacks import forging, releases
from tests.attacks.forging import passes
from tests.attacks.releases import COUNTS, KINDS

FREE = {  # names, times and remarks, not the guarantee
    "release",
    "created",
    "program.version",
    "program.fingerprint",
    "ledger.dataset",
    "ledger.entry",
    "ledger.digest",
    "columns.*.why",
    "columns.*.solver",
    "columns.*.method.loss",
    "table.kind",
    "table.row_order",
    "table.where",
    *(f"about.{name}" for name in ("title", "publisher", "contact", "period", "license")),
    "columns.*.groups",  # totals that are left out; those that are stated are computed again
    "a higher cost",  # a guarantee that is weaker than it could be
    "a table of counts",  # where events were counted; the guarantee is about one of them
    "no other cell",  # its label is one of the listed categories then
    "a bound that no count reaches",
}
SHARES = 8
"""Every run forges one in this many places of a receipt; the long run forges all."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Release every kind; each folder has the name of its kind."""
    place = tmp_path_factory.mktemp("honest")
    for name in KINDS:
        releases.make_release(name, place)
    return place


def general(path) -> str:
    """Name a place without the numbers of list entries."""
    words = ["*" if isinstance(key, int) else key for key in path]
    return ".".join(words).removesuffix(".*")


@pytest.mark.parametrize("name", KINDS)
def test_no_change_of_a_receipt_that_means_something_passes(folders, tmp_path, name):
    """Forge a share of the places of each kind, another of each: all together, several times."""
    share = list(KINDS).index(name), SHARES
    assert forge_everything(folders / name, tmp_path, most=2, share=share) > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_no_change_at_all_passes(folders, tmp_path, name):
    """Forge every place in two ways; in the releases that say most, in all ways."""
    most = 9 if name in ("preserve", "fair", "level") else 2
    assert forge_everything(folders / name, tmp_path, most) > 120


def forge_everything(honest, place, most, share=(0, 1)):
    """Change every place in up to `most` ways, by hand and with all documents written again.

    The `share` is a first place, and how many further on the next one is.
    """
    assert forging.checks(honest)
    document = forging.read(honest)
    forged, content = forging.copy(honest, place)
    survivors, tried, rebuilt = set(), 0, 0
    for index, path in enumerate(forging.list_places(document)):
        if index % share[1] != share[0] % share[1]:
            continue
        for value in forging.mutate(forging.get(document, path))[:most]:
            changed = forging.put(document, path, value)
            passed, again = forging.try_fact(forged, content, changed)
            tried, rebuilt = tried + 1, rebuilt + again
            if passed:
                survivors.add(name_survivor(path, passed, document) if again else general(path))
    assert rebuilt > tried // 10, (rebuilt, tried)
    assert survivors <= FREE
    return tried


def name_survivor(path, forged, document):
    """Name the place, or what the receipt states instead where that is as true."""
    if path == ("table", "counted_by") and not forged["table"].get("counted_by"):
        return "a table of counts"
    if path == ("table", "other") and not forged["table"].get("other"):
        return "no other cell"
    if general(path) == "columns.*.upper" and document["columns"][0]["upper"] > WIDE:
        return "a bound that no count reaches"
    if general(path) == "columns.*.method.upper_column" and not forging.get(forged, path):
        return "a bound that no count reaches"
    if path == ("unit", "separate") and forging.get(forged, path):
        return "a higher cost"  # than what is left to promise: no two in the same row
    costs = [Fraction(one["statement"]["epsilon_exact"]) for one in (forged, document)]
    dearer = path == ("disjoint",) and costs[0] > costs[1]
    return "a higher cost" if dearer else general(path)


@pytest.mark.parametrize("name", KINDS)
def test_the_forger_rebuilds_honest_folders_byte_for_byte(folders, tmp_path, name):
    forging.require_same_documents(folders / name, tmp_path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("METHODOLOGY.html", lambda text: text.replace("epsilon 1", "epsilon 0.01")),
        ("METHODOLOGY.html", lambda text: text + "<script>alert(1)</script>"),
        ("datapackage.json", lambda text: text.replace('"integer"', '"number"')),
        ("datapackage.json", lambda text: text.replace('"maximum": 9', '"maximum": 90')),
    ],
)
def test_other_documents_must_be_those_of_the_receipt(folders, tmp_path, name, change):
    forged, _ = forging.copy(folders / "preserve", tmp_path)
    text = (forged / name).read_text(encoding="utf-8")
    assert change(text) != text
    (forged / name).write_text(change(text), encoding="utf-8")
    assert not passes(forged)


def add_true_counts(folder):
    text = (folder / "data.csv").read_text().splitlines()
    lines = [f"{text[0]},truth", *(f"{line},{c}" for line, c in zip(text[1:], COUNTS, strict=True))]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")


def drop_columns(folder):
    forging.write(folder, forging.read(folder) | {"columns": []})


def drop_certificates(folder):
    """Leave no certificate but that of the counts, and a promise of what that one costs."""
    document = forging.read(folder)
    column = document["columns"][0]
    column["stages"] = column["stages"][-1:]
    forging.write(folder, Receipt.from_dict(document).to_dict())
    for name in ("mechanism-distribution.json", "certificate-distribution.json"):
        (folder / name).unlink()


def replace_counts(folder):
    head, *lines = (folder / "data.csv").read_text().splitlines()
    rows = np.array([line.split(",") for line in lines])
    rows[:, 1] = "3"
    (folder / "data.csv").write_text("\n".join([head, *map(",".join, rows)]) + "\n")


@pytest.mark.parametrize(
    "forge",
    [
        add_true_counts,
        replace_counts,
        lambda folder: forging.write(folder, forging.read(folder) | {"version": 2}),
        drop_certificates,
        drop_columns,
        lambda folder: (folder / "raw.csv").write_text("\n".join(map(str, COUNTS))),
        lambda folder: (folder / "mechanism-distribution.json").unlink(),
        lambda folder: (folder / "receipt.json").write_text("{}"),
        lambda folder: (folder / "receipt.json").write_text('{"a": 1, "a": 2}'),
        lambda folder: (folder / "link").symlink_to("/etc/hostname"),
    ],
)
def test_raw_data_beside_a_good_receipt_does_not_pass(folders, tmp_path, forge):
    forged, _ = forging.copy(folders / "preserve", tmp_path)
    forge(forged)
    assert not passes(forged)


def test_levels_glued_together_from_two_releases_do_not_pass(tmp_path):
    for name, upper in (("one", 9), ("two", 12)):
        privatize(COUNTS, upper=upper, epsilons=[2, 1], out=tmp_path / name)
    assert forging.checks(tmp_path / "one")
    shutil.rmtree(tmp_path / "one" / "level-2-epsilon-1")
    shutil.copytree(tmp_path / "two" / "level-2-epsilon-1", tmp_path / "one" / "level-2-epsilon-1")
    assert not forging.checks(tmp_path / "one")


def test_a_level_folder_may_not_be_renamed_and_ten_levels_keep_their_order(tmp_path):
    levels = [12 - at for at in range(11)]
    privatize(COUNTS, upper=5, epsilons=levels, out=tmp_path / "many")
    assert forging.checks(tmp_path / "many")
    (tmp_path / "many" / "level-3-epsilon-10").rename(tmp_path / "many" / "level-3-epsilon-0.1")
    assert not forging.checks(tmp_path / "many")
