"""What holds for every method of the catalogue before a row is read: its order, its price, its card, its imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import service.methods
import workers.methods
from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.methods.catalogue import CATALOGUE, NAMES, check_order, method_of, parse_order, parse_resolved_order
from service.privacy.events import events_from_json, events_to_json
from tests.catalogue import BUDGET, CASES, SCHEMAS, case_of, ordered, schema_of

SIDES = [Path(package.__path__[0]) for package in (service.methods, workers.methods)]


def test_a_method_is_two_folders_of_one_name_and_one_line() -> None:
    for side in SIDES:
        folders = {path.name for path in side.iterdir() if path.is_dir() and not path.name.startswith("_")}
        assert folders == set(NAMES) == set(CATALOGUE)
    for name, method in CATALOGUE.items():
        assert method.name == name
        assert get_args(method.order.model_fields["method"].annotation) == (name,)
        assert method.takes <= set(SCHEMAS)
        assert (SIDES[1] / name / "run.py").is_file()


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_resolving_again_changes_nothing_and_what_is_stored_is_what_runs(method: str, holds: Any) -> None:
    case = case_of(method, holds)
    assert method_of(case.order).resolve(case.order, case.facts) == case.order
    stored = parse_resolved_order(json.loads(case.order.model_dump_json()))
    assert stored == case.order
    assert method_of(stored).resolve(stored, case.facts) == stored


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_events_are_a_price_list_with_words_for_each_purpose(method: str, holds: Any) -> None:
    case, card = case_of(method, holds), CATALOGUE[method].card
    assert case.events
    assert {event.purpose for event in case.events} <= set(card.releases)
    assert events_from_json(json.loads(json.dumps(events_to_json(case.events)))) == case.events
    events_at = CATALOGUE[method].events(case.order, 1.0, 1e-7)
    quiet, loud = events_at(1.0), events_at(4.0)
    assert [event.purpose for event in quiet] == [event.purpose for event in loud]
    assert quiet != loud


@pytest.mark.parametrize("method", NAMES)
def test_the_card_is_complete(method: str) -> None:
    card = CATALOGUE[method].card
    for words in (card.summary, card.makes, card.source, card.paper_holds):
        assert words.strip() == words != ""
    assert card.summary.endswith(".")
    for measured in card.releases.values():
        assert measured.what
        assert measured.of_one_unit.format(rows=3)
    for name, knob in CATALOGUE[method].order.model_fields.items():
        nested = name in {"optimizer", "networks", "image_networks"}
        assert name == "method" or nested or knob.description, name


@pytest.mark.parametrize("method", NAMES)
def test_what_a_method_does_not_take_is_refused_before_any_price(method: str) -> None:
    order = parse_order(ordered(method))
    for holds, schema in SCHEMAS.items():
        if holds in CATALOGUE[method].takes:
            check_order(order, parse_schema(schema_of(method, holds)))
        else:
            with pytest.raises(InvalidOrder, match="method: this one makes"):
                check_order(order, parse_schema(schema))
    with pytest.raises(InvalidOrder, match=r"^no_such_knob: no such knob; there are: epsilon, share, .*device"):
        parse_order(ordered(method, no_such_knob=1))


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        (
            {"method": "auto", "colum": "size"},
            "colum: no such knob; there are: epsilon, share, condition_on, purpose, device, owner_report, report, accept, method",
        ),
        ({"networks": {"clip": 1}}, "networks.clip: no such knob; there are: noise_dimension, generator_hidden, "),
        ({"image_networks": {"clip": 1}}, "image_networks.clip: no such knob; there are: layers, "),
        (
            {"thresholds": {"kind": "fixed", "clip": 1}},
            "thresholds.fixed.clip: no such knob; there are: kind, clip_norm",
        ),
        ({"warm_start": {"kind": "none", "pairs": "all"}}, "warm_start.none.pairs: no such knob; there are: kind"),
    ],
)
def test_an_unknown_knob_is_refused_with_those_that_there_are(knobs: Any, sentence: str) -> None:
    with pytest.raises(InvalidOrder) as refused:
        parse_order({"method": "idpgan", "epsilon": 1.0} | knobs)
    assert refused.value.detail.startswith(sentence)
    assert "chosen_because" not in refused.value.detail


def test_orders_cards_and_prices_load_no_torch_and_no_worker() -> None:
    code = "import sys, service.methods.pricing; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & {"torch", "sklearn", "workers", "sqlalchemy", "fastapi"}


@pytest.mark.parametrize(("method", "holds"), [case for case in CASES if case[0] != "declaration"])
def test_the_rest_of_a_budget_is_an_order_like_any_other(method: str, holds: Any) -> None:
    case = case_of(method, holds, epsilon=None, share="rest")
    assert case.order.epsilon == pytest.approx(BUDGET.epsilon, rel=0.05)
    assert case.order.share is None
