"""The paper's methods: each runs by its priced events, keeps its own twist, and the page has a line for all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bench.image_data import Digits
from bench.image_scores import Classifier, frechet_distance, js_divergence, precision_and_recall
from bench.paper import runs
from bench.paper.methods import dpacgan, dpgan, ganobfuscator
from bench.paper.methods.idpgan import ABLATION
from bench.paper.report import PAPER, render
from bench.paper.runs import METHODS, Sizes

SIZES = Sizes(steps=3, expected_batch=8, critic_steps=1, count=100, epochs=1)


def make_data(count: int = 700) -> Digits:
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 10
    images = np.clip(rng.integers(0, 60, (count, 12, 12)) + 20 * labels[:, None, None], 0, 255).astype(np.uint8)
    return Digits(images, labels, images[:100], labels[:100])


@pytest.fixture(autouse=True)
def _few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_LOOKED_AT", 20)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_by_its_price_list_and_has_a_line(method: str) -> None:
    torch.manual_seed(0)
    data, judge = make_data(), Classifier(12).eval()
    epsilon = None if method == "WGAN-GP" else 5.0
    result = runs.run(method, epsilon, data, judge, SIZES, 0)
    assert result.images.shape == (100, 12, 12)
    assert [step for step, _ in result.distances] == [1, 2, 3]
    command = "python -m bench.paper --quick"
    text = render(command, "tiny", 12, 1, SIZES, "here", {method: [result]}, {"as it is": [result]}, 5.0, "real ones")
    assert text.count(f"| {method} |") == 2  # scores and distances
    assert PAPER in text
    assert f"`{command}`" in text
    assert "as it is" in text


def run_of(module, knobs):
    """A run before its first step, of 100 private images and the public ones."""
    data = make_data(100 + ganobfuscator.PUBLIC)
    order = runs.resolve_order(
        module.knobs({"method": "idpgan", "epsilon": 1.0, "sampling_probability": 0.5, "steps": 2, **knobs}),
        units=100,
        shape=runs.ImageShape(12, 12, 1, 10),
    )
    images = runs.EncodedImages(data.train.reshape(len(data.train), -1), data.labels, (12, 12, 1), 10)
    plan = runs._plan(order, None, 100)
    torch.manual_seed(1)
    run = module.Run(order, plan, images, runs.SecureRandom.from_test_seed(1), torch.device("cpu"))
    run.measure()
    return run


def test_weights_of_dpgan_stay_within_their_bound() -> None:
    run = run_of(dpgan, {"optimizer": {"critic_learning_rate": 1.0}})
    run.critic_step()
    assert max(float(tensor.detach().abs().max()) for tensor in run.tensors) == pytest.approx(dpgan.WEIGHT_BOUND)


def test_ganobfuscator_takes_its_clip_norm_from_public_images_alone() -> None:
    run, other = run_of(ganobfuscator, {}), run_of(ganobfuscator, {})
    assert run.units == 100
    other.images.pixels[:] = 255 - other.images.pixels  # private
    norms = []
    for one in (run, other):
        torch.manual_seed(3)
        one.critic_step()
        norms.append(one.clip_groups.clip_norms)
    assert norms[0] == norms[1]
    assert norms[0][0] > 0.0


def test_the_second_head_of_dpacgan_learns_classes_from_real_images_alone() -> None:
    run = run_of(dpacgan, {})
    assert run.engine == "vmap"
    batch = run._critic_batch(np.arange(6))
    assert not batch.fake[:, -10:].any()
    assert ((batch.real[:, -10:] > 0).sum(dim=1) == 1).all()
    before = run.critic.classify.weight.clone()
    run.critic_step()
    assert not torch.equal(before, run.critic.classify.weight)


def test_every_ablation_is_an_order() -> None:
    orders = [METHODS["IDPGAN"].knobs({"method": "idpgan", "epsilon": 1.0, **knobs}) for knobs in ABLATION.values()]
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
    assert js_divergence(dark, bright, seed=0) > 0.3
    assert js_divergence(dark, dark, seed=0) < 0.1
