"""Data flows one way: a module imports only from layers before its own."""

import ast
from pathlib import Path

import pytest

import tallyveil

LAYERS = [
    "_version", "_lazy", "arrays", "errors", "exact", "answers", "neighbours", "query", "prior",
    "loss", "properties", "audit", "formats", "figures", "notebook", "matrix", "measures",
    "mechanism", "mechanisms", "proof", "sampling", "certified", "optimize", "reading", "evaluate",
    "budget", "tables", "publish", "papers", "results", "cli", "__main__",
]  # fmt: skip
HOMES = {  # the only modules that may import each heavy library
    "clarabel": {"optimize.solver"},
    "scipy.optimize.linprog": {"optimize.solver"},
    "cryptography": {"sampling.entropy"},
    "matplotlib": {"figures"},
    "sqlite3": {"budget.sqlite"},
    "pyarrow": {"tables.arrow"},
    "pandas": {"tables.pandas"},
    "polars": {"tables.polars"},
    "typer": {"cli"},
    "rich": {"cli", "optimize.progress", "evaluate.comparison"},
}
PACKAGE = Path(tallyveil.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports(path: Path) -> set[str]:
    """Every module imported anywhere in the file, type-checking blocks apart."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_imports_only_from_lower_layers(path):
    own = LAYERS.index(dotted(path).split(".")[0])
    for name in imports(path):
        if name.startswith("tallyveil."):
            layer = name.split(".")[1]
            if layer in LAYERS:
                assert LAYERS.index(layer) <= own, f"{dotted(path)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_heavy_libraries_have_one_home(path):
    module = dotted(path)
    for name in imports(path):
        for library, homes in HOMES.items():
            if name == library or name.startswith(library + "."):
                assert module in homes or module.split(".")[0] in homes, f"{module}: {name}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_random_bits_have_one_source(path):
    if dotted(path) == "sampling.entropy":
        return
    text = path.read_text(encoding="utf-8")
    for forbidden in ("np.random", "numpy.random", "import random", "os.urandom", "secrets."):
        assert forbidden not in text


def test_every_layer_exists():
    present = {dotted(path).split(".")[0] for path in MODULES}
    assert present <= set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_only_the_command_line_imports_the_papers(path):
    if dotted(path).split(".")[0] not in ("papers", "cli"):
        assert not any(name.startswith("tallyveil.papers") for name in imports(path))
