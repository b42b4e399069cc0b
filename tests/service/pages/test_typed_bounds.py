"""Bounds and categories that are typed into the page are read as the column itself is written."""

import pytest

from service.base.errors import InvalidInput
from service.pages.declaring import column_forms, declaration_of, with_columns

DRAFT = {"names": [], "rows": [], "findings": {}}
"""Of which nothing is known."""
GERMAN = {"decimalChar": ",", "groupChar": "."}


def typed(field, **said):
    """The field with what a form says of its only column; all else is sent as it was shown."""
    document = {"fields": [{"name": "x", "constraints": {}, **field}]}
    (shown,) = column_forms(document, DRAFT)
    form = {
        "use": shown.use,
        "categories": shown.categories,
        "low": shown.low,
        "high": shown.high,
        "missing": shown.missing,
    }
    sent = {f"c{shown.place}.{word}": text for word, text in (form | said).items()}
    return with_columns(document, sent, {})["fields"][0]


@pytest.mark.parametrize(
    ("text", "use", "spelling", "meant"),
    [
        ("50.000", "number", GERMAN, 50_000),
        ("1.234.567,5", "number", GERMAN, 1_234_567.5),
        ("45,5", "number", GERMAN, 45.5),
        ("-0,25", "number", GERMAN, -0.25),
        ("45.5", "number", GERMAN, 45.5),
        ("0.125", "number", GERMAN, 0.125),
        ("1,125", "number", GERMAN, 1.125),
        ("50.000", "number", {}, 50.0),
        ("1'234.50", "number", {"groupChar": "'"}, 1234.5),
        ("12,34", "number", {}, "12,34"),
        ("9007199254740993", "integer", GERMAN, 9_007_199_254_740_993),
        ("01.02.2023", "date", {"format": "%d.%m.%Y"}, "2023-02-01"),
        ("2023-02-01", "date", {"format": "%d.%m.%Y"}, "2023-02-01"),
    ],
)
def test_a_typed_bound_means_what_the_column_would_mean_by_it(text, use, spelling, meant):
    found = typed({"type": use, **spelling}, high=text)["constraints"]["maximum"]
    assert (found, type(found)) == (meant, type(meant))


def test_what_the_form_showed_stays_what_it_is():
    """It is shown as schemas write numbers; only what was added is in the column's spelling."""
    field = {"type": "number", "constraints": {"enum": [1.125, 2.25, 10.5]}, **GERMAN}
    shown = "1.125\n2.25\n10.5"
    assert typed(field, categories=f"{shown}\n20,5\n1.000")["constraints"]["enum"] == [1.125, 2.25, 10.5, 20.5, 1_000]


def test_a_bound_survives_another_type_and_another_bound():
    field = {"type": "number", "constraints": {"minimum": 45.125, "maximum": 90}, **GERMAN}
    assert typed(field, high="100")["constraints"] == {"minimum": 45.125, "maximum": 100}
    assert typed(field, use="integer")["constraints"] == {"minimum": 45.125, "maximum": 90}


@pytest.mark.parametrize(("text", "spelling"), [("1234.567", GERMAN), ("50.000", {"decimalChar": ","})])
def test_what_may_mean_thousands_or_a_fraction_is_refused_with_both(text, spelling):
    field = typed({"type": "number", **spelling}, low="0", high=text)
    field = typed(field, low="1", public="1")  # sent once more, it is still what was typed
    assert field["constraints"] == {"minimum": 1, "maximum": text}
    filled = {"document": {"fields": [field]}, "unit": {"several": "no"}, "declared": True}
    with pytest.raises(InvalidInput, match=f"could mean {text.replace('.', '')} or {text.replace('.', ',')}"):
        declaration_of(filled, DRAFT)
