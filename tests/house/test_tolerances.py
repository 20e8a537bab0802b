"""Every small number of the core is a named constant that says what it bounds."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tallyveil"
TOP = "arrays errors exact answers neighbours query prior loss properties matrix formats"
PROOF = "repair weights rounding exponent"
CORE = [
    *(PACKAGE / f"{name}.py" for name in TOP.split()),
    *(PACKAGE / "proof" / f"{name}.py" for name in PROOF.split()),
    *(PACKAGE / "mechanisms").glob("*.py"),
    *(PACKAGE / "sampling").glob("*.py"),
    PACKAGE / "certified" / "transport.py",
]


def is_small(node: ast.AST) -> bool:
    """Return whether a node is a number between 0 and 0.01, such as 1e-9 or 2**-30."""
    power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    if not (power and not isinstance(node.left, ast.Name)) and not isinstance(node, ast.Constant):
        return False
    try:
        number = eval(ast.unparse(node), {})
    except (NameError, SyntaxError):
        return False
    return isinstance(number, float) and 0 < number < 0.01


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
def test_small_numbers_have_names_and_meanings(path):
    """They are constants of the module, with a sentence below or beside, or defaults."""
    source = path.read_text(encoding="utf-8")
    body = ast.parse(source).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and any(map(is_small, ast.walk(node.value))):
            sentence = source.splitlines()[node.end_lineno - 1].partition("  # ")[2]
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                sentence = after.value.value
            assert len(sentence.split()) > 4, ast.unparse(node)
        for function in ast.walk(node):
            if isinstance(function, ast.FunctionDef):
                inside = (part for line in function.body for part in ast.walk(line))
                assert not any(map(is_small, inside)), function.name
