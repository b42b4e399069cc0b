"""Measure once, fit, export: what is charged is what is done, and the mixture says what was measured."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import json
import zipfile
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from service.domain.grids import shape_of, tree_levels
from service.domain.table_schema import TableSchema
from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.price import MARGINALS, ONE_WAY_TABLES, PAIR_SCORES, VALUE_TREES, marginals_events
from service.privacy.events import Events, GaussianEvent
from service.privacy.filters import open_budget
from service.samples.table.sampler import TableSampler
from tests.bundles import build_bundle
from tests.memory import Memory
from tests.orders import price_order, resolve_order
from tests.runs import train
from workers.encoding.table import ABSENT, UNIT_COLUMN, EncodedTable, TableDomain, encode_table
from workers.generators.released import TableRelease
from workers.generators.table.bundle import export_onnx
from workers.hooks import UNATTENDED, Hooks, TrainingStopped
from workers.mechanism.noise import drawn_std
from workers.mechanism.secure_random import SecureRandom
from workers.methods.marginals.choose import by_scores
from workers.methods.marginals.estimate.table_estimates import estimates_of
from workers.methods.marginals.fit import mixture_fit
from workers.methods.marginals.measure import releases
from workers.methods.marginals.measure.measured import Measured
from workers.methods.marginals.method import Marginals
from workers.plan import Plan, StepNotOnPlan

SCHEMA = TableSchema.model_validate(
    {
        "target": "label",
        "fields": [
            {"name": "colour", "type": "string", "constraints": {"enum": ["r", "g", "b"]}},
            {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 11, "required": True}},
            {"name": "label", "type": "boolean", "constraints": {"required": True}},
            {"name": "price", "type": "number", "constraints": {"minimum": 0, "maximum": 10, "required": True}},
        ],
    }
)
MANY_CLASSES = TableSchema.model_validate(
    {
        "target": "size_class",
        "fields": [
            {"name": "colour", "type": "string", "constraints": {"enum": ["r", "g", "b"]}},
            {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 11, "required": True}},
            {"name": "size_class", "type": "integer", "constraints": {"enum": list(range(12)), "required": True}},
            {"name": "price", "type": "number", "constraints": {"minimum": 0, "maximum": 10, "required": True}},
        ],
    }
)
DOMAIN = TableDomain.from_schema(SCHEMA, numeric_bins=6)
COUNTED = {"pair_groups": "counted"}
TINY = 1e-6
ALMOST_NONE: Events = (GaussianEvent(MARGINALS, TINY),)
COLUMNS_ALONE: Events = (GaussianEvent(ONE_WAY_TABLES, TINY), GaussianEvent(MARGINALS, TINY))
GROUPED: Events = (GaussianEvent(ONE_WAY_TABLES, 4.0), GaussianEvent(MARGINALS, 2.0))
GROUPED_WITHOUT_NOISE: Events = (GaussianEvent(ONE_WAY_TABLES, TINY), GaussianEvent(MARGINALS, TINY))
TREES: Events = (GaussianEvent(VALUE_TREES, TINY), GaussianEvent(MARGINALS, TINY))
COLOURS = ["r", "g", "b", None]
CHOSEN: Events = (GaussianEvent(ONE_WAY_TABLES, TINY), GaussianEvent(PAIR_SCORES, TINY), GaussianEvent(MARGINALS, TINY))


def make_order(**knobs: Any) -> MarginalsOrder:
    document = {"method": "marginals", "epsilon": 1.0, "condition_on": "label", "pairs": "all", "device": "cpu"}
    return MarginalsOrder.model_validate({**document, "components": 64, "steps": 150, **knobs})


def make_table(rows: int = 3_000, rows_per_unit: int = 1) -> EncodedTable:
    """Size follows colour, price follows the label; price and size are otherwise independent."""
    generator = np.random.default_rng(1)
    colour, label = generator.integers(4, size=rows), (generator.random(rows) < 0.2).astype(int)
    size = (colour * 3 + generator.integers(3, size=rows)) % 12
    price = np.where(label == 1, generator.integers(3, size=rows), 3 + generator.integers(3, size=rows))
    codes = np.stack([colour, size, label, price], axis=1).astype(np.uint16)
    if rows_per_unit == 1:
        return EncodedTable(codes, rows, None, 1)
    starts = np.arange(0, rows + 1, rows_per_unit, dtype=np.int64)
    return EncodedTable(codes, rows // rows_per_unit, starts, rows_per_unit)


def run(
    table: EncodedTable, order: MarginalsOrder, events: Events = ALMOST_NONE, hooks: Hooks = UNATTENDED
) -> TableRelease:
    return train(order, Plan(events), table, DOMAIN, SecureRandom.from_test_seed(1), hooks)


def rows_of(trained: TableRelease, rows: int = 20_000) -> dict[str, list[Any]]:
    bundle = build_bundle(
        trained.generator,
        DOMAIN,
        noise_dimension=trained.noise_dimension,
        condition_index=trained.condition_index,
        condition_frequencies=trained.condition_frequencies,
        schema=SCHEMA,
        certificate={},
        order={"method": "marginals"},
    )
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        assert "fitted to noisy marginals" in archive.read("MODEL_CARD.md").decode()
        sampler = TableSampler.from_files(json.loads(archive.read("config.json")), archive.read("generator.onnx"))
    chunks = list(sampler.chunks(rows, seed=3))
    assert next(sampler.chunks(rows, seed=3)) == chunks[0]
    only = next(sampler.chunks(50, seed=3, where={"label": "true"}))
    assert all(only["label"])
    return {name: [value for chunk in chunks for value in chunk[name]] for name in sampler.names}


def assert_rows_look_like_the_table(rows: dict[str, list[Any]]) -> None:
    size, label, price = np.array(rows["size"]), np.array(rows["label"]), np.array(rows["price"])
    colour = np.array([{"r": 0, "g": 1, "b": 2, None: 3}[value] for value in rows["colour"]])
    assert label.mean() == pytest.approx(0.2, abs=0.02)
    assert (colour == size // 3).mean() > 0.9
    assert ((price < 5.0) == label).mean() > 0.95
    assert set(size.tolist()) == set(range(12))


@pytest.mark.parametrize(
    ("rows", "ordered", "components"), [(8_192, 2_048, 2_048), (8_191, 2_048, 1_024), (60, 2_048, 512), (60, 64, 64)]
)
def test_few_rows_of_a_value_have_fewer_components(rows: int, ordered: int, components: int) -> None:
    order, table = make_order(components=ordered), make_table(rows)
    method = Marginals(order, Plan(ALMOST_NONE), table, DOMAIN, SecureRandom.from_test_seed(1), torch.device("cpu"))
    assert method.components == components


@pytest.mark.parametrize("events", [ALMOST_NONE, CHOSEN], ids=["all", "chosen"])
def test_the_sampled_rows_have_the_measured_relations(events: Events) -> None:
    order = make_order(pairs="all" if events is ALMOST_NONE else "chosen", steps=300)
    trained = run(make_table(), order, events)
    assert not trained.is_private  # a test seed
    assert_rows_look_like_the_table(rows_of(trained))


def test_without_pairs_every_column_follows_the_label_and_no_other() -> None:
    rows = rows_of(run(make_table(), make_order(pairs="none", steps=300), COLUMNS_ALONE))
    size, label, price = np.array(rows["size"]), np.array(rows["label"]), np.array(rows["price"])
    colour = np.array([{"r": 0, "g": 1, "b": 2, None: 3}[value] for value in rows["colour"]])
    assert label.mean() == pytest.approx(0.2, abs=0.02)
    assert ((price < 5.0) == label).mean() > 0.95
    assert (colour == size // 3).mean() == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(("pairs", "weight"), [("all", 1.0), ("chosen", 5.0)])
def test_single_columns_are_more_precise_beside_chosen_pairs(pairs: str, weight: float) -> None:
    method = Marginals(
        make_order(pairs=pairs, precision_exponent=1.0),
        Plan(CHOSEN if pairs == "chosen" else ALMOST_NONE),
        make_table(),
        DOMAIN,
        SecureRandom.from_test_seed(1),
        torch.device("cpu"),
    )
    method.measure()
    # What whole numbers have beyond what they pay for is the same for all tables that are released together.
    beyond = drawn_std(0.0, moved=len({m.columns for m in method.measured})) ** 2
    tables = {m.columns: m.counts.size * (m.variance - beyond) for m in method.measured}  # the later of two
    assert tables[0, 1] == pytest.approx(weight * tables[0,], rel=1e-2)


def test_without_a_condition_the_label_is_a_column_like_others() -> None:
    trained = run(make_table(), make_order(condition_on=None, steps=300))
    assert trained.condition_index is None
    random = torch.Generator().manual_seed(1)
    logits = trained.generator(torch.randn(5_000, trained.noise_dimension, generator=random))
    shares = torch.cat([part.softmax(dim=1) for part in logits.split(DOMAIN.widths, dim=1)], dim=1)
    label, price = shares[:, 16:18], shares[:, 18:24]
    joint = label.T @ price / len(shares)
    assert float(joint[1, :3].sum()) == pytest.approx(0.2, abs=0.02)
    assert float(joint[1, 3:].sum() + joint[0, :3].sum()) < 0.03


@pytest.mark.parametrize("pairs", ["all", "none"])
@pytest.mark.parametrize("rows_per_unit", [1, 4])
def test_the_condition_may_be_the_only_column(pairs: str, rows_per_unit: int) -> None:
    table = make_table(rows_per_unit=rows_per_unit)
    labels = EncodedTable(table.codes[:, 2:3], table.units, table.unit_starts, table.max_rows_per_unit)
    schema = TableSchema.model_validate({"target": "label", "fields": [SCHEMA.fields[2]]})
    domain, order = TableDomain.from_schema(schema, numeric_bins=6), make_order(pairs=pairs)
    events = COLUMNS_ALONE if pairs == "none" else ALMOST_NONE
    trained = train(order, Plan(events), labels, domain, SecureRandom.from_test_seed(2))
    assert trained.condition_index is None
    shares = torch.softmax(trained.generator(torch.randn(1, trained.noise_dimension))[0], dim=0)
    assert float(shares[1]) == pytest.approx(table.codes[:, 2].mean(), abs=0.01)


def test_every_event_is_taken_and_no_other() -> None:
    plan = Plan(CHOSEN)
    train(make_order(pairs="chosen", steps=2), plan, make_table(200), DOMAIN, SecureRandom.from_test_seed(1))
    assert plan.position == 3


@pytest.mark.parametrize(
    ("pairs", "events"),
    [
        ("chosen", ALMOST_NONE),
        ("chosen", CHOSEN[1:]),
        ("chosen", (CHOSEN[0], CHOSEN[2])),
        ("chosen", (*CHOSEN, CHOSEN[2])),
        ("all", CHOSEN),
        ("all", COLUMNS_ALONE),
        ("all", TREES),
    ],
)
def test_the_price_list_of_another_order_is_refused_before_a_row_is_read(
    monkeypatch: pytest.MonkeyPatch, pairs: str, events: Events
) -> None:
    for reads_rows in ("count_tables", "pair_scores", "count_intervals"):
        monkeypatch.setattr(releases, reads_rows, None)
    plan = Plan(events)
    with pytest.raises(StepNotOnPlan):
        train(make_order(pairs=pairs, steps=2), plan, make_table(200), DOMAIN, SecureRandom.from_test_seed(1))
    assert plan.position == 0


def pairs_of(trained: TableRelease, i: int, j: int) -> np.ndarray:
    """Probability of every pair of cells of two columns, by the mixture's own logits."""
    ends = np.cumsum([0, *(trained.domain or DOMAIN).widths])
    logits = trained.generator.logits.detach().double()
    shape = (len(trained.condition_frequencies or (1.0,)), -1, logits.shape[-1])
    found = np.zeros((ends[i + 1] - ends[i], ends[j + 1] - ends[j]))
    for frequency, own in zip(trained.condition_frequencies or (1.0,), logits.reshape(shape), strict=True):
        one, other = (own[:, ends[c] : ends[c + 1]].softmax(dim=1).numpy() for c in (i, j))
        found += frequency * one.T @ other / len(own)
    return found


@pytest.mark.parametrize("rows_per_unit", [1, 5])
@pytest.mark.parametrize(
    "groups",
    ["declared", "counted"],
    ids=["all", "groups"],
)
@pytest.mark.parametrize("within", ["condition", "table"])
@pytest.mark.parametrize("pairs", ["all", "few_or_all", "chosen", "none"])
def test_what_is_released_of_neighbouring_tables_differs_by_the_charged_amount(
    monkeypatch: pytest.MonkeyPatch, rows_per_unit: int, pairs: str, within: str, groups: str
) -> None:
    """The real `measure`, with its sums recorded on their way to the noise: Σ (change/noise_std)² ≤ Σ 1/σ²."""
    order, table = make_order(pairs=pairs, pairs_within=within, pair_groups=groups), make_table(300, rows_per_unit)
    table.codes[: 4 * rows_per_unit] = [1, 1, 1, 1]
    budget = open_budget(1.0, 1e-5)
    events = price_order(order, units=table.units, budget=budget).events

    public: list[Any] = []

    def sums_of(codes: np.ndarray) -> list[tuple[int, Any, tuple[float, ...]]]:
        """Of every release: events taken so far, the sum, its noise."""
        recorded, plan = [], Plan(events)

        def release_counts(private: Any, *, noise_stds: Any, **_: Any) -> Any:
            recorded.append((plan.position, private, tuple(noise_stds)))
            # What came out before is the same on both sides: a later release is compared given the earlier ones.
            if len(public) < len(recorded):
                public.append(private.values)
            return public[len(recorded) - 1]

        with monkeypatch.context() as patch:
            patch.setattr(releases, "release_counts", release_counts)
            neighbour = EncodedTable(codes, table.units, table.unit_starts, table.max_rows_per_unit)
            Marginals(order, plan, neighbour, DOMAIN, SecureRandom.from_test_seed(1), torch.device("cpu")).measure()
        return recorded

    zeroed = table.codes.copy()
    zeroed[:rows_per_unit] = ABSENT
    full, without = sums_of(table.codes), sums_of(zeroed)
    assert [(taken, len(stds)) for taken, _, stds in full] == [(taken, len(stds)) for taken, _, stds in without]
    for taken, event in enumerate(events, start=1):
        assert isinstance(event, GaussianEvent)
        # All releases that share an event: together they are one Gaussian.
        change = sum(
            float(((a - b).double() ** 2).sum()) / std**2
            for (place, one, stds), (_, other, _) in zip(full, without, strict=True)
            if place == taken
            for a, b, std in zip(one.values, other.values, stds, strict=True)
        )
        assert change <= event.noise_multiplier**-2 * (1 + 1e-9)
        if event.purpose != PAIR_SCORES:  # the bound is reached: no budget lies idle
            assert change == pytest.approx(event.noise_multiplier**-2)


@pytest.mark.parametrize(
    ("knobs", "events"),
    [
        ({}, (GaussianEvent(MARGINALS, 2.0),)),
        ({"pair_groups": "counted"}, GROUPED),
        (COUNTED | {"pairs_within": "table"}, GROUPED),
        ({"pairs": "few_or_all"}, CHOSEN),
    ],
    ids=["all", "groups", "of all rows", "few or all"],
)
def test_a_crash_after_the_measurement_never_measures_again(
    monkeypatch: pytest.MonkeyPatch, knobs: dict[str, Any], events: Events
) -> None:
    memory, order, table = Memory(), make_order(steps=20, **knobs), make_table(500)
    unbroken = train(order, Plan(events), table, DOMAIN, SecureRandom.from_test_seed(1))

    asked = itertools.count()

    def stop() -> bool:
        return next(asked) > 0  # not yet before the measurement

    with pytest.raises(TrainingStopped):
        train(
            order,
            Plan(events),
            table,
            DOMAIN,
            SecureRandom.from_test_seed(1),
            Hooks(checkpoints=memory, should_stop=stop),
        )
    before = memory.get()
    assert before is not None

    def unreadable(*_: Any, **__: Any) -> Any:
        raise AssertionError("rows were counted again")

    monkeypatch.setattr(releases, "count_tables", unreadable)
    plan = Plan(events)
    trained = train(order, plan, table, DOMAIN, SecureRandom(), Hooks(checkpoints=memory))
    assert plan.position == len(events)
    assert trained.generator.logits.shape == unbroken.generator.logits.shape
    assert memory.get() == before
    assert not trained.is_private  # the first attempt used a test seed: its mark stays
    with pytest.raises(StepNotOnPlan):
        run(table, order, (GaussianEvent(MARGINALS, 3.0),), Hooks(checkpoints=memory))


def test_progress_counts_the_fitting_steps() -> None:
    steps: list[int] = []
    run(make_table(100), make_order(steps=12), hooks=Hooks(on_progress=steps.append))
    assert steps == sorted(steps)
    assert set(steps) == set(range(1, 13))


@pytest.mark.parametrize("pairs", ["all", "chosen"])
@pytest.mark.parametrize("groups", ["declared", "counted"])
def test_pairs_of_all_rows_are_those_of_the_table_and_single_columns_those_of_the_label(
    pairs: str, groups: str
) -> None:
    events = CHOSEN if pairs == "chosen" else GROUPED_WITHOUT_NOISE if groups == "counted" else ALMOST_NONE
    order = make_order(pairs=pairs, pairs_within="table", pair_groups=groups, components=256, steps=400)
    made = rows_of(run(make_table(), order, events))
    follows = np.mean([COLOURS.index(c) == size // 3 for c, size in zip(made["colour"], made["size"], strict=True)])
    cheap = {
        label: np.mean([p < 5.0 for p, own in zip(made["price"], made["label"], strict=True) if own is label])
        for label in (True, False)
    }
    assert follows > 0.9
    assert cheap[True] > 0.95
    assert cheap[False] < 0.05


LINKED = TableSchema.model_validate(
    {
        "target": "label",
        "fields": [
            {"name": "label", "type": "boolean", "constraints": {"required": True}},
            *(
                {"name": f"c{i}", "type": "integer", "constraints": {"enum": [0, 1, 2, 3], "required": True}}
                for i in range(10)
            ),
        ],
    }
)
LINKED_DOMAIN = TableDomain.from_schema(LINKED, numeric_bins=8)
FEW: Events = (GaussianEvent(ONE_WAY_TABLES, 3.0), GaussianEvent(PAIR_SCORES, 10.0), GaussianEvent(MARGINALS, 50.0))


def make_chain(rows: int = 4_000) -> EncodedTable:
    """Ten columns, each like the one before it in 80 % of the rows, the first like the label."""
    generator = np.random.default_rng(4)
    label = generator.integers(2, size=rows)
    columns = [label, np.where(generator.random(rows) < 0.7, label, generator.integers(4, size=rows))]
    for _ in range(9):
        columns.append(np.where(generator.random(rows) < 0.8, columns[-1], generator.integers(4, size=rows)))
    return EncodedTable(np.stack(columns, axis=1).astype(np.uint16), rows, None, 1)


@pytest.mark.parametrize(
    ("knobs", "events", "slices"),
    [
        ({"pair_groups": "counted"}, GROUPED, [1, 2]),
        ({"pair_groups": "counted", "pairs_within": "table"}, GROUPED, [1]),
        ({"pair_groups": "counted", "condition_on": None}, GROUPED, [1]),
        ({"pairs": "few_or_all"}, CHOSEN, [1, 2]),
        ({"pairs": "chosen"}, CHOSEN, [2]),
    ],
    ids=["all", "of all rows", "no condition", "few or all", "chosen"],
)
def test_single_columns_are_looked_at_first_in_all_rows_by_slice_or_in_both(
    knobs: dict[str, Any], events: Events, slices: list[int]
) -> None:
    order, randomness = make_order(**knobs), SecureRandom.from_test_seed(3)
    method = Marginals(order, Plan(events), make_table(300), DOMAIN, randomness, torch.device("cpu"))
    method.measure()
    looks = len(slices) * len(method.layout.free)
    assert [len(m.counts) for m in method.measured[:looks]] == [n for n in slices for _ in method.layout.free]
    variances = [m.variance for m in method.measured[:looks] if m.columns == (0,)]
    assert variances == pytest.approx([variances[0]] * len(slices))


def test_slices_add_up_to_what_is_known_of_all_rows() -> None:
    """One-way tables of 3,000 rows with a noise_std of 100 by stratum and of 1 in all rows."""
    order, table = make_order(pair_groups="counted"), make_table()
    randomness, noisy = np.random.default_rng(2), 100.0
    method = Marginals(order, Plan(GROUPED), table, DOMAIN, SecureRandom.from_test_seed(3), torch.device("cpu"))
    exact = [np.bincount(table.codes[table.codes[:, 2] == label, 1], minlength=12) for label in (0, 1)]
    by_slice = np.stack(exact) + (noisy * randomness.standard_normal((2, 12))).round().astype(np.int64)
    measured = [Measured((0,), np.full((2, 4), 375), 1.0), Measured((3,), np.full((2, 6), 250), 1.0)]
    measured += [Measured((1,), by_slice, noisy**2), Measured((1,), np.sum(exact, axis=0)[None], 1.0)]
    units = method.releases.units
    fine = estimates_of(tuple(measured), method.layout, DOMAIN, units).one_way()
    without = estimates_of(tuple(measured[:-1]), method.layout, DOMAIN, units).one_way()
    truth = np.sum(exact, axis=0)
    assert np.abs(fine[1].sum(axis=0) - truth).max() < 5.0
    assert np.abs(without[1].sum(axis=0) - truth).max() > 25.0
    assert fine[1].shape == (2, 12)


def test_few_pairs_or_all_of_an_earlier_order_are_those_that_scores_choose() -> None:
    """`auto` named it before; an order that is stored with it is run."""
    order, randomness = make_order(pairs="few_or_all"), SecureRandom.from_test_seed(3)
    method = Marginals(order, Plan(FEW), make_chain(), LINKED_DOMAIN, randomness, torch.device("cpu"))
    method.measure()
    pairs = {m.columns for m in method.measured if len(m.columns) == 2}
    assert len({(c, c + 1) for c in range(1, 10)} & pairs) >= 7
    assert len(pairs) < 45
    taken_up = Marginals(order, Plan(FEW), make_chain(), LINKED_DOMAIN, randomness, torch.device("cpu"))
    taken_up.restore(method.checkpoint())
    assert taken_up.layout == method.layout
    assert [m.columns for m in taken_up.measured] == [m.columns for m in method.measured]


def test_under_much_noise_pairs_of_all_rows_are_closer_where_strata_are_many() -> None:
    """Twelve strata that are alike: within each, the noise of a pair is as large as that of all rows."""
    generator, rows = np.random.default_rng(5), 3_000
    colour, size, label = (generator.integers(cells, size=rows) for cells in (4, 12, 12))
    codes = np.stack([colour, size, label, size // 2], axis=1).astype(np.uint16)
    real = np.zeros((12, 6))
    np.add.at(real, (codes[:, 1], codes[:, 3]), 1.0 / rows)
    domain, events = TableDomain.from_schema(MANY_CLASSES, numeric_bins=6), (GaussianEvent(MARGINALS, 6.0),)
    errors = {}
    for within in ("condition", "table"):
        order, table = (
            make_order(condition_on="size_class", pairs_within=within, steps=300),
            EncodedTable(codes, rows, None, 1),
        )
        trained = train(order, Plan(events), table, domain, SecureRandom.from_test_seed(2))
        errors[within] = np.abs(pairs_of(trained, 1, 3) - real).sum() / 2.0
    assert errors["table"] < 0.7 * errors["condition"]


def test_columns_measured_in_all_rows_as_well_are_closer_where_strata_are_many() -> None:
    """Twelve strata, whose noise adds up; without pairs."""
    generator, rows = np.random.default_rng(5), 3_000
    codes = np.stack([generator.binomial(cells - 1, 0.3, rows) for cells in (4, 12, 12, 6)], axis=1).astype(np.uint16)
    table, domain = EncodedTable(codes, rows, None, 1), TableDomain.from_schema(MANY_CLASSES, numeric_bins=6)
    errors = {}
    for share in (1e-6, 0.2):
        order = make_order(condition_on="size_class", pairs="none", all_rows_precision_share=share)
        errors[share] = 0.0
        for seed in range(8):
            plan = Plan(marginals_events(order, noise_multiplier=10.0))
            trained = train(order, plan, table, domain, SecureRandom.from_test_seed(seed))
            sizes = pairs_of(trained, 0, 1).sum(axis=0)
            errors[share] += np.abs(sizes - np.bincount(codes[:, 1], minlength=12) / rows).sum() / 16.0
    assert errors[0.2] < 0.85 * errors[1e-6]


ALIKE = TableSchema.model_validate(
    {
        "target": "label",
        "fields": [
            *(
                {"name": f"c{at}", "type": "integer", "constraints": {"enum": list(range(8)), "required": True}}
                for at in range(6)
            ),
            {"name": "label", "type": "boolean", "constraints": {"required": True}},
        ],
    }
)


def make_alike(seed: int, rows: int = 4_000) -> np.ndarray:
    """Six columns that hang together in the same way under both labels, of which two are higher under one."""
    generator = np.random.default_rng(seed)
    label, common = generator.integers(2, size=rows), generator.normal(size=rows)
    columns = [
        np.clip(np.floor(4.0 + 1.3 * common + generator.normal(size=rows) + 0.8 * label * (at < 2)), 0, 7)
        for at in range(6)
    ]
    return np.stack([*columns, label], axis=1).astype(np.uint8)


def knows_the_label(trained: TableRelease, rows: np.ndarray) -> float:
    """AUROC of the chances that the generator itself gives the label of these rows."""
    logits = trained.generator.logits.reshape(2, -1, 6 * 8 + 2)
    likelihoods = []
    for own in logits:
        of_components = sum(
            own[:, 8 * at : 8 * at + 8].log_softmax(dim=1)[:, rows[:, at].astype(int)].T for at in range(6)
        )
        likelihoods.append(torch.logsumexp(of_components, dim=1))
    ranks = (likelihoods[1] - likelihoods[0]).argsort().argsort().numpy()
    one = rows[:, 6] == 1
    return float((ranks[one].mean() - (one.sum() - 1) / 2) / (~one).sum())


def test_what_noise_says_of_one_slice_alone_is_not_taken_for_the_label_s_doing(monkeypatch: pytest.MonkeyPatch) -> None:
    order = make_order(components=256, steps=300, pair_groups="declared")
    table = EncodedTable(make_alike(1), 4_000, None, 1)
    domain, known = TableDomain.from_schema(ALIKE, numeric_bins=8), {}
    for together in (0, mixture_fit.STEPS_TOGETHER):
        monkeypatch.setattr(mixture_fit, "STEPS_TOGETHER", together)
        trained = [
            train(order, Plan((GaussianEvent(MARGINALS, 8.0),)), table, domain, SecureRandom.from_test_seed(seed))
            for seed in (1, 2, 3)
        ]
        known[together] = np.mean([knows_the_label(one, make_alike(2)) for one in trained])
    assert known[mixture_fit.STEPS_TOGETHER] > known[0] + 0.03


def test_empty_slices_and_empty_tables_give_a_usable_generator() -> None:
    table = make_table(400)
    table.codes[:, 2] = 0  # no one has the second label
    for events in (ALMOST_NONE, (GaussianEvent(MARGINALS, 50.0),)):
        trained = run(table, make_order(steps=30), events)
        assert all(bool(torch.isfinite(p).all()) for p in trained.generator.parameters())
        assert trained.condition_frequencies is not None
        assert sum(trained.condition_frequencies) == pytest.approx(1.0)
    no_rows = EncodedTable(np.full((50, 4), ABSENT, dtype=np.uint16), 50, None, 1)
    rows = rows_of(run(no_rows, make_order(steps=5), (GaussianEvent(MARGINALS, 5.0),)), rows=50)
    assert len(rows["size"]) == 50


def test_mean_rows_of_a_unit_are_bought_with_the_tables() -> None:
    table = make_table(3_000, rows_per_unit=3)
    table.codes[: 3 * 500 : 3] = ABSENT  # half of the units have two rows only
    assert run(table, make_order(steps=2)).rows_per_unit == pytest.approx(2.5, abs=0.01)
    noisy = run(table, make_order(steps=2), (GaussianEvent(MARGINALS, 1e6),)).rows_per_unit
    assert noisy is not None
    assert 0.0 < noisy <= 3.0
    assert run(make_table(100), make_order(steps=2)).rows_per_unit is None


def test_wide_columns_are_grouped_in_pairs_only() -> None:
    wide = TableSchema.model_validate(
        {
            "fields": [
                {"name": name, "type": "integer", "bins": 200, "constraints": {"minimum": 0, "maximum": 999}}
                for name in ("a", "b", "c")
            ]
        }
    )
    domain = TableDomain.from_schema(wide, numeric_bins=8)
    order = resolve_order(make_order(condition_on=None, pair_cells=16), units=500, shape=shape_of(wide, numeric_bins=8))
    assert isinstance(order, MarginalsOrder)
    codes = np.random.default_rng(0).integers(201, size=(500, 3)).astype(np.uint16)
    method = Marginals(
        order, Plan(ALMOST_NONE), EncodedTable(codes, 500, None, 1), domain, SecureRandom(), torch.device("cpu")
    )
    method.measure()
    shapes = {m.columns: m.counts.shape for m in method.measured}
    assert shapes[0,] == (1, 201)
    assert shapes[0, 1] == (1, 16, 16)
    logits = method.fit(lambda _step: None).logits
    assert logits.shape == (64, 603)


def test_the_scores_that_choose_carry_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `choose_pairs` sees differs from the true scores by noise of σ·√pairs, over many draws."""
    order, table = make_order(pairs="chosen"), make_table(300)
    seen: list[np.ndarray] = []

    def choose_pairs(_layout: Any, expected: Any, scores: np.ndarray, _noise_stds: Any, **_more: Any) -> Any:
        seen.append(scores)
        return list(expected)[:1]

    monkeypatch.setattr(by_scores, "choose_pairs", choose_pairs)
    randomness = SecureRandom.from_test_seed(2)
    events = (CHOSEN[0], GaussianEvent(PAIR_SCORES, 7.0), CHOSEN[2])
    for _ in range(150):
        Marginals(order, Plan(events), table, DOMAIN, randomness, torch.device("cpu")).measure()
    scores = np.stack(seen)  # (draws, 3 pairs)
    assert scores.std(axis=0, ddof=1).mean() == pytest.approx(7.0 * np.sqrt(3), rel=0.12)


def test_money_has_cents_dates_are_days_and_nothing_leaves_the_declaration() -> None:
    schema = TableSchema.model_validate(
        {
            "fields": [
                {
                    "name": "paid",
                    "type": "number",
                    "decimals": 2,
                    "bins": 7,
                    "constraints": {"minimum": 0.5, "maximum": 99.99, "required": True},
                },
                {
                    "name": "day",
                    "type": "date",
                    "bins": 5,
                    "constraints": {"minimum": "2020-02-27", "maximum": "2020-04-01", "required": True},
                },
            ]
        }
    )
    domain = TableDomain.from_schema(schema, numeric_bins=8)
    codes = np.random.default_rng(0).integers(5, size=(300, 2)).astype(np.uint16)
    table = EncodedTable(codes, 300, None, 1)
    order = make_order(condition_on=None, steps=5)
    trained = train(order, Plan((GaussianEvent(MARGINALS, 9.0),)), table, domain, SecureRandom.from_test_seed(1))
    config = {
        "format": 1,
        "kind": "table",
        "noise_dimension": trained.noise_dimension,
        "columns": domain.to_config(),
        "condition": None,
        "missing_value": "",
    }
    onnx = export_onnx(trained.generator, noise_dimension=trained.noise_dimension, categories=None)
    rows = next(TableSampler.from_files(config, onnx).chunks(4_000, seed=1))
    paid = np.array(rows["paid"])
    assert (np.round(paid, 2) == paid).all()
    assert (np.round(paid, 1) != paid).mean() > 0.8
    assert paid.min() >= 0.5
    assert paid.max() <= 99.99
    days = [dt.date.fromisoformat(day) for day in rows["day"]]
    assert dt.date(2020, 2, 27) <= min(days) < max(days) <= dt.date(2020, 4, 1)


EXPENSES = TableSchema.model_validate(
    {
        "fields": [
            {"name": "spent", "type": "integer", "constraints": {"minimum": 0, "maximum": 63, "required": True}},
            {"name": "earned", "type": "integer", "constraints": {"minimum": 0, "maximum": 63}},
            {"name": "country", "type": "string", "constraints": {"enum": list("abcdefghijkl"), "required": True}},
        ]
    }
)
"""Ranges of money: nearly all rows in the first cells, as nearly all are from two countries."""


def spenders(rows: int = 20_000) -> EncodedTable:
    """The rich earn and spend more, and more of them live in the first country."""
    generator = np.random.default_rng(3)
    rich = generator.random(rows) < 0.3
    earned, spent = (np.minimum(generator.exponential(np.where(rich, 9.0, 1.5)).astype(int), 63) for _ in range(2))
    country = (generator.random(rows) < np.where(rich, 0.2, 0.6)).astype(int)
    country = np.where(generator.random(rows) < 0.03, 2 + generator.integers(10, size=rows), country)
    return EncodedTable(np.stack([spent, earned, country], axis=1).astype(np.uint16), rows, None, 1)


def grouped(table: EncodedTable, order: MarginalsOrder, events: Events, seed: int = 1) -> Marginals:
    domain = TableDomain.from_schema(EXPENSES, numeric_bins=64)
    made = Marginals(order, Plan(events), table, domain, SecureRandom.from_test_seed(seed), torch.device("cpu"))
    made.measure()
    return made


def test_cells_that_are_rare_are_counted_together() -> None:
    table, order = spenders(), make_order(condition_on=None, pair_groups="counted", components=64, steps=100)
    made = grouped(table, order, (GaussianEvent(ONE_WAY_TABLES, 15.0), GaussianEvent(MARGINALS, 5.0)), seed=2)
    spent, earned, country = made.layout.pair_widths
    assert spent < 30
    assert earned < 30
    assert made.layout.groups_of(1)[-1] == earned - 1  # nothing is missing, and that is counted by itself
    assert sorted(np.bincount(made.layout.groups_of(2))) == [1] * (country - 1) + [12 - country + 1]
    counts = {m.columns: m.counts for m in made.measured}
    assert counts[0, 1].shape == (1, spent, earned)
    real = np.zeros((spent, earned))
    np.add.at(real, tuple(made.layout.groups_of(c)[table.codes[:, c]] for c in (0, 1)), 1)
    std = np.sqrt(next(m.variance for m in made.measured if m.columns == (0, 1)))
    assert np.abs(counts[0, 1][0] - real).max() < 6 * std
    assert made.fit(lambda _: None).logits.shape == (64, 64 + 65 + 12)


def test_relations_are_closer_where_rare_cells_are_counted_together() -> None:
    """All pairs of skewed columns at the same price, with and without groups."""
    table, domain = spenders(), TableDomain.from_schema(EXPENSES, numeric_bins=64)

    def distance(**knobs: Any) -> float:
        order = make_order(condition_on=None, components=64, steps=200, **knobs)
        events = marginals_events(order, noise_multiplier=20.0)
        trained = train(order, Plan(events), table, domain, SecureRandom.from_test_seed(2))
        shares = [part.softmax(dim=-1) for part in torch.split(trained.generator.logits, list(domain.widths), dim=-1)]
        total = 0.0
        for i, j in ((0, 1), (0, 2), (1, 2)):
            fitted = (shares[i].T @ shares[j] / len(shares[0])).numpy()
            real = np.zeros(fitted.shape)
            np.add.at(real, (table.codes[:, i], table.codes[:, j]), 1.0 / len(table.codes))
            total += 0.5 * float(np.abs(fitted - real).sum())
        return total

    assert distance(pair_groups="counted") < 0.85 * distance()


def test_groups_come_from_noisy_counts() -> None:
    """Under noise that hides everything, two measurements of one table find other groups."""
    order, events = (
        make_order(condition_on=None, pair_groups="counted"),
        (
            GaussianEvent(ONE_WAY_TABLES, 1e5),
            GaussianEvent(MARGINALS, 1.0),
        ),
    )
    found = {grouped(spenders(), order, events, seed).layout.grouping for seed in range(4)}
    assert len(found) == 4


# -- ranges that rows do not fill equally ------------------------------------------------------------------------------

AMOUNTS = TableSchema.model_validate(
    {
        "fields": [
            {"name": "paid", "type": "number", "constraints": {"minimum": 0, "maximum": 64_000, "required": True}},
            {"name": "age", "type": "integer", "constraints": {"minimum": 16, "maximum": 95}},
            {"name": "member", "type": "boolean", "constraints": {"required": True}},
        ],
    }
)
AMOUNTS_DOMAIN = TableDomain.from_schema(AMOUNTS, numeric_bins=32)
"""Nearly all have paid less than the 2,000 of the first of 32 equal cells, and half of them nothing."""


def payments(domain: TableDomain, rows: int = 20_000) -> tuple[pl.DataFrame, EncodedTable]:
    """Members pay some 900, others some 60, half of both nothing."""
    generator = np.random.default_rng(5)
    member = generator.random(rows) < 0.4
    paid = np.minimum(generator.exponential(np.where(member, 900.0, 60.0)), 64_000.0) * (generator.random(rows) < 0.5)
    frame = pl.DataFrame({"paid": paid, "age": generator.integers(16, 96, size=rows), "member": member})
    parquet = io.BytesIO()
    frame.write_parquet(parquet)
    return frame, encode_table(parquet.getvalue(), domain, units=rows, with_places=True)


def paid_order(**knobs: Any) -> MarginalsOrder:
    return make_order(condition_on=None, pair_groups="counted", components=64, steps=150, **knobs)


def frame_of(trained: TableRelease, schema: TableSchema, rows: int) -> pl.DataFrame:
    """Rows of the published bundle."""
    assert trained.domain is not None
    bundle = build_bundle(
        trained.generator,
        trained.domain,
        noise_dimension=trained.noise_dimension,
        condition_index=trained.condition_index,
        condition_frequencies=trained.condition_frequencies,
        schema=schema,
        certificate={},
        order={},
    )
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        sampler = TableSampler.from_files(json.loads(archive.read("config.json")), archive.read("generator.onnx"))
    return pl.concat([pl.DataFrame(dict(chunk)) for chunk in sampler.chunks(rows, seed=1)])


def paid_rows(tree_precision_share: float) -> pl.DataFrame:
    """As many rows as there are, from the bundle, at the same price."""
    order, domain = paid_order(tree_precision_share=tree_precision_share), AMOUNTS_DOMAIN
    _, table = payments(domain)
    events = marginals_events(order, noise_multiplier=15.0)
    trained = train(order, Plan(events), table, domain, SecureRandom.from_test_seed(2))
    return frame_of(trained, AMOUNTS, 20_000)


def test_values_are_where_rows_are_though_the_range_is_wide() -> None:
    real, _ = payments(AMOUNTS_DOMAIN)
    rows = paid_rows(0.1)
    assert rows["paid"].min() >= 0  # type: ignore[operator]
    assert rows["paid"].max() <= 64_000  # type: ignore[operator]
    for statistic in (
        lambda frame: (frame["paid"] == 0).mean(),
        lambda frame: (frame["paid"] < 100).mean(),
        lambda frame: (frame.filter(pl.col("member"))["paid"] < 100).mean(),  # within one equal cell
        lambda frame: (frame.filter(~pl.col("member"))["paid"] < 100).mean(),
    ):
        wanted = statistic(real)
        assert abs(statistic(rows) - wanted) < 0.07
        assert abs(statistic(paid_rows(0.0)) - wanted) > 0.2


def test_bins_come_from_noisy_counts() -> None:
    """Bins differ from one measurement to the next: under little noise by little, and under noise that hides everything they are anywhere."""

    def edges(noise_multiplier: float, seed: int) -> tuple[float, ...]:
        _, table = payments(AMOUNTS_DOMAIN)
        events = (
            GaussianEvent(VALUE_TREES, noise_multiplier),
            GaussianEvent(ONE_WAY_TABLES, 1.0),
            GaussianEvent(MARGINALS, 1.0),
        )
        order, randomness = paid_order(tree_precision_share=0.1), SecureRandom.from_test_seed(seed)
        made = Marginals(order, Plan(events), table, AMOUNTS_DOMAIN, randomness, torch.device("cpu"))
        made.measure()
        return made.domain.columns[0].edges or ()

    assert all(edges(1e6, seed)[1] > 1e-3 for seed in range(3))  # that half have paid nothing is hidden
    assert np.diff(edges(1.0, 1)).min() < 10.0
    assert len({edges(100.0, seed) for seed in range(3)}) > 1


@pytest.mark.parametrize("columns", [["paid"], ["paid", "member"]])
def test_a_range_without_another_column_is_cut_too(columns: list[str]) -> None:
    """There is no pair to measure, and nothing but single columns is released."""
    fields = [field for field in AMOUNTS.fields if field.name in columns]
    schema = AMOUNTS.model_copy(update={"fields": tuple(fields), "target": columns[1] if columns[1:] else None})
    budget = open_budget(1.0, 1e-5)
    order = resolve_order(
        make_order(pairs="auto", condition_on=schema.target, steps=2),
        units=20_000,
        shape=shape_of(schema, numeric_bins=32),
        budget=budget,
    )
    domain = TableDomain.from_schema(schema, numeric_bins=32)
    frame, _ = payments(AMOUNTS_DOMAIN)
    parquet = io.BytesIO()
    frame.select(columns).write_parquet(parquet)
    table = encode_table(parquet.getvalue(), domain, units=20_000, with_places=order.counts_values)
    plan = Plan(price_order(order, units=20_000, budget=budget).events)
    trained = train(order, plan, table, domain, SecureRandom.from_test_seed(1))
    assert plan.position == 3
    assert trained.domain is not None
    assert (trained.domain.columns[0].edges or (0.0, 1.0))[1] <= 0.01  # half have paid nothing at all


# -- values that many rows share ---------------------------------------------------------------------------------------

SHOP = TableSchema.model_validate(
    {
        "target": "member",
        "fields": [
            {"name": "paid", "type": "number", "decimals": 2, "constraints": {"minimum": 0, "maximum": 40}},
            {"name": "day", "type": "date", "constraints": {"minimum": "2024-01-01", "maximum": "2025-12-31"}},
            {"name": "member", "type": "boolean", "constraints": {"required": True}},
            {"name": "weight", "type": "number", "constraints": {"minimum": 0, "maximum": 9, "required": True}},
        ],
    }
)
SHOP_DOMAIN = TableDomain.from_schema(SHOP, numeric_bins=8)
FIRST_OF_MAY = dt.date(2025, 5, 1)


def purchases(rows: int = 4_000, rows_per_unit: int = 1) -> tuple[pl.DataFrame, EncodedTable]:
    """Two of five pay 4.99, a quarter came on the first of May; a twentieth says nothing."""
    generator = np.random.default_rng(7)
    paid = np.where(generator.random(rows) < 0.4, 4.99, generator.integers(0, 4_001, size=rows) / 100)
    day = np.where(generator.random(rows) < 0.25, 486, generator.integers(731, size=rows))
    frame = pl.DataFrame(
        {
            "paid": [None if missing else value for missing, value in zip(day % 20 == 0, paid, strict=True)],
            "day": pl.Series(np.datetime64("2024-01-01") + day).cast(pl.Date),
            "member": generator.random(rows) < 0.5,
            "weight": generator.integers(0, 91, size=rows) / 10,
        }
    )
    parquet, of_unit = io.BytesIO(), pl.int_range(pl.len()) // rows_per_unit
    (frame if rows_per_unit == 1 else frame.with_columns(of_unit.alias(UNIT_COLUMN))).write_parquet(parquet)
    units = rows // rows_per_unit
    most = {"max_rows_per_unit": rows_per_unit, "with_places": True}
    return frame, encode_table(parquet.getvalue(), SHOP_DOMAIN, units=units, **most)  # type: ignore[arg-type]


def shop_order(tree_precision_share: float = 0.1, **knobs: Any) -> MarginalsOrder:
    return make_order(condition_on="member", tree_precision_share=tree_precision_share, steps=60, **knobs)


@pytest.mark.parametrize("pairs", ["all", "none"])
def test_rows_have_the_values_that_many_rows_share(pairs: str) -> None:
    real, _ = purchases()
    frames = []
    for share in (0.1, 0.0):
        _, table = purchases()
        order = shop_order(share, pairs=pairs)
        events = marginals_events(order, noise_multiplier=4.0)
        trained = train(order, Plan(events), table, SHOP_DOMAIN, SecureRandom.from_test_seed(2))
        frames.append(frame_of(trained, SHOP, 4_000))
    looked, not_looked = frames
    real = real.with_columns(pl.col("day").cast(pl.String))
    for is_shared in (pl.col("paid") == 4.99, pl.col("day") == str(FIRST_OF_MAY)):
        (wanted,), (found,), (spread,) = (frame.select(is_shared.mean()).row(0) for frame in (real, looked, not_looked))
        assert found == pytest.approx(wanted, abs=0.04)
        assert spread < 0.02
    assert looked["weight"].round(1).equals(looked["weight"])  # one digit, though none is declared
    assert looked["paid"].null_count() == pytest.approx(real["paid"].null_count(), abs=80)
    others = looked["paid"].filter(looked["paid"] != 4.99)
    assert others.n_unique() > 0.7 * real["paid"].n_unique()
    assert others.round(2).equals(others)


@pytest.mark.parametrize("rows_per_unit", [1, 5])
def test_trees_of_neighbouring_tables_differ_by_the_charged_amount(
    monkeypatch: pytest.MonkeyPatch, rows_per_unit: int
) -> None:
    """Of all levels of all columns together: a unit is in one node of each, and all are one Gaussian."""
    order, budget = shop_order(pairs="none"), open_budget(1.0, 1e-5)
    levels = sum(tree_levels(field, 8) for field in SHOP.fields)
    _, full_table = purchases(300, rows_per_unit)
    _, without_table = purchases(300, rows_per_unit)
    for table in (full_table, without_table):
        for column, place in {0: 499, 1: 486, 3: 10**5}.items():
            table.places[column][: 3 * rows_per_unit] = place
    without_table.codes[:rows_per_unit] = np.iinfo(without_table.codes.dtype).max
    for own in without_table.places.values():
        own[:rows_per_unit] = np.iinfo(np.uint32).max
    events = price_order(order, units=full_table.units, budget=budget).events
    assert events[0].purpose == VALUE_TREES
    public: list[tuple[torch.Tensor, ...]] = []

    def counts_of(own: EncodedTable) -> list[tuple[torch.Tensor, float]]:
        recorded, plan, real = [], Plan(events), releases.release_counts

        def release_counts(private: Any, *, noise_stds: Any, **more: Any) -> Any:
            if plan.position > 1:
                return real(private, noise_stds=noise_stds, **more)
            recorded.append((private.values[0], noise_stds[0]))
            assert more["times"] == levels, "one event, so many sums"
            # What came out before is the same on both sides, and lets every path down to a value be counted.
            if len(public) < len(recorded):
                public.append((private.values[0] * 10**6,))
            return public[len(recorded) - 1]

        with monkeypatch.context() as patch:
            patch.setattr(releases, "release_counts", release_counts)
            Marginals(order, plan, own, SHOP_DOMAIN, SecureRandom.from_test_seed(1), torch.device("cpu")).measure()
        return recorded

    full, without = counts_of(full_table), counts_of(without_table)
    assert len(full) == len(without) == levels
    change = sum(float(((a - b) ** 2).sum()) / std**2 for (a, std), (b, _) in zip(full, without, strict=True))
    assert change == pytest.approx(events[0].joint_noise_multiplier ** -2)  # type: ignore[union-attr]


def test_trees_take_the_one_event_that_is_on_the_price_list_for_them() -> None:
    _, table = purchases(300)
    order, budget = shop_order(), open_budget(1.0, 1e-5)
    plan = Plan(price_order(order, units=300, budget=budget).events)
    Marginals(order, plan, table, SHOP_DOMAIN, SecureRandom.from_test_seed(1), torch.device("cpu")).measure()
    assert plan.upcoming() is None
    assert plan.position == 2


def test_shared_values_come_from_noisy_counts() -> None:
    """Under noise that hides everything none is one of the table's; under little, its count differs from one measurement to the next."""

    def measured(noise_multiplier: float, seed: int) -> Marginals:
        _, table = purchases()
        events = (GaussianEvent(VALUE_TREES, noise_multiplier), GaussianEvent(MARGINALS, TINY))
        randomness = SecureRandom.from_test_seed(seed)
        made = Marginals(shop_order(), Plan(events), table, SHOP_DOMAIN, randomness, torch.device("cpu"))
        made.measure()
        return made

    assert all(4.99 not in dict(measured(1e6, seed).domain_of_rows.columns[0].shared_values) for seed in range(4))
    assert 4.99 in dict(measured(20.0, 0).domain_of_rows.columns[0].shared_values)
    rows = [float((tree := measured(20.0, seed).known.trees[0]).rows[tree.starts == 499][0]) for seed in range(4)]
    assert len(set(rows)) == 4


def test_no_value_is_outside_the_declared_range() -> None:
    """Whatever rows hold, and however noise falls."""
    frame, _ = purchases(500)
    frame = frame.with_columns(pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit(1e9)).otherwise(-1e9).alias("paid"))
    parquet = io.BytesIO()
    frame.write_parquet(parquet)
    for noise_multiplier in (0.5, 50.0):
        table = encode_table(parquet.getvalue(), SHOP_DOMAIN, units=500, with_places=True)
        events = marginals_events(shop_order(), noise_multiplier=noise_multiplier)
        randomness = SecureRandom.from_test_seed(1)
        rows = frame_of(train(shop_order(), Plan(events), table, SHOP_DOMAIN, randomness), SHOP, 1_000)
        paid, day = rows["paid"].drop_nulls(), rows["day"].drop_nulls()
        assert 0.0 <= paid.min() <= paid.max() <= 40.0  # type: ignore[operator]
        assert "2024-01-01" <= day.min() <= day.max() <= "2025-12-31"  # type: ignore[operator]


def test_trees_are_grown_once_whatever_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And rows get their bins again, which are in no checkpoint."""
    memory, order = Memory(), shop_order()

    def go(hooks: Hooks) -> TableRelease:
        _, table = purchases(1_000)
        return train(order, Plan(TREES), table, SHOP_DOMAIN, SecureRandom.from_test_seed(1), hooks)

    asked = itertools.count()
    with pytest.raises(TrainingStopped):
        go(Hooks(checkpoints=memory, should_stop=lambda: next(asked) > 0))
    monkeypatch.setattr(releases, "count_intervals", None)
    trained = go(Hooks(checkpoints=memory))
    assert trained.domain is not None
    assert 4.99 in (trained.domain.columns[0].edges or ())  # a bin of its own
    assert dict(trained.domain.columns[0].shared_values)[4.99] > 0.99
    first_of_may = (FIRST_OF_MAY - dt.date(1970, 1, 1)).days
    assert dict(trained.domain.columns[1].shared_values)[first_of_may] > 0.99


def test_a_charged_look_at_values_without_their_places_is_an_error() -> None:
    _, table = purchases(100)
    with pytest.raises(KeyError):
        train(
            shop_order(),
            Plan(TREES),
            EncodedTable(table.codes, table.units, None, 1),
            SHOP_DOMAIN,
            SecureRandom.from_test_seed(1),
        )
