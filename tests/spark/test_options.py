"""Every option of one machine is taken for a table on many: rows stay there or are brought here."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil import spark
from tallyveil.check.package import check_package
from tallyveil.cli.app import app
from tallyveil.publish.transaction import publish_table
from tallyveil.request.options import ReleaseOptions
from tallyveil.tables import spark as engine
from tallyveil.tables import spark_jobs

OPTIONS = {"count": "cases", "keep": ["id", "ward"], "drop": ["note", "deaths"], "epsilon": 1}


def publish(frame, out, **options):
    return spark.privatize(frame, **{"upper": 40, **OPTIONS, **options}, out=out)


def read(out):
    data = next(out.glob("data.*"))
    files = sorted(data.iterdir()) if data.is_dir() else [data]
    return pa.concat_tables([pq.read_table(file) for file in files])


def failures(out):
    return [found for found in check_package(out) if not found.ok]


@pytest.fixture
def designed(tmp_path):
    path = tmp_path / "mechanism.json"
    tv.certify(tv.fair(tv.Query.count(40), 1)).save(path)
    return path


APART = {
    "fair": {"method": "fair"},
    "design": {"method": "design", "upper": 12, "properties": ["row_monotone"], "loss": "squared"},
    "delta": {"delta": "1e-6", "method": "geometric"},
    "one row": {"contributions": 3, "one_row": True},
    "separate": {"contributions": 20, "separate_rows": True, "delta": "1e-6"},
    "open": {"upper": None},
    "open, geometric": {"upper": None, "method": "geometric"},
    "open, preserve": {"upper": None, "method": "preserve"},
    "wide": {"upper": 5000, "method": "preserve"},
    "wider": {"upper": 900_000, "method": "preserve"},
    "very wide": {"upper": 2_000_000, "method": "preserve"},
    "wide, geometric": {"upper": 100_000, "method": "geometric"},
    "private bound": {"upper": "auto", "upper_epsilon": "0.5"},
    "best": {"best": True},
    "best, open": {"best": True, "upper": None},
    "tradeoff": {"tradeoff": "0.4"},
    "counts first": {"tradeoff": 0},
    "counts first, open": {"priority": "counts", "upper": None},
    "unbiased": {"unbiased": True},
    "unbiased, geometric": {"unbiased": True, "method": "geometric"},
    "unbiased, open": {"unbiased": True, "upper": None},
    "unbiased, best": {"unbiased": True, "best": True},
    "signed": {"signed": True, "upper": None},
    "parquet": {"format": "parquet"},
    "within": {"within": 3, "epsilon": None},
}
BROUGHT = {
    "balanced": {"priority": "balanced"},
    "sorted": {"order": "sorted"},
    "csv": {"format": "csv"},
    "strata": {"strata": "region"},
    "hierarchy": {"hierarchy": "region,ward"},
    "zero": {"zero": "region = east"},
    "nested": {"nested": "deaths,cases", "count": ["deaths", "cases"], "drop": "note"},
    "together": {"together": True, "count": ["deaths", "cases"], "drop": "note"},
    "missing": {"missing": "-9"},
}


@pytest.fixture
def wide_frame(table, make_frame):
    """Wards in regions; the east has no cases. Some counts are large."""
    numbers = np.arange(len(table))
    cases = table["cases"].to_numpy().copy()
    cases[::97] *= 1000
    regions = np.array(["north", "south", "east"])[numbers % 3]
    cases[regions == "east"] = 0
    deaths = np.minimum(table["deaths"].to_numpy(), cases)
    table = table.set_column(2, "cases", pa.array(cases)).append_column("region", pa.array(regions))
    table = table.set_column(3, "deaths", pa.array(deaths))
    return make_frame([table.slice(0, 3000), table.slice(3000, 0), table.slice(3000)])


@pytest.mark.parametrize("name", APART)
def test_rows_that_stay_apart_make_folders_that_check(wide_frame, tmp_path, monkeypatch, name):
    monkeypatch.setattr(engine.SparkTable, "bring", None)
    out = tmp_path / "release"
    publish(wide_frame, out, **{"keep": ["id", "ward", "region"], **APART[name]})
    assert failures(out) == []
    assert read(out).num_rows == 10_000
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


@pytest.mark.parametrize("name", BROUGHT)
def test_rows_that_are_needed_together_are_brought_here(wide_frame, tmp_path, name):
    out = tmp_path / "release"
    asked = {"keep": ["id", "ward", "region"], **BROUGHT[name]}
    publish(wide_frame, out, **asked)
    assert failures(out) == []
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
    content = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert b"Anna-Schmidt" not in content


def test_rows_that_are_brought_keep_the_order_of_columns(table, make_frame, tmp_path, monkeypatch):
    """Tasks that read files themselves get the columns in the order of the file."""
    path = tmp_path / "table.parquet"
    pq.write_table(table, path)
    monkeypatch.setattr(spark_jobs, "list_files", lambda *_: [path])
    frame = make_frame([table.select(["note", "deaths", "cases", "ward", "id"])])
    publish(frame, tmp_path / "release", order="sorted")
    assert failures(tmp_path / "release") == []
    assert read(tmp_path / "release").column_names == ["cases", "ward", "id"]


def test_a_mechanism_of_a_file_draws(wide_frame, tmp_path, designed):
    publish(wide_frame, tmp_path / "release", keep=["id", "ward", "region"], method=designed)
    assert failures(tmp_path / "release") == []


@pytest.fixture
def people():
    """Visits of people of 40 regions, some with many; with an age and a result."""
    random = np.random.default_rng(4)
    rows = 12_000
    regions = [f"r{number}" for number in random.integers(0, 40, rows)]
    return pa.table(
        {
            "person": [f"p{number}" for number in np.minimum(random.geometric(0.001, rows), 2000)],
            "region": regions,
            "age": random.integers(0, 90, rows),
            "result": random.choice(["+", "-"], rows),
        }
    )


REGIONS = [f"r{number}" for number in range(40)]
MICRODATA = {
    "by": "region",
    "categories": REGIONS,
    "upper": 2000,
    "epsilon": 50,
    "method": "geometric",
}


def count_truth(people, names, listed):
    keys = list(zip(*(people[name].to_pylist() for name in names), strict=True))
    return [keys.count(label) for label in listed]


@pytest.fixture
def people_frame(people, make_frame):
    return make_frame([people.slice(0, 5000), people.slice(5000, 0), people.slice(5000)])


def test_microdata_are_counted_where_they_are(people, people_frame, tmp_path, monkeypatch):
    """At epsilon 50 noise is 0 but for a chance of 1e-20."""
    monkeypatch.setattr(engine.SparkTable, "bring", None)
    out = tmp_path / "release"
    spark.privatize(people_frame, **MICRODATA, where="age >= 18 and result = +", out=out)
    assert failures(out) == []
    ages, results = people["age"].to_numpy(), np.array(people["result"].to_pylist())
    met = people.filter(pa.array((ages >= 18) & (results == "+")))
    found = read(out)
    assert found["region"].to_pylist() == REGIONS
    assert found["count"].to_pylist() == count_truth(met, ["region"], [(r,) for r in REGIONS])
    receipt = json.loads((out / "receipt.json").read_bytes())
    assert receipt["table"]["where"] == ["age >= 18", "result == +"]
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_microdata_have_every_option_of_one_machine(people, people_frame, tmp_path):
    asked = MICRODATA | {
        "by": ["region", "age", "result"],
        "categories": {"region": REGIONS[:30], "result": ["+", "-"]},
        "bins": {"age": [0, 18, 65]},
        "where": "age < 200",
        "margins": "region,age+result",
        "method": "auto",
        "epsilon": 1,
        "upper": 100,
        "format": "csv",
        "title": "Visits",
    }
    frame = people_frame
    with pytest.raises(tv.TableError, match=r"^A row has a category that is not in the public"):
        spark.privatize(frame, **asked, out=tmp_path / "refused")
    asked["where"] += "".join(f" and region != r{number}" for number in range(30, 40))
    out = tmp_path / "release"
    spark.privatize(frame, **asked, out=out, confidential_report=tmp_path / "report.html")
    assert failures(out) == []
    assert (out / "data.csv").is_file()
    assert len((out / "data.csv").read_text().splitlines()) == 1 + 30 * 3 * 2
    assert (tmp_path / "report.html").stat().st_size > 1000


def test_rows_of_one_person_are_bounded_where_they_are(people, people_frame, tmp_path, monkeypatch):
    """Whichever partitions a person's rows are in, exactly the smaller of bound and rows stay."""
    monkeypatch.setattr(engine, "PERSON_BYTES", 10_000)
    out = tmp_path / "release"
    asked = MICRODATA | {"person": "person", "rows_per_person": 3, "epsilon": 30}
    release = spark.privatize(people_frame, **asked, out=out)
    assert failures(out) == []
    persons = people["person"].to_pylist()
    stay = sum(min(persons.count(person), 3) for person in set(persons))
    assert sum(read(out)["count"].to_pylist()) == stay
    assert release.receipt.unit.contributions == 3
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_separate_rows_of_one_person_are_in_different_categories(people_frame, people, tmp_path):
    asked = MICRODATA | {"person": "person", "rows_per_person": 20, "epsilon": "0.5"}
    asked |= {"separate_rows": True, "delta": "1e-6", "confidential_report": tmp_path / "r.html"}
    spark.privatize(people_frame, **asked, out=tmp_path / "release")
    assert failures(tmp_path / "release") == []
    pairs = set(zip(people["person"].to_pylist(), people["region"].to_pylist(), strict=True))
    persons = [person for person, _ in pairs]
    stay = sum(min(persons.count(person), 20) for person in set(persons))
    left = f"{12_000 - stay:,}"
    assert left in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("nobody", [None, "", "n/a"])
def test_rows_of_nobody_are_refused_without_quoting_them(people, make_frame, tmp_path, nobody):
    persons = people["person"].to_pylist()
    persons[7000] = nobody
    frame = make_frame([people.set_column(0, "person", pa.array(persons))])
    asked = MICRODATA | {"person": "person", "rows_per_person": 3}
    with pytest.raises(tv.TableError, match=r"^A row has no value in 'person'"):
        spark.privatize(frame, **asked, out=tmp_path / "release")
    assert not any(tmp_path.iterdir())


def test_columns_that_are_not_there_are_named(people_frame, tmp_path):
    for wrong in ({"by": "place"}, {"where": "size > 3"}, {"person": "who", "rows_per_person": 1}):
        with pytest.raises(tv.TableError, match=r"no column|not there"):
            spark.privatize(people_frame, **(MICRODATA | wrong), out=tmp_path / "release")
    assert not any(tmp_path.iterdir())


def test_levels_are_drawn_one_from_the_other(wide_frame, tmp_path):
    out, asked = tmp_path / "levels", OPTIONS | {"keep": ["id", "ward", "region"]}
    del asked["epsilon"]
    near, far = spark.privatize_levels(wide_frame, **asked, upper=40, levels=[3, 1], out=out)
    folders = sorted(out.iterdir())
    assert [failures(folder) for folder in folders] == [[], []]
    assert (float(near.receipt.epsilon), float(far.receipt.epsilon)) == (3, 1)
    truth = np.minimum(pa.concat_tables(wide_frame.partitions)["cases"].to_numpy(), 40)
    first, second = (read(folder)["cases"].to_numpy() for folder in folders)
    errors = np.abs(first - truth).mean(), np.abs(second - truth).mean()
    assert errors[0] < 0.2
    assert errors[1] > 0.5
    assert np.abs(second - first).mean() < errors[1] + 0.1
    with pytest.raises(tv.UsageError, match="privatize_levels"):
        publish(wide_frame, tmp_path / "other", levels=[2, 1], epsilon=None)


def test_the_command_releases_levels_on_spark(wide_frame, tmp_path, monkeypatch):
    monkeypatch.setattr(spark, "open_frame", lambda _: wide_frame)
    words = ["ladder", "wards", "--engine", "spark", "--count", "cases", "--upper", "40"]
    words += ["--epsilons", "2,1", "--keep", "all", "--out", str(tmp_path / "levels")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert [failures(folder) for folder in sorted((tmp_path / "levels").iterdir())] == [[], []]
    words = ["ladder", "--value", "7", "--engine", "spark", "--upper", "9", "--epsilons", "2,1"]
    done = CliRunner().invoke(app, words)
    assert "--engine is for a table" in str(done.exception)


def test_a_note_says_that_rows_were_brought(wide_frame, tmp_path, monkeypatch):
    monkeypatch.setattr(spark, "open_frame", lambda _: wide_frame)
    words = ["privatize", "wards", "--engine", "spark", "--count", "cases", "--upper", "40"]
    words += ["--epsilon", "1", "--keep", "all"]
    for option, said in (("sorted", True), ("input", False)):
        out = ["--order", option, "--out", str(tmp_path / option)]
        done = CliRunner().invoke(app, [*words, *out])
        assert done.exit_code == 0, done.output
        assert ("needs all rows in one place" in " ".join(done.output.split())) is said


@pytest.mark.parametrize("person", [{}, {"person": "person", "rows_per_person": 2}])
def test_what_a_column_holds_is_told_from_all_parts(make_frame, tmp_path, person):
    """A part in which all labels are numbers, or none is, is not refused for that."""
    rows = {"person": ["p", "q", "r", "s"], "ward": ["a"] * 4}
    table = pa.table({**rows, "code": ["1", "2", "unknown", "3"]})
    asked = {"by": "ward", "categories": ["a"], "upper": 9, "epsilon": 50, "method": "geometric"}
    for number, where in enumerate(("code != unknown", "code >= 2")):
        out = tmp_path / str(number)
        frame = make_frame([table.slice(0, 2), table.slice(2, 1), table.slice(3)])
        spark.privatize(frame, **asked, **person, where=where, out=out)
        assert read(out)["count"].to_pylist() == [3 - number]
    frame = make_frame([table.slice(0, 1), table.slice(1, 1)])
    with pytest.raises(tv.TableError, match="compares numbers with text"):
        spark.privatize(frame, **asked, **person, where="code != x", out=tmp_path / "refused")


def test_parents_and_children_in_different_parts_are_noticed(make_frame, tmp_path):
    """Every person would be counted twice: no part tells, all together do."""
    states = pa.table({"code": [f"{at:02}" for at in range(10)], "cases": [9] * 10})
    wards = [f"{state:02}{at}" for state in range(10) for at in range(5)]
    counties = pa.table({"code": wards, "cases": [2] * 50})
    asked = {"count": "cases", "keep": "all", "upper": 20, "epsilon": 1}
    for parts in ([states, counties], [counties.slice(0, 20), states, counties.slice(20)]):
        with pytest.raises(tv.TableError, match="counted 2 times"):
            spark.privatize(make_frame(parts), **asked, out=tmp_path / "release")
    assert not any(tmp_path.iterdir())
    spark.privatize(make_frame([counties]), **asked, out=tmp_path / "release")


def test_a_report_of_microdata_does_not_read_the_table_again(people, make_frame, tmp_path):
    """What would fail then fails after the debit."""
    frame = make_frame([people])
    options = ReleaseOptions(
        **MICRODATA, out=tmp_path / "release", confidential_report=tmp_path / "report.html"
    )

    def lose(step):
        if step == "drawing":
            frame.partitions[:] = []

    publish_table(frame, options, command="test", say=lose)
    assert "12,000" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("partitions", [0, 2])
def test_a_table_without_rows_is_said_to_be_one(table, make_frame, tmp_path, partitions):
    frame = make_frame([table.slice(0, 0)] * max(partitions, 1))
    if not partitions:
        frame.mapInArrow = lambda *_: make_frame([pa.table({"result": []})])
    with pytest.raises(tv.TableError, match="has no rows"):
        publish(frame, tmp_path / "release")


def test_a_count_that_is_text_gets_the_hint_of_one_machine(table, make_frame, tmp_path):
    cases = pa.array(["*", *map(str, table["cases"].to_pylist()[1:])])
    frame = make_frame([table.set_column(2, "cases", cases)])
    with pytest.raises(tv.TableError, match=r"A row holds text\. A code for a missing count is"):
        publish(frame, tmp_path / "release")
