"""The bench of all generators: one tiny run of each method, with its price and without noise, and a line of each on the page."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import torch

from bench.image_data import Digits
from bench.image_scores import Classifier
from bench.orders import scaled
from bench.seeds.__main__ import cells, stored
from bench.seeds.methods import METHODS, SIZES, SMALLEST, Sizes, order_of
from bench.seeds.report import NO_NOISE, markdown
from bench.seeds.runs import DELTA, made_images, made_rows
from bench.tables.tables import Table, read_table
from service.privacy.accounting import epsilon_of
from service.privacy.events import GaussianEvent, SampledStepEvent

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "target": "income",
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 9, "required": True}},
        {"name": "score", "type": "number", "bins": 4, "constraints": {"minimum": 0, "maximum": 1, "required": True}},
        {"name": "income", "type": "string", "constraints": {"enum": ["<=50K", ">50K"], "required": True}},
    ],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder: Path = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(0)
    age = rng.integers(10, size=SMALLEST["adult"].train + 75)
    income = np.where(age + rng.integers(3, size=len(age)) > 5, ">50K", "<=50K")
    frame = pl.DataFrame({"age": age, "score": rng.random(len(age)).round(3), "income": income})
    frame.write_csv(folder / "t.csv")
    (folder / "t.json").write_text(json.dumps(SCHEMA))
    return read_table(folder / "t.csv", folder / "t.json", None, None, SMALLEST["adult"].train)


@pytest.fixture(scope="module")
def digits() -> Digits:
    rng, count = np.random.default_rng(0), SMALLEST["mnist"].train
    labels = np.arange(count) % 10
    images = np.clip(rng.integers(0, 60, (count, 12, 12)) + 20 * labels[:, None, None], 0, 255).astype(np.uint8)
    return Digits(images, labels, images[:100], labels[:100])


def line_of(data: str, name: str, epsilon: float | None, order: Any, made: Any) -> dict[str, Any]:
    return {"data": data, "method": name, "epsilon": epsilon, "seed": 1, "order": order, **asdict(made)}


@pytest.mark.slow
@pytest.mark.parametrize(("data", "name"), [(data, name) for data, methods in METHODS.items() for name in methods])
def test_every_method_runs_at_a_price_and_without_noise(data: str, name: str, table: Table, digits: Digits) -> None:
    torch.manual_seed(0)
    sizes, judge = SMALLEST[data], Classifier(12).eval()
    order = order_of(data, name, sizes, smallest=True)
    runs = []
    for epsilon in (4.0, None):
        if data == "adult":
            made = made_rows(order, epsilon, table, sizes.made, 1)
        else:
            made = made_images(order, epsilon, digits, judge, sizes.made, 1)
        assert all(np.isfinite(score) for score in made.scores.values())
        assert (made.pld_epsilon is None) == (not made.paid_for) == (epsilon is None)
        assert made.pld_epsilon is None or 3.9 < made.pld_epsilon <= 4.0
        runs.append(line_of(data, name, epsilon, order, made))
    page = markdown(data, SIZES[data], runs, "here")
    assert page.count(f"\n| {name} | 4 |") == 2  # its scores, and what it paid
    assert page.count(f"\n| {name} | {NO_NOISE} | 1 |") == 1


def test_the_non_private_form_has_the_same_list_and_no_privacy() -> None:
    events = (GaussianEvent("label_counts", 20.0), SampledStepEvent(0.1, 2.0, 9.0, 3))
    quiet = scaled(events, 0.5)
    assert quiet == (GaussianEvent("label_counts", 10.0), SampledStepEvent(0.1, 1.0, 4.5, 3))
    assert epsilon_of(quiet, delta=DELTA) > epsilon_of(events, delta=DELTA)


def test_orders_are_of_one_size() -> None:
    sizes = Sizes(1_000, 7, 10, 1)
    orders = [order_of("adult", name, sizes) for name in ("idpgan", "ppgan", "dpgm", "rdpcgan")]
    assert {(order["steps"], order["sampling_probability"]) for order in orders} == {(7, 0.01)}
    assert order_of("adult", "dpgm, 1 cluster", sizes) == order_of("adult", "dpgm", sizes) | {"clusters": 1}


@pytest.mark.parametrize("data", METHODS)
def test_every_seed_has_every_method_once_at_every_epsilon_and_without_noise(data: str) -> None:
    asked = argparse.Namespace(seeds=2, epsilons=[10.0, 1.0, 4.0], methods=None)
    ordered = [cell for cell in cells(data, asked) if cell[0] in METHODS[data]]
    wanted = {(name, e, seed) for name in METHODS[data] for e in (1.0, 4.0, 10.0, None) for seed in (1, 2)}
    assert len(ordered) == len(wanted)
    assert set(ordered) == wanted
    assert [seed for *_, seed in ordered] == sorted(seed for *_, seed in ordered)


def test_runs_of_an_order_that_has_changed_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = {"data": "adult", "method": "dpgm", "epsilon": 1.0, "seed": 1, "order": {"steps": 3}, "scores": {}}
    runs = [run, {**run, "order": {"steps": 5}}, {**run, "order": {"steps": 5}, "seed": 2}]
    (tmp_path / "seeds.jsonl").write_text("\n".join(json.dumps(each) for each in runs))
    monkeypatch.setattr("bench.seeds.__main__.run_file", lambda name: tmp_path / name)
    assert stored() == runs[1:]
