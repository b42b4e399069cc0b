"""The price of `rdpcgan`: two phases of private steps on one list, each with its part of the precision."""

from __future__ import annotations

from typing import Any

import pytest

from service.base.errors import InvalidOrder
from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import CATALOGUE, check_order, parse_order
from service.privacy.accounting import first_steps, renyi_divergence
from service.privacy.events import SampledStepEvent
from tests.catalogue import case_of


def steps_of(**autoencoder: Any) -> list[SampledStepEvent]:
    case = case_of("rdpcgan", "table", steps=40, autoencoder={"steps": 10, **autoencoder})
    assert case.order.progress_steps == 50
    return [event for event in case.events if isinstance(event, SampledStepEvent)]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_both_phases_are_on_the_list_with_their_parts_of_the_precision(share: float) -> None:
    coder, critic = steps_of(precision_share=share)
    assert (coder.count, critic.count) == (10, 40)
    assert coder.sampling_probability == critic.sampling_probability == 0.1
    precision = [event.count / event.gradient_noise_multiplier**2 for event in (coder, critic)]
    assert precision[0] / sum(precision) == pytest.approx(share)


def test_the_autoencoder_is_not_free() -> None:
    """Of one list and one σ of the critic's steps: without the autoencoder's it would cost less."""
    case = case_of("rdpcgan", "table", steps=40, autoencoder={"steps": 10})
    events = CATALOGUE["rdpcgan"].events(case.order, 1.0, 1e-7)(2.0)
    without = (*events[:1], *events[2:])
    assert renyi_divergence(events, 8) > 1.2 * renyi_divergence(without, 8)
    # And a run that is stopped in the first phase has taken steps of that phase alone.
    assert first_steps(events, 7) == (events[0], events[1].cut(7))


def test_a_table_of_one_column_has_nothing_to_encode() -> None:
    schema = parse_table_schema({"fields": [{"name": "a", "type": "boolean", "constraints": {"required": True}}]})
    with pytest.raises(InvalidOrder, match="two columns"):
        check_order(parse_order({"method": "rdpcgan", "epsilon": 1.0}), schema)
