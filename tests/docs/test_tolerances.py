"""The page of tolerances lists every one, with its value and its meaning."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tallyveil"
CORE = [
    *(PACKAGE / f"{name}.py" for name in ("arrays", "errors", "exact", "answers", "neighbours")),
    *(PACKAGE / f"{name}.py" for name in ("query", "prior", "loss", "properties", "matrix")),
    PACKAGE / "formats.py",
    *(PACKAGE / "mechanisms").glob("*.py"),
    *(PACKAGE / "sampling").glob("*.py"),
    *(PACKAGE / "proof" / f"{name}.py" for name in ("repair", "weights", "rounding", "exponent")),
    PACKAGE / "certified" / "transport.py",
]


def dotted(path):
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs" / "tolerances.md").read_text(encoding="utf-8")


def test_the_page_lists_every_constant(generate, page):
    found = generate.tolerances()
    assert found["query.GRID_TOLERANCE"][0] == "1e-09"
    assert len(found) > 20
    assert page == generate.tolerances_page(), "run: python docs/generate.py"


def test_the_text_names_constants_that_exist(generate, page):
    named = set(re.findall(r"`([\w.]+\.[A-Z_]+)`", page))
    assert named <= set(generate.tolerances())


def test_every_constant_of_the_core_says_what_it_bounds(generate):
    modules = set(map(dotted, CORE))
    for name, (_, meaning) in generate.tolerances().items():
        if name.rpartition(".")[0] in modules:
            assert len(meaning.split()) > 4, name


@pytest.mark.parametrize("path", CORE, ids=dotted)
def test_the_core_has_no_tolerance_without_a_name(path):
    """Small numbers stand in module-level constants, or are the default of an argument."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for statement in function.body:
            for node in ast.walk(statement):
                small = isinstance(node, ast.Constant) and isinstance(node.value, float)
                assert not (small and 0 < node.value < 0.01), f"line {node.lineno}"
