"""The lines of `imprimatur methods NAME`: names that `--set` takes, defaults that may be ordered, what is allowed."""

from __future__ import annotations

import pytest

from imprimatur.cli.knobs import NONE, Schema
from imprimatur.cli.order_options import build_order
from service.base.errors import InvalidOrder
from service.methods.catalogue import ORDERS, parse_order

REQUIRED = {"choose": ['candidates=[{"method": "marginals"}]'], "queries": ['questions=[{"kind": "count"}]']}
RULE = ["accept.two_way_tv=0.08", "report.share=0.05"]
"""What `accept.by` needs beside it."""

IDPGAN = list(Schema(ORDERS["idpgan"].model_json_schema()).knobs())


def line(name):
    (found,) = [knob for knob in IDPGAN if knob.name == name]
    return found


@pytest.mark.parametrize("method", ORDERS)
def test_every_line_may_be_ordered_as_it_is_written(method):
    knobs = list(Schema(ORDERS[method].model_json_schema()).knobs())
    assert not any("{" in knob.default for knob in knobs)
    tags = {knob.name for knob in knobs if knob.name.endswith(".kind")}
    ordered = 0
    for name, default, _, meaning in knobs:
        if default in {NONE, ""}:
            continue
        tag = f"{name.rpartition('.')[0]}.kind"
        of_kinds = tag in tags - {name} and meaning.startswith("(")  # an optimizer has all knobs, whatever its kind
        kinds = meaning[1 : meaning.index(")")].split(", ") if of_kinds else [None]
        for kind in kinds:
            beside = [*REQUIRED.get(method, ()), *(RULE if name.startswith("accept.") else ())]
            written = [*beside, f"{name}={default}", *([] if kind is None else [f"{tag}={kind}"])]
            parse_order(build_order(None, written, method=method, epsilon=1.0))
            ordered += 1
    assert ordered >= (5 if method not in {"auto", "queries", "declaration"} else 1)


def test_nested_knobs_have_dotted_names_defaults_and_bounds():
    assert line("networks.noise_dimension")[1:3] == ("32", "whole number ≥ 1, ≤ 1024")
    assert line("networks.critic_hidden")[1:3] == ("[128, 128]", "list of at most 8, each whole number ≥ 1, ≤ 4096")
    assert line("networks").meaning == "Sizes of both perceptrons; tables only."
    assert line("optimizer.beta2")[1:3] == ("0.9", "number > 0, < 1")
    assert line("steps").allowed == "whole number ≥ 1, ≤ 1000000"
    assert line("share")[1:3] == (NONE, "number > 0, ≤ 1 or rest")
    assert line("device").allowed == "auto, cpu or cuda"
    assert not {"method", "chosen_because"} & {knob.name for knob in IDPGAN}


def test_of_several_kinds_each_knob_says_whose_it_is():
    assert line("thresholds.kind")[1:3] == ("adaptive", "adaptive or fixed")
    assert line("warm_start.kind")[1:3] == (NONE, "tables, mixture or none")
    assert line("thresholds.clip_norm").meaning.startswith("(fixed) ")
    assert line("noise_decay.warm_up_epochs").meaning.startswith("(constant, exponential, periodic, polynomial) ")
    periods = [knob for knob in IDPGAN if knob.name == "noise_decay.period_epochs"]
    assert [(knob.default, knob.meaning.split(")")[0]) for knob in periods] == [
        ("10", "(periodic"),
        (NONE, "(polynomial"),
    ]


def test_a_knob_without_its_kind_is_refused_with_what_is_missing():
    order = build_order(None, ["thresholds.clip_norm=1"], method="idpgan", epsilon=1.0)
    with pytest.raises(InvalidOrder, match="thresholds: say which one is meant: 'kind' is missing"):
        parse_order(order)
