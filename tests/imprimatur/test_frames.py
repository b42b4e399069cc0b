"""`imprimatur.publish`: a DataFrame in, a DataFrame out, against the real service."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import imprimatur
from imprimatur.errors import BudgetExhausted, DuplicateRows, InvalidInput, NameTaken

pytestmark = pytest.mark.slow

ROWS = 240


@pytest.fixture
def frame():
    """One column of every dtype that people have."""
    days = pd.date_range("2020-01-05 10:00", periods=12, freq="20D")
    return pd.DataFrame(
        {
            "size": pd.Categorical(["S", "L", None] * 80, categories=["XL", "L", "S", ""], ordered=True),
            "stage": pd.Categorical([2, 3] * 120, categories=[3, 2, 1]),
            "band": pd.cut(pd.Series([1, 5, 9] * 80), [0, 4, 8, 12]),
            "Admitted": [True, False] * 120,
            "maybe": pd.array([True, None, False] * 80, dtype="boolean"),
            "children": pd.array([0, 1, None] * 80, dtype="Int64"),
            "small": pd.Series([1, 2, 3] * 80, dtype="int8"),
            "price": pd.Series([1.25, 99.5, 3.0] * 80, dtype="float32"),
            "city": pd.Series(["Köln", "Århus"] * 120, dtype="str"),
            "word": pd.Series(["yes", None] * 120, dtype=object),
            "seen": pd.Series(list(days) * 20).dt.tz_localize("Europe/Berlin"),
            "made": pd.Series(list(days) * 20).astype("datetime64[ns]"),
            "day": pd.Series([dt.date(2021, 1, 1), dt.date(2021, 12, 31)] * 120, dtype=object),
            7: pd.Series([1, 2] * 120, dtype="int64[pyarrow]"),
        }
    )


def test_a_frame_of_pandas_with_every_dtype(client, frame, tmp_path):
    order = {"epsilon": 20}
    drawn = imprimatur.publish(
        frame, None, order, target="Admitted", rows=500, client=client, accept_draft=True, timeout=300
    )
    assert drawn.dtypes.to_dict() == frame.dtypes.to_dict()
    assert list(drawn["size"].cat.categories) == ["XL", "L", "S", ""]
    assert drawn["band"].cat.categories.equals(frame["band"].cat.categories)
    assert set(drawn["children"].dropna()) <= {0, 1}
    assert drawn["seen"].dt.year.isin([2020, 2021]).all()
    assert {type(day) for day in drawn["day"].dropna()} == {dt.date}
    assert drawn["Admitted"].mean() == pytest.approx(0.5, abs=0.2)
    assert isinstance(drawn.index, pd.RangeIndex)
    (dataset,) = client.datasets()
    assert dataset.schema["target"] == "Admitted"
    assert dataset.budget.remaining_epsilon < 1

    (release,) = dataset.releases()
    again = release.sample(20, where={"Admitted": True}, seed=1)
    assert list(again.to_pandas()["size"].cat.categories) == ["XL", "L", "S", ""]
    assert again.to_polars()["Admitted"].to_list() == [True] * 20 == again.to_arrow()["Admitted"].to_pylist()
    assert again.save(tmp_path / "x.parquet") == (tmp_path / "x.parquet").stat().st_size
    assert pl.read_parquet(tmp_path / "x.parquet").height == 20


def test_a_frame_of_polars_keeps_its_budget(client, small_csv, small_schema, small_order):
    table = pl.read_csv(small_csv).with_columns(pl.col("colour").cast(pl.Enum(["red", "green", "blue"])))
    drawn = imprimatur.publish(table, small_schema, small_order, budget_epsilon=9.0, rows=30, client=client)
    assert isinstance(drawn, pl.DataFrame)
    assert (drawn.height, drawn.schema) == (30, table.schema)
    (dataset,) = client.datasets()
    assert (dataset.name, dataset.epsilon) == ("table", 9.0)

    key = {"idempotency_key": "mine", "client": client}
    again = imprimatur.publish(str(small_csv), small_schema, small_order, rows=5, **key)
    assert again.height == 5
    assert [each.id for each in client.datasets()] == [dataset.id], "the same rows keep their budget"
    assert len(client.releases(dataset)) == 2
    imprimatur.publish(table, small_schema, small_order, rows=5, **key)
    assert len(client.releases(dataset)) == 2, "the same key pays once"

    with pytest.raises(InvalidInput, match=f"budget of epsilon 9 for ever, as dataset {dataset.id}"):
        imprimatur.publish(table, small_schema, small_order, budget_epsilon=4.0, client=client)
    with pytest.raises(DuplicateRows):
        imprimatur.publish(table, small_schema, small_order, target="colour", client=client)
    with pytest.raises(BudgetExhausted):
        imprimatur.publish(table, small_schema, small_order | {"epsilon": 8.9}, client=client)
    other = {"fields": small_schema["fields"][:1]}
    with pytest.raises(NameTaken):
        imprimatur.publish(table.select("colour"), other, small_order, name="table", client=client)
    assert len(client.releases(dataset)) == 2


class Nothing:
    """A client that must not be asked anything."""

    def __getattr__(self, name):
        raise AssertionError(f"asked for {name}")


def refused(table, schema=None, match="", **options):
    with pytest.raises(InvalidInput, match=match):
        imprimatur.publish(table, schema, epsilon=1.0, client=Nothing(), **options)


def test_what_was_read_from_rows_is_no_declaration(frame):
    refused(frame, match="'children'.*write the schema from what is known.*accept_draft=True")
    refused(frame, imprimatur.schema_of_frame(frame), match="is a draft: parts of it begin with DRAFT")
    refused(frame, target="price", match="no declared categories", accept_draft=True)
    refused(frame, target="none", match="there is no column 'none'", accept_draft=True)
    names = pd.DataFrame({"mail": [f"p{n}@example.org" for n in range(ROWS)], "n": range(ROWS)})
    refused(names, match="'mail': its texts look like names.*'n': it numbers the rows", accept_draft=True)
    refused(names.astype("category"), match="'mail': its texts look like names", accept_draft=True)
    refused(names.astype("category"), match="'n': it numbers the rows", accept_draft=True)
    unit = {"column": "mail", "max_rows_per_unit": 3}
    table = names.assign(n=[1, 2] * (ROWS // 2))
    assert [field["name"] for field in imprimatur.schema_of_frame(table, privacy_unit=unit)["fields"]] == ["n"]
    refused(table, privacy_unit=unit, match="the dtypes of 'n' do not say")
    refused(pl.DataFrame({"x": ["a"] * 9}, schema={"x": pl.Categorical}), match="dtypes of 'x'")
    refused(pl.DataFrame({"x": [[1]]}), match="which no schema has")


def test_dtypes_that_declare_everything_need_no_schema(frame):
    declared = imprimatur.schema_of_frame(frame[["size", "stage", "band", "Admitted", "maybe"]], target="stage")
    assert declared == {
        "fields": [
            {"name": "size", "type": "string", "constraints": {"enum": ["XL", "L", "S", ""]}},
            {"name": "stage", "type": "integer", "constraints": {"enum": [3, 2, 1]}},
            {"name": "band", "type": "string", "constraints": {"enum": ["(0, 4]", "(4, 8]", "(8, 12]"]}},
            {"name": "Admitted", "type": "boolean", "constraints": {"required": True}},
            {"name": "maybe", "type": "boolean"},
        ],
        "missingValues": [],
        "target": "stage",
    }
    table = pl.DataFrame({"e": pl.Series(["b"], dtype=pl.Enum(["b", "a"]))})
    assert imprimatur.schema_of_frame(table)["fields"][0]["constraints"] == {"enum": ["b", "a"]}


def test_what_an_index_holds_is_asked_for(frame):
    refused(frame.set_index("small"), match=r"the index 'small'.*reset_index\(\).*drop=True", accept_draft=True)
    refused(frame.set_index(frame["city"].rename(None)), match="an index that is not row numbers", accept_draft=True)
    kept = frame[frame["Admitted"]][["Admitted"]]  # row numbers with gaps
    refused(kept, {"fields": []}, match="does not declare 'Admitted'")


def test_everything_that_can_be_known_before_is_said_before(frame, small_csv, small_schema, monkeypatch):
    booleans = frame[["Admitted"]]
    refused(booleans, where={"Admitted": "x"}, match="its values are 'false', 'true'")
    refused(booleans, where={"admitted": True}, match="did you mean 'Admitted'")
    refused(booleans, rows=-1, match="rows")
    refused(pd.concat([booleans, booleans], axis=1), match="several columns are named 'Admitted'")
    refused(pd.DataFrame({"x": [1, "a"]}), {"fields": [{"name": "y"}]}, match="does not declare 'x'")
    refused("nowhere.csv", small_schema, match="there is no file")
    refused(str(small_csv), match="imprimatur schema draft")
    refused([1], match="a list is not a table")
    choice = {"method": "choose", "candidates": [{"method": "idpgan"}]}
    refused(booleans, None, "name the dataset in each candidate", order=choice, public=booleans)
    with pytest.raises(InvalidInput, match="give the ε of the table"):
        imprimatur.publish(small_csv, small_schema, {"share": 0.5})
    with pytest.raises(InvalidInput, match="the order says ε = 2 and epsilon= says 3"):
        imprimatur.publish(small_csv, small_schema, {"epsilon": 2}, epsilon=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'row'"):
        imprimatur.publish(small_csv, small_schema, epsilon=2, row=3)
    monkeypatch.delenv("IMPRIMATUR_URL", raising=False)
    with pytest.raises(InvalidInput, match="IMPRIMATUR_URL"):
        imprimatur.publish(small_csv, small_schema, {"epsilon": 1.0})


def test_values_that_fit_no_dtype_widen_it_instead_of_wrapping(tmp_path):
    from imprimatur.frame_columns import frame_of

    drawn = pa.table({"x": pa.array([300, 5]), "y": pa.array([1, None])})
    pq.write_table(drawn, tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    table = pd.DataFrame({"y": pd.Series([1], dtype="int16"), "x": pd.Series([1], dtype="int8")})
    made = frame_of(table).restored(content)
    assert made.dtypes.astype(str).to_dict() == {"y": "Int16", "x": "int64"}
    assert made["x"].tolist() == [300, 5]
    made = frame_of(pl.from_pandas(table)).restored(content)
    assert made["x"].to_list() == [300, 5]
    assert made.schema == {"y": pl.Int16, "x": pl.Int64}
    made = frame_of(pa.Table.from_pandas(table)).restored(content)
    assert (made["x"].type, made["y"].type) == (pa.int64(), pa.int16())


def test_a_missing_package_is_named_in_one_line(monkeypatch, small_csv, small_schema):
    from imprimatur import tables

    monkeypatch.setattr(tables, "find_spec", lambda _: None)
    for library, extra in (
        (tables.PANDAS, "imprimatur[pandas]"),
        (tables.POLARS, "imprimatur[polars]"),
        (tables.ARROW, "imprimatur[arrow]"),
    ):
        with pytest.raises(imprimatur.MissingExtra) as missing:
            library.check_installed()
        assert extra in str(missing.value)
        assert "\n" not in str(missing.value)
    with pytest.raises(imprimatur.MissingExtra):
        imprimatur.publish(small_csv, small_schema, epsilon=1, client=Nothing())


def test_a_release_that_failed_says_so():
    release = {"id": "r", "state": "failed", "failure": "out of memory"}
    assert str(imprimatur.NotPublished(release)) == "release r failed: out of memory (its charge stands)"
    assert str(imprimatur.NotPublished({"id": "r", "state": "voided"})) == "release r voided (nothing was charged)"


def test_every_name_of_the_package_is_there_and_an_unknown_one_is_not():
    assert all(getattr(imprimatur, name) is not None for name in imprimatur.__all__)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = imprimatur.nothing_of_this_name


def test_a_draft_that_is_accepted_says_where_it_comes_from(frame):
    from imprimatur.draft_marks import is_draft
    from imprimatur.frame_columns import frame_of
    from imprimatur.frame_schemas import agreed_schema

    drafted = imprimatur.schema_of_frame(frame)
    for given in (None, drafted):
        agreed = agreed_schema(frame_of(frame), given, None, None, accept_draft=True)
        assert is_draft(drafted)
        assert not is_draft(agreed)
        said = {field["name"]: field.get("description") for field in agreed["fields"]}
        assert said["price"] == "Read from the private rows; their owner has accepted that."
        assert said["size"] is None


def personal(library):
    """What points to a person, though twenty or fewer values of it are shared by rows."""
    n = 40
    columns = {
        "contact": [f"p{i % 18}@x.org" for i in range(n)],
        "called": [f"+43 660 12345{i % 10}" for i in range(n)],
        "token": [f"6f9619ff-8b86-4011-b42d-00cf4fc964f{i % 10}" for i in range(n)],
        "caller": [660123450 + i % 10 for i in range(n)],
        "patient_id": [i % 20 + 1000 for i in range(n)],
        "name": ["Ann Lee", "Bo Ek"] * (n // 2),
        "said": ["felt dizzy, came with his daughter", "wants a call back as soon as possible"] * (n // 2),
        "note": ["is very dizzy", "wants a call"] * (n // 2),
        "row": list(range(n)),
        "seldom": ["a", "b"] * (n // 2 - 5) + [f"only {i}" for i in range(10)],
    }
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[library](columns)


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_no_draft_lists_what_points_to_a_person(library):
    table = personal(library)
    with pytest.raises(InvalidInput, match='"role": "ignore"') as refused_draft:
        imprimatur.schema_of_frame(table)
    said = str(refused_draft.value)
    assert "'contact': its texts look like e-mail addresses" in said
    assert "'called': its texts look like phone numbers" in said
    assert "'token': its texts look like UUIDs" in said
    assert "'caller': its numbers are long" in said
    assert "'patient_id': its name says whose row it is" in said
    assert "'name': its name says that it points to a person" in said
    assert "'said': it is free text" in said
    assert "'note': it is free text" in said
    assert "'row': it numbers the rows" in said
    assert "'seldom': most of its values occur once" in said
    assert "x.org" not in said
    assert "only" not in said


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_what_occurs_once_is_not_listed(make):
    table = make(
        {
            "kind": ["a", "b"] * 20 + ["only once"],
            "stage": [1, 2] * 20 + [7],
            "ward": [1, 2] * 20 + [2],
            "day": [dt.date(2020, 1, 1 + n % 28) for n in range(41)],
        }
    )
    kind, stage, ward, day = imprimatur.schema_of_frame(table)["fields"]
    assert kind["constraints"] == {"enum": ["a", "b"]}, "what is not listed becomes missing, so it is not required"
    assert stage["constraints"] == {"minimum": 1, "maximum": 7, "required": True}
    assert ward["constraints"] == {"enum": [1, 2], "required": True}
    assert day["constraints"] == {"minimum": "2020-01-01", "maximum": "2020-12-31", "required": True}


def test_categories_that_look_like_persons_are_not_declared():
    mails = pd.Series([f"p{n % 9}@x.org" for n in range(40)])
    for column in ({"contact": mails.astype("category")}, {"patient_id": pd.Categorical(["a", "b"] * 20)}):
        with pytest.raises(InvalidInput, match="no domain can be drafted"):
            imprimatur.schema_of_frame(pd.DataFrame(column))


def test_a_person_id_is_asked_about(tmp_path):
    table = pd.DataFrame({"patient_id": [1, 1, 2] * 10, "well": [True, False, True] * 10})
    fields = [
        {"name": "well", "type": "boolean"},
        {"name": "patient_id", "type": "integer", "role": "ignore"},
    ]
    asked = r"'patient_id' looks like a person's id: do several rows belong to one person\?.*rows_are_units=True"
    refused(table, match=asked)
    refused(table, match=asked, accept_draft=True)
    refused(table, {"fields": fields}, match=asked)
    refused(table, {"fields": fields[:1]}, match=asked)
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    refused(path, {"fields": fields}, match=asked)
    refused(path, {"fields": fields[:1]}, match=asked)
    unit = {"column": "patient_id", "max_rows_per_unit": 2}
    refused(table, {"fields": fields}, match="leave one of the two out", privacy_unit=unit, rows_are_units=True)
    for answer, given in (({"privacy_unit": unit}, fields[:1]), ({"rows_are_units": True}, fields)):
        with pytest.raises(AssertionError, match="asked for datasets"):
            imprimatur.publish(table, {"fields": given}, epsilon=1.0, client=Nothing(), **answer)
    refused(table, match="its name says whose row it is", rows_are_units=True, accept_draft=True)


def test_marks_of_a_draft_stay_until_it_is_accepted(frame):
    from imprimatur.frame_columns import frame_of
    from imprimatur.frame_schemas import agreed_schema

    booleans = frame_of(frame[["Admitted"]])
    said = {"fields": [{"name": "Admitted", "type": "boolean", "description": "DRAFT of ours"}]}
    assert agreed_schema(booleans, said, None, None, accept_draft=True)["fields"][0]["description"].startswith("Read")
    with pytest.raises(InvalidInput, match="is a draft"):
        agreed_schema(booleans, said, None, None, accept_draft=False)


def test_a_hierarchy_can_be_the_target():
    from imprimatur.frame_schemas import with_target

    schema = {"fields": [{"name": "d", "type": "string", "hierarchy": {"c": ["x", "y"]}}]}
    assert with_target(schema, "d")["target"] == "d"
