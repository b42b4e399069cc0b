"""Refusals of conditions, knobs and questions are messages to the last word, and stay the English that the API says.

Another language is one without a letter here: what can still be read did not come through the translations.
"""

import ast
import html
import json
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

import service
from service.base.errors import ImprimaturError, InvalidOrder
from service.base.faults import sentence_of
from service.base.messages import Text, fault_of, said
from service.domain.image_schema import parse_schema
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.pricing import price_order, resolve_order
from service.methods.wants import parse_want
from service.pages.languages import CONVENTIONS, PageLanguage, language_named
from service.privacy.filters import NANO, Shares, open_budget
from service.queries.conditions import conditions_of_order
from service.samples.image_sampler import ImageSampler
from service.samples.table.base import SamplingError
from service.samples.table.completing import rows_of_csv, rows_of_jsonl
from service.samples.table.conditions import Conditions
from service.samples.table.identifiers import IdentifierColumn
from service.samples.table.weighting import strata_of
from service.samples.table.written import modelled_columns
from tests.service.pages.spoken import Illegible, english_in, sentences_in

ILLEGIBLE, GERMAN = PageLanguage("de", Illegible(), CONVENTIONS["de"]), language_named("de")
ROOT = Path(service.__file__).parent


def assert_said(refusal):
    """A message, of which nothing is left in English, in the language without letters and in German."""
    assert isinstance(refusal, Text), refusal
    assert sentences_in(f"<p>{html.escape(said(refusal, ILLEGIBLE))}</p>") == []
    assert english_in(f"<p>{html.escape(said(refusal, GERMAN))}</p>") == []


MADE = {
    "Forbidden",
    "ImageSamplingError",
    "InvalidInput",
    "InvalidOrder",
    "NotFound",
    "NotInRelease",
    "RateLimited",
    "SamplingError",
    "TooExpensiveToPrice",
    "TooManyCells",
    "TooMuchWork",
    "Unauthenticated",
    "Unavailable",
    "Unpriceable",
    "ValueError",
    "_of_row",
    "_refusal",
    "refused",
}
"""What makes a refusal of a text."""
FILES = [
    *(ROOT / "auth").glob("*.py"),
    *(ROOT / "methods").rglob("*.py"),
    *(ROOT / "pages").glob("*.py"),
    *(ROOT / "queries").rglob("*.py"),
    *(ROOT / "samples" / "table").rglob("*.py"),
    *(ROOT / "samples").glob("*_streams.py"),
    ROOT / "privacy" / "calibration.py",
    ROOT / "releases" / "answers.py",
    ROOT / "releases" / "names.py",
    ROOT / "releases" / "sampling.py",
    ROOT / "releases" / "work.py",
    ROOT / "samples" / "image_sampler.py",
]
CAUGHT = ROOT / "samples" / "table" / "reading.py"
"""Its ValueErrors say nothing to anybody: a sampler catches each."""
ELSEWHERE = ("must be resolved", "IMPRIMATUR_OIDC_", "application/json", "begins with https://")
"""Of a list that is priced too early, which no request does; of settings; of bodies of the API."""


def plain_texts(source):
    """Texts of refusals that are no messages: written out, with places, or put together."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name not in MADE:
            continue
        for text in call.args:
            is_plain = isinstance(text, ast.JoinedStr | ast.BinOp)
            is_plain |= isinstance(text, ast.Constant) and isinstance(text.value, str)
            if is_plain and not any(word in ast.unparse(text) for word in ELSEWHERE):
                yield ast.unparse(text)


def test_a_plain_text_is_found():
    wrong = (
        'raise InvalidOrder(f"knob: at most {most}", where="knob")\nraise self._refusal("no" + such)\nrefused(c, "no")'
    )
    assert len(list(plain_texts(wrong))) == 3
    assert list(plain_texts('raise InvalidOrder(Message("a %(b)s", b=1), where="a b")')) == []


def test_every_refusal_is_a_message():
    assert [(file.name, text) for file in FILES if file != CAUGHT for text in plain_texts(file.read_text())] == []


MODELLED = modelled_columns(
    {
        "missing_value": "",
        "columns": [
            {"name": "age", "type": "integer", "size": 3, "edges": [0, 10, 120], "missing": True},
            {"name": "cost", "type": "number", "size": 2, "edges": [0.5, 2.5, 10], "missing": False, "decimals": 1},
            {"name": "day", "type": "date", "size": 1, "edges": [18_000, 19_000], "missing": False},
            {"name": "noon", "type": "datetime", "size": 1, "edges": [1.6e9, 1.7e9], "missing": False},
            {"name": "sex", "type": "string", "size": 3, "values": ["f", "m", None]},
            {"name": "flag", "type": "boolean", "size": 2, "values": [False, True]},
            {"name": "rank", "type": "integer", "size": 3, "values": [1, 2, 3]},
            {"name": "city", "type": "string", "size": 30, "values": [f"c{number}" for number in range(30)]},
        ],
    }
)
COLUMNS = (*MODELLED, IdentifierColumn({"name": "id", "type": "string", "identifier": ["abc", "0123"]}))
WRONG_CONDITIONS = [
    *("colour=red", "aeg=1", "age", "", "age>=500", "age<5&age>10", "age=x", "cost=x", "day=x", "noon=x", "id=a0"),
    *("rank missing", "rank>5", "rank>x", "sex>f", "sex=q", "city=c77", "age in [1, 500]", "sex=f&sex=m", "cost=0.55"),
    *("age in [a\rb]", "&".join(["age>1"] * 300), "age<\x00", "sex in [[1]]"),
    *({"age": {"minimun": 1}}, {"age": {"in": 1}}, {"age": {"minimum": None}}, {"age": {"minimum": [1]}}),
]
WRONG_WEIGHTS = [
    *(1, {"sex": "even"}, {"age": "uniform"}, {"sex": {"f": -1}}, {"sex": {"f": 0}}, {"zz": "uniform"}),
    dict.fromkeys(("city", "rank", "sex", "flag"), "uniform"),
    {"age": {f">{n}" + "&age>0" * 200: 1 for n in range(6)}},
]


@pytest.mark.parametrize("where", WRONG_CONDITIONS)
def test_no_refusal_of_a_condition_is_left_in_english(where):
    with pytest.raises(SamplingError) as refused:
        Conditions(COLUMNS).selections(where)
    assert_said(fault_of(refused.value))


@pytest.mark.parametrize("weights", WRONG_WEIGHTS)
def test_no_refusal_of_weights_is_left_in_english(weights):
    with pytest.raises(SamplingError) as refused:
        strata_of(Conditions(COLUMNS), COLUMNS, weights, {})
    assert_said(fault_of(refused.value))


def test_a_weight_that_its_condition_excludes_is_refused_in_german():
    conditions = Conditions(COLUMNS)
    with pytest.raises(SamplingError) as refused:
        strata_of(conditions, COLUMNS, {"sex": {"f": 1}}, conditions.selections("sex=m"))
    assert_said(fault_of(refused.value))


def test_a_refused_condition_is_said_whole_in_german():
    with pytest.raises(SamplingError) as refused:
        Conditions(COLUMNS).selections("cots>=0.5")
    assert str(refused.value).startswith("there is no column 'cots' (did you mean 'cost'?); the columns are age, cost")
    german = said(fault_of(refused.value), GERMAN)
    assert german.startswith("Es gibt keine Spalte 'cots' (meinten Sie 'cost'?); die Spalten sind age, cost")


@pytest.mark.parametrize("rows", [b"a,a\n", b"a\n\xff\n", b"a\n1,2\n", b'a\n"1"2\n'])
def test_no_refusal_of_rows_is_left_in_english(rows):
    for read in (rows_of_csv, rows_of_jsonl):
        with pytest.raises(SamplingError) as refused:
            read(rows)
        assert_said(fault_of(refused.value))


def test_no_refusal_of_a_class_of_images_is_left_in_english():
    config = {"format": 1, "kind": "image", "height": 2, "width": 2, "channels": 1, "noise_dimension": 1}
    for classes in ([], ["a", "b"]):
        sampler = ImageSampler({**config, "classes": classes, "condition": None}, None)
        with pytest.raises(ValueError) as refused:  # noqa: PT011 - what it says is looked at
            sampler.parse_where("label=z")
        assert_said(fault_of(refused.value))


BUDGET = open_budget(10.0, 1e-6)
TABLE = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "born", "type": "date", "constraints": {"minimum": "1900-01-01", "maximum": "2026-01-01"}},
        {"name": "city", "type": "string", "constraints": {"enum": ["Rome", "Oslo"], "required": True}},
        {"name": "mark", "type": "string", "constraints": {"enum": [str(each) for each in range(200)]}},
    ]
}
RANGES = {"fields": TABLE["fields"][:2]}
IMAGES = {"type": "image", "height": 8, "width": 8, "channels": 1}
LARGE = IMAGES | {"height": 200, "width": 200}


def asking(**question):
    return {"method": "queries", "questions": [question]}


def choosing(*candidates, **knobs):
    return {"method": "choose", "candidates": [{"method": "marginals"} | each for each in candidates], **knobs}


NEAR_TABLES = {"method": "idpgan", "public_dataset": "0" * 8 + "-0000-4000-8000-" + "0" * 12}
OF_TABLES = [
    {"epsilon": None},
    {"share": 0.5},
    *({"epsilon": wrong} for wrong in ("4", True, 0, 1e308, [], 1e-9)),
    {"method": "marginals", "pairs": "most"},
    {"method": "marginals", "components": 3},
    {"method": "marginals", "numeric_bins": 2.5},
    {"method": "marginals", "tree_precision_share": 1e-9},
    {"method": "marginals", "pairs_within": 1},
    {"method": "marginals", "condition_on": ""},
    {"method": "marginals", "condition_on": "mark"},
    {"method": "marginals", "owner_report": "yes"},
    {"method": "marginals", "purpose": "tables", "condition_on": "city"},
    {"method": "marginals", "accept": {"one_way_tv": 0.1}},
    {"method": "marginals", "accept": {}},
    {"method": "marginals", "report": {"share": 0.1}, "accept": {"accuracy": 0.5}},
    {"method": "marginals", "report": 1},
    {"method": "idpgan", "networks": {"generator_hidden": []}},
    {"method": "idpgan", "networks": {"generator_hidden": [4] * 9}},
    {"method": "idpgan", "networks": []},
    {"method": "idpgan", "thresholds": {"kind": "none"}},
    {"method": "idpgan", "thresholds": {}},
    {"method": "idpgan", "thresholds": {"kind": "adaptive", "smallest": 2, "largest": 1}},
    {"method": "idpgan", "private_step": {"scale": {}, "subspace": {"rank": 4}}},
    {"method": "idpgan", "public_mask_share": 0.5},
    {"method": "idpgan", "image_networks": {}},
    {"method": "idpgan", "warm_start": {"kind": "mixture"}},
    {"method": "dpgan", "augmentation": {"copies": 4}},
    NEAR_TABLES | {"warm_start": {"kind": "tables"}, "public_steps": 10},
    {"method": "dpgm", "condition_on": "mark"},
    {"method": "pategan", "teachers": 5_000},
    {"method": "pategan", "networks": {"pair_products": True}},
    {"method": "mixture"},
    choosing({}, trials=[{"method": "marginals"}]),
    choosing({}, purpose="tables"),
    choosing({}, target="age"),
    choosing({}, target="citi"),
    choosing({}, target="mark"),
    choosing({}),
    choosing({"chosen_because": "x"}, target="city"),
    choosing({"owner_report": True}, target="city"),
    choosing({"condition_on": "age"}, target="city"),
    choosing({"epsilon": 1.0}, target="city"),
    choosing({"method": "idpgan"}, {}, target="city"),
    choosing(*[{}] * 16, target="city", form="parts"),
    choosing({"method": "idpgan", "image_networks": {}}, target="city"),
    {"method": "choose", "candidates": []},
    asking(kind="count", condition="x"),
    asking(kind="histogram", column="aeg"),
    asking(kind="histogram", column=""),
    asking(kind="histogram", column="x" * 300),
    asking(kind="cross_table", columns=["age", "age"]),
    asking(kind="cross_table", columns=["age", "mark", "born", "city"], bins=1_000),
    asking(kind="cross_table", columns=["age"]),
    asking(kind="sum", column="city"),
    asking(kind="sum", column="born"),
    asking(kind="median", column="age"),
    asking(kind="quantiles", column="age", probabilities=[0.5, 0.2]),
    asking(kind="count", where=[{"column": "age"}]),
    asking(kind="count", epsilon=1),
    asking(kind="nonsense"),
    asking(),
    {"method": "queries", "epsilon": 1e-4, "questions": [{"kind": "count"}, {"kind": "count"}]},
    {"method": "queries", "questions": []},
    {"method": "queries", "questions": [{"kind": "count"}], "condition_on": "city"},
    {"method": "declaration", "share": 0.5, "epsilon": None},
]
OF_IMAGES = [
    {"method": "image_release", "unit": "column"},
    {"method": "image_release", "coefficients": 9},
    {"method": "image_release", "sizes": [16]},
    {"method": "image_release", "sizes": [4, 2]},
    {"method": "image_release", "epsilon": 0.001},
    {"method": "gswgan", "discriminators": 5_000},
    {"method": "gswgan", "optimizer": {"kind": "sgd"}},
    {"method": "mixture", "means_precision_share": 0.19, "sorting_precision_share": 0.19, "sorting_rounds": 4},
    {"method": "idpgan", "networks": {}},
    {"method": "idpgan", "warm_start": {"kind": "tables"}},
    {"method": "idpgan", "image_networks": {"layers": "convolutions", "critic_channels": [8] * 4}},
    {"method": "dpacgan"},
    {"method": "marginals"},
]
OF_LARGE_IMAGES = [{"method": name} for name in ("idpgan", "gswgan", "dpgm")]
CASES = [
    *((TABLE, each) for each in OF_TABLES),
    (RANGES, choosing({})),
    (RANGES, choosing({}, target="age")),
    (RANGES, {"method": "rdpcgan", "condition_on": "age"}),
    *((IMAGES, each) for each in OF_IMAGES),
    *((LARGE, each) for each in OF_LARGE_IMAGES),
]


@pytest.mark.parametrize(("schema", "order"), CASES, ids=lambda each: json.dumps(each)[:60])
def test_no_refusal_of_an_order_is_left_in_english(schema, order):
    facts = Facts.of_declaration(json.dumps(schema), units=200, most_per_unit=1, budget=BUDGET)
    with pytest.raises(ImprimaturError) as refused:
        price_order(
            resolve_order(parse_order({"epsilon": 1.0, **order}), facts, Shares(NANO, NANO), parse_schema(schema)),
            BUDGET,
        )
    assert_said(refused.value.detail)


@pytest.mark.parametrize("want", [{}, {"group": 1}, {"group": 1.5, "within": 0.1}, {"columns": 3}, {"wish": 1}])
def test_no_refusal_of_a_wish_is_left_in_english(want):
    with pytest.raises(InvalidOrder) as refused:
        parse_want(want)
    assert_said(refused.value.detail)


@pytest.mark.parametrize(
    "where", ["colour=red", "age=x", "age<20&age>30", "x" * 5_000, 5, [1], "city", "age!=20", {"age": {"in": 5}}]
)
def test_no_refusal_of_a_question_s_condition_is_left_in_english(where):
    with pytest.raises(InvalidOrder) as refused:
        conditions_of_order(where, parse_schema(TABLE), "questions.0")
    assert_said(refused.value.detail)


class Knob(BaseModel):
    """One of each kind."""

    model_config = ConfigDict(extra="forbid", strict=True)

    whole: int = Field(default=2, ge=2, le=5)
    real: float = Field(default=1.0, gt=0, lt=5, allow_inf_nan=False)
    yes: bool = True
    text: str = Field(default="a", min_length=1, max_length=3)
    one: str | None = None
    many: tuple[int, ...] = Field(default=(1,), min_length=1, max_length=2)


FAULTS = [
    *({"whole": wrong} for wrong in (1, 6, "2", 1.5, None, True)),
    *({"real": wrong} for wrong in (0, 5, "x")),
    *({"yes": wrong} for wrong in (1, "x")),
    *({"text": wrong} for wrong in ("", "abcd", 1)),
    *({"many": wrong} for wrong in ([], [1, 2, 3], 1)),
    *({"one": 1}, {"other": 1}, []),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_pydantic_s_words_stay_what_they_are_and_are_said_in_german(fault):
    with pytest.raises(ValidationError) as refused:
        Knob.model_validate_json(json.dumps(fault))
    for error in refused.value.errors():
        assert sentence_of(error) == error["msg"]
        assert_said(sentence_of(error))


def test_what_pydantic_will_say_otherwise_stays_as_it_is():
    told = {"type": "greater_than", "loc": (), "msg": "Must be more than 2", "ctx": {"gt": 2}}
    assert sentence_of(told) == "Must be more than 2"
    assert sentence_of({"type": "too_short", "loc": (), "msg": "Set is empty", "ctx": {}}) == "Set is empty"
    assert sentence_of({"type": "missing", "loc": (), "msg": "Field required"}) == "Field required"
