"""A bare import loads almost nothing; heavy libraries come when they are used."""

import json
import subprocess
import sys

PROBE = "import sys; {}; import json; print(json.dumps(sorted(sys.modules)))"
HEAVY = {
    "scipy",
    "clarabel",
    "cryptography",
    "matplotlib",
    "pyarrow",
    "pandas",
    "polars",
    "python_calamine",
    "xlsxwriter",
    "pyreadstat",
    "sqlite3",
    "typer",
    "rich",
}


def loaded_by(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement)], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def test_bare_import_loads_no_other_module_of_ours():
    ours = {name for name in loaded_by("import tallyveil") if name.startswith("tallyveil")}
    assert ours == {"tallyveil", "tallyveil._lazy"}


def test_bare_import_loads_no_library_at_all():
    assert not (HEAVY | {"numpy"}) & loaded_by("import tallyveil")


def test_building_a_mechanism_needs_numpy_alone():
    build = "import tallyveil as tv; tv.geometric(tv.Query.count(3), 1.0).properties()"
    assert not HEAVY & loaded_by(build)


def test_the_command_line_starts_without_numerical_libraries():
    light = loaded_by("import tallyveil.cli")
    assert not (HEAVY - {"typer", "rich"} | {"numpy"}) & light
