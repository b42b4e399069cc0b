"""The paper's methods: each runs by its priced events, keeps its own twist, and the page has a line for all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bench.image_data import Digits
from bench.image_scores import Classifier, frechet_distance, precision_and_recall, told_apart
from bench.paper import __main__ as command
from bench.paper import runs
from bench.paper.methods import ABLATION, KNOBS, METHODS
from bench.paper.report import MEASURES, PAPER, render
from bench.paper.runs import MIXTURE, Look, Result, Sizes
from service.methods.catalogue import parse_order

SIZES = Sizes(steps=3, expected_batch=8, critic_steps=1, count=100, epochs=1)


def make_data(count: int = 700) -> Digits:
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 10
    images = np.clip(rng.integers(0, 60, (count, 12, 12)) + 20 * labels[:, None, None], 0, 255).astype(np.uint8)
    return Digits(images, labels, images[:100], labels[:100])


@pytest.fixture(autouse=True)
def _few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_LOOKED_AT", 20)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_by_its_price_list_and_has_a_line(method: str) -> None:
    torch.manual_seed(0)
    data, judge = make_data(), Classifier(12).eval()
    epsilon = None if method == "WGAN-GP" else 5.0
    result = runs.run(method, epsilon, data, judge, SIZES, 0)
    assert result.images.shape == (100, 12, 12)
    assert [look.step for look in result.distances] == [1, 2, 3]
    command = "python -m bench.paper --quick"
    text = render(command, "tiny", 12, 1, SIZES, "here", {method: [result]}, {"as it is": [result]}, 5.0, "real ones")
    assert text.count(f"| {method} |") == 2  # scores and distances
    assert PAPER in text
    assert f"`{command}`" in text
    assert "as it is" in text


def test_the_command_as_it_is_knows_every_method_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.sys, "argv", ["paper"])
    assert command._arguments().methods.split(",") == [*METHODS, MIXTURE]
    monkeypatch.setattr(command.sys, "argv", ["paper", "--methods", "DPGAN,nothing"])
    with pytest.raises(SystemExit):
        command._arguments()


def test_the_command_runs_every_method_and_every_row_of_the_ablation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def run(method: str, epsilon: float | None, *_given: object, **_knobs: object) -> Result:
        ran.append(method)
        return Result(method, epsilon, dict.fromkeys(MEASURES, 1.0), [Look(1, 1.0, 1.0)], np.zeros(0), np.zeros(0))

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(command, "load", lambda *_: make_data(20))
    monkeypatch.setattr(command, "train_classifier", lambda *_, **__: None)
    monkeypatch.setattr(command.sys, "argv", ["paper", "--quick"])
    command.main()
    assert sorted(ran) == sorted([*METHODS, MIXTURE, *(name for name, part in ABLATION.items() if part != KNOBS)])
    page = capsys.readouterr().out
    assert all(f"| {name} |" in page for name in ABLATION)


def test_every_ablation_is_an_order() -> None:
    orders = [parse_order({"epsilon": 1.0, **knobs}) for knobs in ABLATION.values()]
    assert len({order.model_dump_json() for order in orders}) == len(ABLATION)


def test_scores_tell_like_from_unlike() -> None:
    rng = np.random.default_rng(0)
    first, second, far = rng.normal(size=(3, 2_000, 8))
    far += 3.0
    assert frechet_distance(first, second) < 0.1
    assert frechet_distance(first, far) > 50.0
    assert min(precision_and_recall(first, second)) > 0.85
    assert max(precision_and_recall(first, far)) < 0.1
    dark, bright = np.zeros((3_000, 12, 12), np.uint8), np.full((3_000, 12, 12), 255, np.uint8)
    unlike, like = told_apart(dark, bright, seed=0), told_apart(dark, dark, seed=0)
    assert unlike.js_bound > 0.3
    assert like.js_bound < 0.1
    assert unlike.from_half > 10 * like.from_half
