"""Noise, draws and randomness of the real step: the distributions that the price assumes, and nothing beside them.

Streams are seeded here, so that the tests are repeatable; the last part shows that published releases cannot be.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import multiprocessing
import os
import pickle
import uuid
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from bench.audit.worlds import DOMAIN, SCHEMA, listening, make_canaries, null_table, order_for
from service.privacy.events import GaussianEvent, SampledStepEvent
from tests.memory import Memory
from tests.runs import train
from workers import run as workers_run
from workers.checkpoints import Checkpoint
from workers.hooks import Hooks, TrainingStopped
from workers.lease import Lease
from workers.mechanism.clusters import ClipGroups
from workers.mechanism.noise import GRID_STD, MOST_STEPS, allocate, drawn_std
from workers.mechanism.sampling import poisson_sample
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan import training as idpgan
from workers.methods.idpgan.tables import TableIdpgan
from workers.plan import Plan
from workers.run import Attempt, NotPrivateError

pytestmark = pytest.mark.usefixtures("one_thread")


# -- noise ------------------------------------------------------------------------------------------------------------

GROUPS = ClipGroups(((0, 3), (1,), (2,), (4,)), (0.3, 2.0, 0.05, 1.0))
SIGMA = 1.3


@pytest.mark.parametrize("allocation", ["least_noise", "equal_share", "flat"])
def test_noise_of_every_group_of_the_real_step(allocation: str) -> None:
    """Standard deviation within 1 %, normal, and independent between groups and steps; expected values written out."""
    steps = 700
    order = order_for(
        1e-12,
        steps,
        allocation=allocation,
        networks={"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [80, 75]},
    )
    method = make_canaries(order, (SampledStepEvent(1e-12, SIGMA, None, steps),), null_table(8), 1, TableIdpgan)
    method.clip_groups = GROUPS
    sizes = [sum(method.tensors[tensor].numel() for tensor in group) for group in GROUPS.groups]
    with listening() as heard:
        for _ in range(steps):
            method.critic_step()
    clip_norms = np.array(GROUPS.clip_norms)
    wanted = {
        "equal_share": SIGMA * 2.0 * clip_norms,
        "flat": np.full(4, SIGMA * np.sqrt((clip_norms**2).sum())),
        "least_noise": SIGMA
        * np.sqrt(clip_norms)
        * np.power(sizes, -0.25)
        * np.sqrt((clip_norms * np.sqrt(sizes)).sum()),
    }[allocation]
    assert ((clip_norms / wanted) ** 2).sum() == pytest.approx(SIGMA**-2)
    streams = []
    for group, noise_std in zip(GROUPS.groups, wanted, strict=True):
        noise = np.concatenate([released[t].flatten().numpy() for released in heard.noisy for t in group])
        assert noise.std() == pytest.approx(noise_std, rel=0.01)
        assert abs(noise.mean()) < 4.0 * noise_std / np.sqrt(len(noise))
        # On a grid of 1/128: spread over it, or that many draws tell its steps from a line.
        some = noise[:300_000]
        spread = some / noise_std + np.random.default_rng(1).uniform(-0.5, 0.5, len(some)) / GRID_STD
        assert stats.kstest(spread, "norm").pvalue > 0.001
        streams.append(noise[: len(heard.noisy) * 75])
    correlation = np.corrcoef(streams) - np.eye(4)
    assert np.abs(correlation).max() < 4.0 / np.sqrt(len(streams[0]))


def test_what_the_optimizer_gets_is_the_noisy_sum_over_the_expected_draw() -> None:
    order = order_for(0.25, 3)
    method = make_canaries(
        order, (SampledStepEvent(0.25, SIGMA, None, 3),), null_table(8, np.arange(8)), 1, TableIdpgan
    )
    for step in range(3):
        with listening() as heard:
            method.critic_step()
        for tensor, value in zip(method.tensors, heard.noisy[0], strict=True):
            torch.testing.assert_close(tensor.grad, (value / 2.0).float(), msg=f"step {step}: 0.25 of 8 units is 2")


def test_histogram_and_label_noise() -> None:
    order = order_for(1e-12, 1, condition_on="colour", thresholds={"kind": "adaptive", "bins": 900})
    events = (GaussianEvent("label_counts", 7.0), SampledStepEvent(1e-12, 1.0, 3.0, 1))
    labels, histograms = [], []
    method: Any = make_canaries(order, events, null_table(8), 1, TableIdpgan)
    for _ in range(20):
        method.plan = Plan(events)
        with listening() as heard:
            method.measure()
            method.critic_step()
        labels.append(heard.noisy[0][0].numpy())
        histograms.append(heard.noisy[2][0].numpy().flatten())
    of_steps = drawn_std(3.0 * np.sqrt(5.0), moved=5 * MOST_STEPS)
    for noise, noise_std in ((np.concatenate(histograms), of_steps), (np.concatenate(labels), drawn_std(7.0))):
        assert noise.dtype == np.int64
        assert noise.std() == pytest.approx(noise_std, rel=0.01 + 4.0 / np.sqrt(2 * len(noise)))
        spread = noise + np.random.default_rng(1).uniform(-0.5, 0.5, size=len(noise))
        assert stats.kstest(spread / np.hypot(noise_std, 12**-0.5), "norm").pvalue > 0.001


def test_label_noise_grows_with_the_rows_of_a_unit() -> None:
    order = order_for(1.0, 1, condition_on="colour")
    events = (GaussianEvent("label_counts", 7.0), SampledStepEvent(1.0, 1.0, None, 1))
    method: Any = make_canaries(order, events, null_table(8, rows_per_unit=5), 1, TableIdpgan)
    noise = []
    with listening() as heard:
        for _ in range(1_500):
            method.plan = Plan(events)
            method.measure()
        noise = [released[0].numpy() for released in heard.noisy]
    assert np.std(noise) == pytest.approx(35.0, rel=0.03)


def test_what_is_released_is_the_list_and_nothing_else() -> None:
    """Every release of a run, and of one that stops and resumes: its noise multiplier is the next on the price list."""
    order = order_for(0.5, 9, condition_on="label", thresholds={"kind": "adaptive", "every_steps": 2})
    events = (
        GaussianEvent("label_counts", 5.0),
        *(SampledStepEvent(0.5, 3.0 - step / 4, 8.0 if step % 2 == 0 else None, 1) for step in range(9)),
    )
    wanted = [5.0]
    for event in events[1:]:
        wanted += [event.gradient_noise_multiplier] + [8.0] * (event.histogram_noise_multiplier is not None)
    store = Memory()

    def multipliers_of(stop_after: int) -> list[float]:
        seen: list[int] = []
        with listening() as heard, contextlib.suppress(TrainingStopped):
            train(
                order,
                Plan(events),
                null_table(8, np.arange(4)),
                DOMAIN,
                SecureRandom.from_test_seed(1),
                Hooks(
                    on_progress=seen.append,
                    checkpoints=store,
                    should_stop=lambda: len(seen) == stop_after,
                    checkpoint_every_steps=2,
                ),
            )
        released = zip(heard.sums, heard.noise_stds, strict=True)
        return [
            sum((c / s) ** 2 for c, s in zip(private.sensitivities, stds, strict=True)) ** -0.5
            for private, stds in released
        ]

    assert multipliers_of(stop_after=-1) == pytest.approx(wanted)
    store.all.clear()
    assert multipliers_of(stop_after=5) == pytest.approx(wanted[:9])  # labels, 5 gradients, 3 histograms
    before_the_stop = store.all[:-1]
    # A run that is asked to stop keeps what it has done: the next one goes on with step 6.
    assert multipliers_of(stop_after=-1) == pytest.approx(wanted[9:])
    # Killed instead, the checkpoint of step 4 counts: step 5 is run again, with fresh noise; none of it was ever visible.
    store.all[:] = before_the_stop
    assert multipliers_of(stop_after=-1) == pytest.approx(wanted[7:])


# -- the draw ---------------------------------------------------------------------------------------------------------


def drawn_by_steps(steps: int, units: int, q: float, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """(steps, units) bool: who was drawn at each step of a real run."""
    seen = np.zeros((steps, units), dtype=bool)
    position = iter(range(steps))

    class Watched(TableIdpgan):
        def _per_unit_gradients(self, drawn: np.ndarray) -> Any:
            seen[next(position), drawn] = True
            return iter(())

    method = make_canaries(order_for(q, steps), (SampledStepEvent(q, 1.0, None, steps),), null_table(units), 8, Watched)
    monkeypatch.setattr(idpgan, "release", lambda private, **_: private.values)  # noise is not looked at here
    for _ in range(steps):
        method.critic_step()
    return seen


@pytest.mark.parametrize("q", [0.03, 0.4])
def test_the_draw_is_poisson(q: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """χ² on inclusion, on the size of the draw, on pairs of units and on pairs of steps."""
    steps, units = 3_000, 24
    drawn = drawn_by_steps(steps, units, q, monkeypatch)
    variance = q * (1.0 - q)
    inclusion = ((drawn.sum(axis=0) - steps * q) ** 2 / (steps * variance)).sum()
    assert 0.001 < stats.chi2.sf(inclusion, units) < 0.999
    sizes = np.bincount(drawn.sum(axis=1), minlength=units + 1)
    wanted = steps * stats.binom.pmf(np.arange(units + 1), units, q)
    kept = wanted > 5
    pooled = ((sizes - wanted) ** 2 / wanted)[kept].sum() + (sizes - wanted)[~kept].sum() ** 2 / wanted[~kept].sum()
    assert stats.chi2.sf(pooled, kept.sum()) > 0.001
    centred = drawn - q
    for pairs in (
        (centred.T @ centred)[np.triu_indices(units, 1)] / (np.sqrt(steps) * variance),  # units of one step
        (centred[1:] * centred[:-1]).sum(axis=0) / (np.sqrt(steps - 1) * variance),  # a unit in consecutive steps
        (centred[1:, 1:] * centred[:-1, :-1]).sum(axis=0) / (np.sqrt(steps - 1) * variance),  # and its neighbour
    ):
        assert 0.001 < stats.chi2.sf((pairs**2).sum(), len(pairs)) < 0.999


def test_empty_draws_are_as_frequent_as_they_should_be_and_are_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = drawn_by_steps(2_000, 10, 0.05, monkeypatch)
    empty = int((~drawn.any(axis=1)).sum())
    assert stats.binomtest(empty, 2_000, 0.95**10).pvalue > 0.001


# -- nothing visible depends on how many were drawn -------------------------------------------------------------------


class ByShape(SecureRandom):
    """A stream for every shape asked for: what one draw takes does not shift what the rest of the run gets."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: dict[Any, SecureRandom] = {}

    def _stream(self, *key: Any) -> SecureRandom:
        seed = sum(ord(letter) * 31**place for place, letter in enumerate(repr(key)))
        return self.streams.setdefault(key, SecureRandom.from_test_seed(seed))

    def uniforms(self, *shape: int, dtype: torch.dtype = torch.float64, **_device: torch.device) -> Tensor:
        return self._stream("uniforms", shape, dtype).uniforms(*shape, dtype=dtype)

    def discrete_gaussian(self, *shape: int, variance: float, **more: Any) -> Tensor:
        return self._stream("whole", shape, variance).discrete_gaussian(*shape, variance=variance, **more)

    def normals(self, *shape: int, dtype: torch.dtype = torch.float64, **_device: torch.device) -> Tensor:
        return self._stream("normals", shape, dtype).normals(*shape, dtype=dtype)


def everything_visible(
    drawn: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, **knobs: Any
) -> list[Any]:
    """Progress, checkpoints, log lines and weights of a run over null records that draws so many at every step."""
    caplog.clear()
    sizes: list[int] = []

    def fixed_draw(*, units: int, **_: Any) -> np.ndarray:
        sizes.append(drawn)
        return np.arange(min(drawn, units))

    monkeypatch.setattr(idpgan, "poisson_sample", fixed_draw)
    order = order_for(0.05, 6, condition_on="label", thresholds={"kind": "adaptive"}, **knobs)
    events = (GaussianEvent("label_counts", 5.0), SampledStepEvent(0.05, 1.0, 4.0, 6))
    progress: list[int] = []
    store = Memory()
    with caplog.at_level(logging.DEBUG):
        trained = train(
            order,
            Plan(events),
            null_table(400),
            DOMAIN,
            ByShape(),
            Hooks(on_progress=progress.append, checkpoints=store, checkpoint_every_steps=2),
        )
    assert sizes == [drawn] * 6
    weights = [parameter.numpy().tobytes() for parameter in trained.generator.state_dict().values()]
    lines = [record.getMessage() for record in caplog.records]
    # The order of a safetensors header is its library's, and not ours to compare.
    saved = [Checkpoint.from_bytes(checkpoint) for checkpoint in store.all]
    contents = [
        (len(raw), checkpoint.values, {name: tensor.numpy().tobytes() for name, tensor in checkpoint.tensors.items()})
        for raw, checkpoint in zip(store.all, saved, strict=True)
    ]
    return [progress, contents, lines, weights, trained.condition_frequencies, trained.engine]


@pytest.mark.parametrize("critic_loss", ["paired", "separate"])
def test_no_visible_quantity_depends_on_the_size_of_the_draw(
    critic_loss: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Null records contribute nothing; with the same noise, runs that drew 0, 3, 20 and 131 of them are the same."""
    first = everything_visible(0, monkeypatch, caplog, critic_loss=critic_loss)
    assert len(first[1]) == 3  # checkpoints: when the counts were bought, and two of steps
    for drawn in (3, 20, 131):
        other = everything_visible(drawn, monkeypatch, caplog, critic_loss=critic_loss)
        assert other == first


def test_the_generator_batch_is_public() -> None:
    for units, q, wanted in ((400, 0.05, 64), (10_000, 0.05, 250), (10**6, 0.9, 4_096)):
        table = null_table(8)
        table = type(table)(table.codes, units, None, 1)
        method = make_canaries(order_for(q, 1), (SampledStepEvent(q, 1.0, None, 1),), table, 1, TableIdpgan)
        assert method.generator_batch == wanted


# -- no two releases share noise, and none can be repeated ------------------------------------------------------------


def test_the_stream_is_keyed_by_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom

    def urandom(size: int) -> bytes:
        asked.append(size)
        return real(size)

    monkeypatch.setattr(os, "urandom", urandom)
    streams = [SecureRandom() for _ in range(20)]
    assert asked == [32] * 20
    first = {tuple(stream.uniforms(2).tolist()) for stream in streams}
    assert len(first) == 20
    assert all(stream.is_private for stream in streams)


def test_a_seeded_stream_never_becomes_private_again() -> None:
    stream = SecureRandom.from_test_seed(1)
    stream.uniforms(1_000)
    assert not stream.is_private


def test_a_stream_cannot_be_copied_or_saved() -> None:
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copied(SecureRandom())


def _first_normals(results: Any, stream: SecureRandom | None) -> None:
    results.put((stream or SecureRandom()).normals(4).tolist())


def test_processes_and_forks_share_no_noise() -> None:
    """Four forks that inherit one stream, and four that make their own."""
    stream = SecureRandom()
    fork = multiprocessing.get_context("fork")
    results = fork.SimpleQueue()
    children = [
        fork.Process(target=_first_normals, args=(results, inherited)) for inherited in [stream] * 4 + [None] * 4
    ]
    for child in children:
        child.start()
    seen = [tuple(results.get()) for _ in children] + [tuple(stream.normals(4).tolist())]
    for child in children:
        child.join()
    assert len(set(seen)) == 9


def test_two_releases_of_the_same_order_share_nothing() -> None:
    order = order_for(0.5, 1)
    events = (SampledStepEvent(0.5, 1.0, None, 1),)
    noisy, weights = [], []
    for _ in range(2):
        with listening() as heard:
            trained = train(order, Plan(events), null_table(8), DOMAIN, SecureRandom())
        assert trained.is_private
        noisy.append(torch.cat([value.flatten() for value in heard.noisy[0]]))
        weights.append(trained.generator.output.weight)
    # Two draws on one grid meet by chance, once in 454: of some dozens two or three now and then, never a fifth of them.
    assert float((noisy[0] == noisy[1]).double().mean()) < 0.2
    assert not torch.equal(weights[0], weights[1])


class BareAttempt(Attempt):
    """An attempt without a service around it: what it trains with, and what it would publish."""

    def __init__(self) -> None:
        self.lease = Lease(None, 0)  # type: ignore[arg-type]
        self.public = None
        self.cancelled = False


def test_a_generator_trained_on_test_noise_is_not_published() -> None:
    """The refusal comes before the certificate, the bundle and the database are touched: there are none here."""
    order = order_for(0.5, 1)
    events = (SampledStepEvent(0.5, 1.0, None, 1),)
    trained = train(order, Plan(events), null_table(8), DOMAIN, SecureRandom.from_test_seed(1))
    with pytest.raises(NotPrivateError):
        BareAttempt().publish(trained, None)  # type: ignore[arg-type]


def test_a_release_trains_with_a_fresh_stream_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Attempt.run` itself, up to the call of `make_release`."""

    class Reached(Exception):
        pass

    streams: list[SecureRandom] = []

    def stop_here(_order: Any, _plan: Any, _source: Any, randomness: SecureRandom, _hooks: Any) -> None:
        streams.append(randomness)
        raise Reached

    class Charged(BareAttempt):
        def __init__(self) -> None:
            super().__init__()
            self.dataset = SimpleNamespace(
                state="ready", table_schema=SCHEMA, image_schema=None, declared_schema=SCHEMA
            )
            self.release = SimpleNamespace(
                id=uuid.UUID(int=1),
                state="reserved",
                order=order_for(0.5, 1),
                order_={},
                events=(SampledStepEvent(0.5, 1.0, None, 1),),
                cancel_requested=False,
                step=0,
            )
            self.checkpoints = None
            self.hooks = None
            self.context = None
            self.handed_over = False

        def report(self, step: int, phase: str, *, at_once: bool = False) -> None:
            pass

        def is_paid(self) -> bool:
            return True

        def signing_key(self) -> Any:
            return None

        def charge(self) -> Any:
            return None

    monkeypatch.setattr(workers_run.StoredRows, "are_its_own", lambda _: True)
    monkeypatch.setattr(workers_run, "make_release", stop_here)
    monkeypatch.setattr(workers_run, "Checkpoints", lambda *_: None)
    for _ in range(2):
        with pytest.raises(Reached):
            Charged().run()
    assert [type(stream) for stream in streams] == [SecureRandom] * 2
    assert all(stream.is_private for stream in streams)
    assert not torch.equal(streams[0].normals(8), streams[1].normals(8))


def test_poisson_draws_of_two_streams_differ() -> None:
    draws = [poisson_sample(units=500, sampling_probability=0.5, randomness=SecureRandom()) for _ in range(2)]
    assert draws[0].tolist() != draws[1].tolist()
    assert allocate((1.0,), (10,), noise_multiplier=2.0, allocation="flat") == (2.0,)


def test_a_release_of_a_method_without_a_run_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be paid for and never made."""
    charges: list[str] = []

    class Ordered(BareAttempt):
        def __init__(self) -> None:
            super().__init__()
            self.dataset = SimpleNamespace(state="ready", declared_schema=SCHEMA)
            self.release = SimpleNamespace(
                state="reserved", order=order_for(0.5, 1), order_={}, events=(), cancel_requested=False, step=0
            )

        def report(self, step: int, phase: str, *, at_once: bool = False) -> None:
            pass

        def is_paid(self) -> bool:
            return True

        def signing_key(self) -> Any:
            return None

        def charge(self) -> Any:
            charges.append("charged")
            raise AssertionError("charged before its run was found")

    def not_here(_order: Any) -> Any:
        raise ModuleNotFoundError("no run")

    monkeypatch.setattr(workers_run.StoredRows, "are_its_own", lambda _: True)
    monkeypatch.setattr(workers_run, "run_class", not_here)
    with pytest.raises(ModuleNotFoundError):
        Ordered().run()
    assert charges == []
