"""A receipt of version 1 is read with fewer certificates: it may say only what such receipts said.

Noise for all contributions of one unit, contributions in different rows and deltas came later. A
forger who dresses a release as an old one, and adds one of those words, would state less than it
cost.
"""

import json
import shutil
from fractions import Fraction
from html import escape
from pathlib import Path

import pytest

import tallyveil as tv
from tallyveil.documents.files import FileFacts, describe_data
from tallyveil.documents.receipt import Receipt
from tallyveil.exact import exact_rational
from tallyveil.publish.folder import CHECKSUMS, checksums_text
from tallyveil.request.unit import PrivacyUnit
from tallyveil.tables.source import read_table

OLD = Path(__file__).parents[1] / "golden" / "version-1" / "two-columns"


def read(folder):
    return json.loads((folder / "receipt.json").read_text(encoding="utf-8"))


def state(document, folder):
    """Write what follows from a forged document, as the check of old receipts works it out."""
    costs = Receipt.from_dict(document)
    document["epsilon"], document["epsilon_exact"] = float(costs.epsilon), str(costs.epsilon)
    document["stages"] = [stage for column in document["columns"] for stage in column["stages"]]
    document["multiplier"] = costs.multiplier
    page = (folder / "METHODOLOGY.html").read_text(encoding="utf-8")
    told = Receipt.from_dict(read(folder)).promise
    document["promise"] = costs.promise
    page = page.replace(escape(told), escape(costs.promise))
    (folder / "METHODOLOGY.html").write_text(page, encoding="utf-8")
    (folder / "receipt.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    data = folder / costs.table.file
    described = describe_data(read_table(data), FileFacts.of(data.read_bytes()), costs)
    (folder / "datapackage.json").write_bytes(described)
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != CHECKSUMS}
    (folder / CHECKSUMS).write_text(checksums_text(files))


def cost_of_each(document, spend):
    """Let every stage cost `spend` of its certified epsilon, and say so."""
    for column in document["columns"]:
        (stage,) = column["stages"]
        cost = spend(exact_rational(column["mechanism"]["epsilon"]))
        stage["epsilon"], stage["epsilon_exact"] = float(cost), str(cost)
    return document


def forge_one_row(document):
    """Noise for one move of one count, called noise for all 50 of a unit."""
    document |= {"contributions": 50, "one_row": True, "neighbours": "add_remove"}
    cost_of_each(document, lambda epsilon: epsilon)
    for column in document["columns"]:
        column["method"] = "staircase"
        share = exact_rational(column["mechanism"]["epsilon"]) / 50
        column["epsilon"], column["epsilon_exact"] = float(share), str(share)


def forge_separate_rows(document):
    """Contributions composed with a delta, in a receipt that states a delta of 0."""
    document |= {"contributions": 50, "separate_rows": {"delta": "1/1000"}}
    unit = PrivacyUnit("person", document["neighbours"], 50, delta=Fraction(1, 1000))
    cost_of_each(document, unit.charge)
    for column in document["columns"]:
        column["method"] = "geometric"


@pytest.mark.parametrize("forge", [forge_one_row, forge_separate_rows])
def test_an_old_receipt_with_a_later_unit_does_not_pass(forge, tmp_path):
    folder = shutil.copytree(OLD, tmp_path / "r")
    assert all(found.ok for found in tv.check_package(folder))
    document = read(folder)
    forge(document)
    state(document, folder)
    assert not all(found.ok for found in tv.check_package(folder))


def test_an_old_receipt_states_its_parameters_once(tmp_path):
    folder = shutil.copytree(OLD, tmp_path / "r")
    document = read(folder)
    document["privacy_loss"]["privacy_parameters"]["epsilon"] = 0.01
    state(document, folder)
    assert not all(found.ok for found in tv.check_package(folder))
