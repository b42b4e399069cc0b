"""Networks that begin near bought tables: what is bought is on the list, what follows reads no row, and a crash in any phase is survived."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from service.domain.grids import shape_of
from service.domain.table_schema import TableSchema
from service.methods.idpgan.order import IdpganOrder
from service.methods.marginals import components
from service.methods.marginals.price import MARGINALS, ONE_WAY_TABLES, PAIR_SCORES
from service.privacy.events import Events, GaussianEvent, SampledStepEvent
from service.privacy.filters import open_budget
from tests.exact_changes import squared_change
from tests.orders import price_order, resolve_order
from tests.recorded_runs import Kept, Killed, RecordedPlan
from tests.runs import train
from workers.checkpoints import Checkpoint
from workers.encoding.table import ABSENT, EncodedTable, TableDomain
from workers.generators.released import TableRelease
from workers.hooks import Hooks, TrainingStopped
from workers.mechanism import PrivateSum
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan import training as idpgan
from workers.methods.idpgan.tables import TableIdpgan
from workers.plan import Plan

SCHEMA = TableSchema.model_validate(
    {
        "target": "label",
        "fields": [
            {"name": "colour", "type": "string", "constraints": {"enum": ["r", "g", "b"], "required": True}},
            {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 5, "required": True}},
            {"name": "label", "type": "boolean", "constraints": {"required": True}},
        ],
    }
)
DOMAIN = TableDomain.from_schema(SCHEMA, numeric_bins=8)
TINY = 1e-6
START = {"kind": "tables", "pairs": "all", "generator_steps": 5, "critic_steps": 3}


def make_table(rows: int = 600, rows_per_unit: int = 1) -> EncodedTable:
    """Size follows colour."""
    generator = np.random.default_rng(1)
    colour, label = generator.integers(3, size=rows), (generator.random(rows) < 0.3).astype(int)
    size = colour * 2 + generator.integers(2, size=rows)
    codes = np.stack([colour, size, label], axis=1).astype(np.uint16)
    if rows_per_unit == 1:
        return EncodedTable(codes, rows, None, 1)
    starts = np.arange(0, rows + 1, rows_per_unit, dtype=np.int64)
    return EncodedTable(codes, rows // rows_per_unit, starts, rows_per_unit)


def make_order(steps: int = 9, **start: Any) -> IdpganOrder:
    return IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "epsilon": 1.0,
            "condition_on": "label",
            "sampling_probability": 0.2,
            "steps": steps,
            "device": "cpu",
            "networks": {"noise_dimension": 8, "generator_hidden": [32], "critic_hidden": [16, 16]},
            "warm_start": {**START, **start},
        }
    )


def events_of(order: IdpganOrder, tables: float = TINY, steps: float = 1.0) -> Events:
    return (GaussianEvent(MARGINALS, tables), SampledStepEvent(0.2, steps, 8.0 * steps, order.steps))


@pytest.fixture(autouse=True)
def _quick_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mixture's own fit has tests of its own."""
    monkeypatch.setattr(components, "MOST_LOGITS", 64 * 2 * 11)


def joint_of(trained: TableRelease, rows: int = 20_000) -> np.ndarray:
    """Colour by size."""
    randomness = SecureRandom.from_test_seed(3)
    noise = randomness.normals(rows, trained.noise_dimension, dtype=torch.float32)
    assert trained.condition_frequencies is not None
    given = torch.multinomial(torch.tensor(trained.condition_frequencies), rows, replacement=True)
    with torch.no_grad():
        logits = trained.generator(noise, given)
    gumbel = -torch.log(-torch.log(randomness.uniforms(rows, 11, dtype=torch.float32)))
    colour, size = ((logits + gumbel)[:, part].argmax(dim=1) for part in (slice(0, 3), slice(3, 9)))
    return np.bincount((colour * 6 + size).numpy(), minlength=18) / rows


@pytest.mark.slow
def test_a_generator_learns_from_the_tables_what_drowned_steps_cannot_teach() -> None:
    table = make_table()
    order = make_order(20, generator_steps=300, generator_learning_rate=1e-2)
    wanted = np.bincount(table.codes[:, 0] * 6 + table.codes[:, 1], minlength=18) / table.units
    distances = []
    for tables in (TINY, 1e6):
        plan = Plan(events_of(order, tables, 100.0))
        trained = train(order, plan, table, DOMAIN, SecureRandom.from_test_seed(1))
        distances.append(float(np.abs(joint_of(trained) - wanted).sum() / 2))
        assert plan.steps_done == 20
    assert distances[0] < 0.2
    assert distances[1] > 0.4
    assert trained.rows_per_unit is None


def test_frequencies_and_rows_of_a_unit_come_with_the_tables() -> None:
    order = make_order(2)
    trained = train(order, Plan(events_of(order)), make_table(rows_per_unit=3), DOMAIN, SecureRandom.from_test_seed(1))
    share = float((make_table().codes[:, 2] == 1).mean())
    assert trained.condition_frequencies == pytest.approx((1.0 - share, share), abs=0.01)
    assert trained.rows_per_unit == pytest.approx(3.0, abs=0.01)


def test_nothing_after_the_tables_reads_a_row_before_the_first_step() -> None:
    order = make_order()
    method = begun(order, events_of(order), make_table())
    method.measure()
    del method.table.codes
    assert method.tables is not None
    before = [tensor.clone() for tensor in (*method.generator.parameters(), *method.critic.parameters())]
    heard: list[float] = []
    method.warm_up(heard.append)
    assert len(heard) >= 8
    assert heard == sorted(heard)
    assert 0.0 < heard[0] < 1.0 / 3.0
    assert heard[-1] == 1.0
    assert method.plan.position == 1
    after = [*method.generator.parameters(), *method.critic.parameters()]
    assert not any(torch.equal(one, other) for one, other in zip(before, after, strict=True) if one.dim() == 2)
    method.generator_step()
    averaged = zip(method.averaged_generator.parameters(), method.generator.parameters(), strict=True)
    assert all(bool((one - other).abs().max() < 0.1) for one, other in averaged)


def begun(order: IdpganOrder, events: Events, table: EncodedTable, seed: int = 1) -> TableIdpgan:
    torch.manual_seed(seed)

    class Mutable:
        """A table whose rows can be taken away."""

        def __init__(self) -> None:
            self.__dict__.update(
                codes=table.codes,
                units=table.units,
                unit_starts=table.unit_starts,
                max_rows_per_unit=table.max_rows_per_unit,
            )

    rows: Any = Mutable()
    return TableIdpgan(order, Plan(events), rows, DOMAIN, SecureRandom.from_test_seed(seed), torch.device("cpu"))


@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_zeroing_out_a_unit_moves_every_release_by_at_most_its_sensitivity(
    rows_per_unit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same coins and neighbouring tables; noise so large that what was released before is as good as the same is not needed:
    the second run is given the tables that the first one released."""
    order = make_order(2, hold=0.5)
    order = order.model_copy(update={"networks": order.networks.model_copy(update={"pair_products": 6})})
    real, sums = idpgan.release, list[PrivateSum]()
    monkeypatch.setattr(idpgan, "release", lambda private, **more: (sums.append(private), real(private, **more))[1])
    table = make_table(60, rows_per_unit)

    def heard(rows: EncodedTable, released: Any) -> tuple[list[PrivateSum], Any]:
        sums.clear()
        method = begun(order, events_of(order, 2.0), rows)
        assert method.tables is not None
        method.measure()
        if released is not None:
            method.tables.known = replace(method.tables.known, tables=released)
            method._take_from_tables(method.tables)
        method.warm_up(lambda _share: None)
        method.critic_step()
        return list(sums), method.tables.measured

    full, released = heard(table, None)
    for unit in (0, table.units // 2):
        codes = table.codes.copy()
        codes[unit * rows_per_unit : (unit + 1) * rows_per_unit] = ABSENT
        others, _ = heard(EncodedTable(codes, table.units, table.unit_starts, rows_per_unit), released)
        assert len(full) == len(others) == 2
        for first, second in zip(full, others, strict=True):
            changes = squared_change(first, second)
            assert all(c <= s**2 for c, s in zip(changes, first.sensitivities, strict=True))


# -- killed and gone on with ------------------------------------------------------------------------------------------


CHOSEN: Events = (
    GaussianEvent(ONE_WAY_TABLES, 3.0),
    GaussianEvent(PAIR_SCORES, 4.0),
    GaussianEvent(MARGINALS, 2.0),
    SampledStepEvent(0.2, 1.0, 8.0, 6),
)


@pytest.mark.parametrize("die_before", range(9))
def test_killed_before_any_event_the_rest_of_the_list_runs_and_nothing_else(die_before: int) -> None:
    order, store = make_order(6, pairs="chosen"), Kept()
    wanted = list(enumerate([3.0, 4.0, 2.0, *[1.0] * 6], start=1))

    def go(plan: Plan) -> TableRelease:
        return train(
            order, plan, make_table(), DOMAIN, SecureRandom(), Hooks(checkpoints=store, checkpoint_every_steps=2)
        )

    first = RecordedPlan(CHOSEN, die_before)
    with pytest.raises(Killed):
        go(first)
    position = store.position
    assert position in {0, 3, 5, 7}
    assert position <= die_before
    second = RecordedPlan(CHOSEN)
    trained = go(second)
    assert first.run[:position] + second.run == wanted
    assert (second.position, second.steps_done) == (9, 6)
    assert trained.is_private
    assert trained.condition_frequencies is not None


def test_stopped_while_it_warms_up_it_has_bought_the_tables_and_nothing_else() -> None:
    order, store, seen, steps = make_order(), Kept(), list[float](), list[int]()
    plan = RecordedPlan(events_of(order))
    with pytest.raises(TrainingStopped) as stop:
        train(
            order,
            plan,
            make_table(),
            DOMAIN,
            SecureRandom(),
            Hooks(
                on_progress=steps.append,
                on_warm_up=seen.append,
                checkpoints=store,
                should_stop=lambda: len(seen) == 30,
            ),
        )
    assert stop.value.values == {"steps_done": 0}
    assert steps == []
    assert (len(plan.run), store.position) == (1, 1)
    again = RecordedPlan(events_of(order))
    train(order, again, make_table(), DOMAIN, SecureRandom(), Hooks(checkpoints=store))
    assert [noise for _, noise in again.run] == [1.0] * 9


def test_a_checkpoint_restores_what_is_held() -> None:
    order = make_order()

    def unexpected(_share: float) -> None:
        raise AssertionError("it is warm")

    method = begun(order, events_of(order), make_table(rows_per_unit=3))
    method.measure()
    method.warm_up(lambda _share: None)
    method.critic_step()
    saved = Checkpoint.from_bytes(method.checkpoint().to_bytes())
    other = begun(order, events_of(order), make_table(rows_per_unit=3), seed=2)
    other.restore(saved)
    other.warm_up(unexpected)
    assert other.rows_per_unit == method.rows_per_unit
    assert method.held is not None
    assert other.held is not None
    assert all(torch.equal(a, other.held.tensors()[name]) for name, a in method.held.tensors().items())
    assert set(other.checkpoint().tensors) == set(method.checkpoint().tensors)


# -- what is bought is on the list -------------------------------------------------------------------------------------


def test_priced_by_default_and_run_from_the_price_list() -> None:
    budget, table = open_budget(4.0, 1e-5), make_table()
    order = IdpganOrder.model_validate(
        {"method": "idpgan", "epsilon": 2.0, "steps": 3, "device": "cpu", "warm_start": {**START, "pairs": "auto"}}
    )
    order = resolve_order(order, units=table.units, shape=shape_of(SCHEMA, numeric_bins=32), budget=budget)
    assert isinstance(order, IdpganOrder)
    events = price_order(order, units=table.units, budget=budget).events
    assert events[0].kind == "gaussian"
    plan = Plan(events)
    train(order, plan, table, TableDomain.from_schema(SCHEMA, numeric_bins=32), SecureRandom())
    assert plan.position == sum(event.count for event in events)


def test_networks_too_have_the_values_that_many_rows_share_and_exclusions_after_any_crash() -> None:
    schema = TableSchema.model_validate(
        {
            "target": "label",
            "fields": [
                {"name": "paid", "type": "integer", "constraints": {"minimum": 0, "maximum": 999, "required": True}},
                {"name": "label", "type": "boolean", "constraints": {"required": True}},
            ],
            "exclusions": [{"label": [True], "paid": {"maximum": 0}}],
        }
    )
    domain = TableDomain.from_schema(schema, numeric_bins=8)
    paid = np.where(np.arange(600) % 3 == 0, 499, np.random.default_rng(1).integers(1_000, size=600)).astype(np.uint32)
    codes = np.stack([np.searchsorted(domain.columns[0].edges or (), paid, side="right") - 1, paid % 2], axis=1)
    table = EncodedTable(codes.astype(np.uint16), 600, None, 1, {0: paid})
    order = make_order(4, tree_precision_share=0.1)
    assert order.counts_values
    events = (GaussianEvent("value_trees", 1.0), GaussianEvent(MARGINALS, TINY), SampledStepEvent(0.2, 1.0, 8.0, 4))
    found = []
    for die_before in (2, 3, 5):  # before any step, as soon as it is warm, later
        store = Kept()
        hooks = Hooks(checkpoints=store, checkpoint_every_steps=1)
        first, second = (SecureRandom.from_test_seed(seed) for seed in (die_before, 10 + die_before))
        with pytest.raises(Killed):
            train(order, RecordedPlan(events, die_before), table, domain, first, hooks)
        assert (store.position or 0) == {2: 2, 3: 3, 5: 5}[die_before]
        trained = train(order, RecordedPlan(events), table, domain, second, hooks)
        assert trained.domain is not None
        found.append(dict(trained.domain.columns[0].shared_values))
        assert trained.domain.columns[1].shared_values == ()
        assert trained.domain.exclusions == domain.exclusions != ()
    assert [shares[499.0] for shares in found] == pytest.approx([0.78] * 3, abs=0.06)
