"""A refused order says what would be accepted: the nearest name, or all that there are."""

from __future__ import annotations

import pytest

from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.methods.catalogue import check_order, parse_order
from tests.catalogue import case_of

TABLE = parse_schema(
    {
        "fields": [
            {"name": "colour", "type": "string", "constraints": {"enum": ["red", "blue"]}},
            {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
        ]
    }
)
IMAGES = parse_schema({"type": "image", "height": 8, "width": 8, "channels": 1, "classes": 2})


@pytest.mark.parametrize(
    ("order", "schema", "said"),
    [
        ({"epsilon": 1, "method": "marginal"}, TABLE, "did you mean 'marginals'?"),
        ({"epsilon": 1, "method": "idpgan", "stpes": 3}, TABLE, "did you mean 'steps'?"),
        ({"epsilon": 1, "condition_on": "color"}, TABLE, "choose one of colour; did you mean 'colour'?"),
        ({"epsilon": 1, "condition_on": "size"}, TABLE, "choose one of colour"),
        ({"epsilon": 1, "method": "mixture"}, TABLE, "choose one of auto, "),
        ({"epsilon": 1, "method": "marginals"}, IMAGES, "mixture"),
        # Of a knob that may be one of several things, what is wrong with the one that was meant; and no name of pydantic's.
        (
            {"epsilon": 1, "method": "image_release", "unit": {"rows": 0, "columns": 1}},
            IMAGES,
            "unit.rows: Input should",
        ),
        ({"epsilon": 1, "method": "image_release", "unit": {"rows": 1}}, IMAGES, "unit.columns: Field required"),
        ({"epsilon": 1, "method": "image_release", "unit": {"row": 1}}, IMAGES, "unit.rows: Field required"),
        ({"epsilon": 1, "method": "image_release", "unit": "row"}, IMAGES, "unit: Input should be 'image' or 'column'"),
        ({"share": "all"}, TABLE, "share: Input should be a valid number"),
        ({"epsilon": 1, "method": "idpgan", "private_step": {"Block": 1}}, TABLE, "private_step.Block: no such knob"),
    ],
)
def test_a_refused_order_says_what_would_be_accepted(order, schema, said):
    with pytest.raises(InvalidOrder) as refused:
        check_order(parse_order(order), schema)
    assert said in refused.value.detail


@pytest.mark.parametrize("method", ["idpgan", "dpgan", "ganobfuscator", "rdpcgan", "dpgm", "dpsyn"])
def test_a_rate_at_which_steps_draw_nobody_is_refused_with_the_least(method, monkeypatch):
    """The search for the noise of such a list held the slow pricing for as long as it may take."""
    monkeypatch.setattr("tests.catalogue.price_order", lambda *_: pytest.fail("it was priced"))
    for rate in (1e-300, 2.4e-5):
        with pytest.raises(InvalidOrder, match=r"at least 2\.5e-05") as refused:  # of 400 units
            case_of(method, "table", sampling_probability=rate)
        assert refused.value.values["where"] == "sampling_probability"
