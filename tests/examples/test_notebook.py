"""The example notebook runs from top to bottom, and what it shows is a picture or a table."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "tour.ipynb"
CELLS = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


def run_cell(source, names):
    """Run a cell as a notebook does: the value of a last expression is what it shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


@pytest.fixture(scope="module")
def shown():
    names = {}
    values = [run_cell(source, names) for source in CODE]
    return {type(value).__name__: value for value in values if value is not None}


def test_it_has_no_outputs():
    for cell in CELLS:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


def test_every_kind_of_result_is_shown(shown):
    assert set(shown) == {"Mechanism", "Design", "Comparison", "Release", "Posterior"}


@pytest.mark.parametrize("kind", ["Mechanism", "Design", "Release", "Posterior", "Comparison"])
def test_it_draws_itself_without_scripts_or_addresses(shown, kind):
    picture = shown[kind]._repr_html_()
    assert ("<table" if kind == "Comparison" else "<svg") in picture
    assert "<script" not in picture
    assert "://" not in picture.replace("http://www.w3.org/2000/svg", "")
