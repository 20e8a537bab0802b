"""Data flows one way, as docs/architecture.md says: its table is read here and compared."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tallyveil

PACKAGE = Path(tallyveil.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
HOMES = {  # the only modules that may import each heavy library
    "clarabel": {"optimize.solver"},
    "scipy.optimize.linprog": {"optimize.solver", "sums.grouping"},
    "cryptography": {"sampling.entropy", "spark.files"},
    "matplotlib": {"notebook"},
    "sqlite3": {"budget.sqlite"},
    "psycopg": {"budget.postgresql"},
    "pyarrow": {
        "tables.columnar",
        "tables.counts",
        "tables.databases",
        "tables.duplicates",
        "tables.excel",
        "tables.export",
        "tables.frames",
        "tables.labels",
        "tables.published",
        "tables.statistics",
        "tables.subtotals",
        "tables.table",
        "tables.text",
        "tables.write",
        "spark",
    },
    "pandas": {"tables.frames"},
    "polars": {"tables.frames"},
    "duckdb": {"tables.databases"},
    "adbc_driver_postgresql": {"tables.databases"},
    "adbc_driver_manager": {"tables.databases"},
    "pyspark": {"spark.jobs"},
    "opendp": {"opendp"},
    "dp_accounting": {"dp_accounting"},
    "python_calamine": {"tables.excel"},
    "xlsxwriter": {"tables.export"},
    "pyreadstat": {"tables.statistics", "tables.export"},
    "typer": {"cli"},
    "starlette": {"studio"},
    "uvicorn": {"studio"},
    "jinja2": {"studio", "release.page"},
    "xstatic": {"studio"},
    "rich": {"cli", "optimize.solver", "evaluate"},
}


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


NAMES = {dotted(path) for path in MODULES}


def read_rooms() -> dict[str, tuple[set[str], set[str], set[str]]]:
    """Every room of the page: its modules, what it imports from, what it must not know."""
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("| Room | Packages and modules |")
    rooms = {}
    for line in text[start:].splitlines()[2:]:
        if not line.startswith("|"):
            break
        name, parts, imported, unknown = (cell.strip() for cell in line.strip("|").split("|"))
        listed = set()
        for word in re.findall(r"`([\w.]+)`", parts):
            inside = {module for module in NAMES if f"{module}.".startswith(f"{word}.")}
            assert inside, f"the page lists {word}, which is not there"
            listed |= inside
        sources = {word.strip() for word in imported.split(",") if word.strip()}
        rooms[name.strip("`")] = listed, sources, set(re.findall(r"`([\w.]+)`", unknown))
    return rooms


ROOMS = read_rooms()
ORDER = list(ROOMS)


def room_of(module: str) -> str:
    """The room of one of our modules."""
    return next(room for room, (modules, _, _) in ROOMS.items() if module in modules)


@cache
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


def own_imports(path: Path) -> set[str]:
    """Which of our own modules a file imports."""
    found = set()
    for name in imports(path):
        if name.startswith("tallyveil."):
            rest = name.removeprefix("tallyveil.")
            home = rest if rest in NAMES else rest.rpartition(".")[0]
            if home in NAMES:
                found.add(home)
    return found


def test_every_module_is_in_one_room():
    listed = [module for modules, _, _ in ROOMS.values() for module in modules]
    assert sorted(listed) == sorted(NAMES)


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_module_imports_only_from_rooms_above(path):
    room = room_of(dotted(path))
    for name in own_imports(path):
        assert ORDER.index(room_of(name)) <= ORDER.index(room), f"{dotted(path)} imports {name}"


def test_no_modules_import_each_other_in_a_circle():
    imported = {dotted(path): own_imports(path) for path in MODULES}
    tuple(TopologicalSorter(imported).static_order())


@pytest.mark.parametrize("room", ORDER)
def test_the_page_states_exactly_what_each_room_imports(room):
    found = {
        room_of(name)
        for path in MODULES
        if room_of(dotted(path)) == room
        for name in own_imports(path)
    }
    assert found - {room} == ROOMS[room][1]


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_room_does_not_know_what_it_must_not(path):
    for forbidden in ROOMS[room_of(dotted(path))][2]:
        for name in imports(path):
            known = name.removeprefix("tallyveil.")
            assert not f"{known}.".startswith(forbidden + "."), name


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


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_nothing_else_imports_the_papers(path):
    if dotted(path).split(".")[0] != "papers":
        assert not any(name.startswith("tallyveil.papers") for name in imports(path))


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_no_module_is_longer_than_800_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 800
