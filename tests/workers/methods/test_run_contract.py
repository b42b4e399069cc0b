"""What holds for every method of the catalogue as it runs: events taken = events priced, whatever crashes; its bundle works."""

from __future__ import annotations

import ast
import contextlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import workers.methods
from service.methods.catalogue import CATALOGUE, NAMES
from service.methods.idpgan.price import RELEVANCE
from service.samples.samplers import sampler_from_bundle
from tests.catalogue import CASES, Case, case_of
from tests.memory import Memory
from workers.generators.archive import pack
from workers.generators.released import AnswersRelease
from workers.hooks import Hooks, TrainingStopped
from workers.mechanism.secure_random import SecureRandom
from workers.methods.interface import run_class
from workers.plan import Plan, StepNotOnPlan
from workers.training import make_release


class Counted(Plan):
    """Says which events were taken, in order."""

    def __init__(self, events: Any) -> None:
        super().__init__(events)
        self.taken: list[int] = []

    def _advance(self, count: int) -> None:
        if not self._resuming:
            self.taken.append(self.position)
        super()._advance(count)

    _resuming = False

    def resume(self, position: int) -> None:
        self._resuming = True
        super().resume(position)
        self._resuming = False


def length(case: Case) -> int:
    return sum(event.count for event in case.events)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_has_a_run(name: str) -> None:
    holds: Any = min(CATALOGUE[name].takes)
    kind = run_class(case_of(name, holds).order)
    for what in ("measure", "checkpoint", "restore", "finish"):
        assert callable(getattr(kind, what))


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_events_taken_are_events_priced_and_the_bundle_is_drawn_from(method: str, holds: Any, tmp_path: Path) -> None:
    case = case_of(method, holds)
    plan = Counted(case.events)
    told: list[int] = []
    made = make_release(case.order, plan, case.source(), SecureRandom(), Hooks(on_progress=told.append))
    assert plan.taken == list(range(length(case)))
    assert made.is_private
    assert isinstance(made, AnswersRelease) == (CATALOGUE[method].returns == "answers")
    assert told
    assert told == sorted(told)
    assert told[-1] == case.order.progress_steps
    files = made.files(schema=case.schema, certificate={}, order=case.order.model_dump(mode="json"))
    bundle = pack(files, {})
    draw_in_a_clean_folder(bundle, tmp_path)
    marked = make_release(case.order, Plan(case.events), case.source(), SecureRandom.from_test_seed(1))
    assert not marked.is_private


@pytest.mark.parametrize(
    ("method", "holds"), [case for case in CASES if "private_step" in CATALOGUE[case[0]].order.model_fields]
)
def test_a_knob_that_buys_is_paid_in_every_method_that_has_it(method: str, holds: Any) -> None:
    """One that has it by inheritance took such orders, charged label counts and could not go on."""
    case = case_of(method, holds, private_step={"importance": {"relevance": "bought", "groups": 2}})
    plan = Counted(case.events)
    assert RELEVANCE in {event.purpose for event in case.events} <= set(CATALOGUE[method].card.releases)
    make_release(case.order, plan, case.source(), SecureRandom())
    assert plan.taken == list(range(length(case)))


def draw_in_a_clean_folder(bundle: bytes, folder: Path) -> None:
    """As a stranger would: the ZIP alone, and `python -I sample.py`."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        archive.extractall(folder)
        members = set(archive.namelist())
    assert {"config.json", "certificate.json", "MODEL_CARD.md"} <= members
    if "sample.py" not in members:
        assert "answers.json" in members
        return
    output = folder / ("drawn.npz" if b'"kind": "image"' in (folder / "config.json").read_bytes() else "drawn.csv")
    command = [sys.executable, "-I", str(folder / "sample.py"), "--rows", "7", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    assert output.stat().st_size > 0
    assert sampler_from_bundle(bundle) is not None


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_a_resumed_run_charges_nothing_twice(method: str, holds: Any) -> None:
    """Stopped as soon as something was measured or a step was taken: the next attempt begins after the checkpoint."""
    case, memory = case_of(method, holds), Memory()
    first = Counted(case.events)
    asked = iter((False, False))
    stop = Hooks(checkpoints=memory, should_stop=lambda: next(asked, True), checkpoint_every_steps=1)
    try:
        make_release(case.order, first, case.source(), SecureRandom(), stop)
    except TrainingStopped:
        assert memory.get() is not None
        assert 0 < len(first.taken) <= length(case)
    second = Counted(case.events)
    made = make_release(case.order, second, case.source(), SecureRandom(), Hooks(checkpoints=memory))
    assert made.is_private
    assert not set(first.taken) & set(second.taken)
    assert first.taken + second.taken == list(range(length(case)))


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_the_checkpoint_of_another_price_list_is_refused(method: str, holds: Any) -> None:
    case, memory = case_of(method, holds), Memory()
    asked = iter((False, False))
    keep = Hooks(checkpoints=memory, should_stop=lambda: next(asked, True), checkpoint_every_steps=1)
    with contextlib.suppress(TrainingStopped):
        make_release(case.order, Plan(case.events), case.source(), SecureRandom(), keep)
    assert memory.get() is not None
    dearer = CATALOGUE[method].events(case.order, 1.0, 1e-7)(0.7)
    with pytest.raises(StepNotOnPlan):
        make_release(case.order, Plan(dearer), case.source(), SecureRandom(), Hooks(checkpoints=memory))


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_a_run_never_goes_beyond_its_price_list(method: str, holds: Any) -> None:
    """One event fewer than the method needs, or one of another noise or sampling: refused before a row is read for it."""
    case = case_of(method, holds)
    last = case.events[-1]
    shorter = case.events[:-1] if last.count == 1 else (*case.events[:-1], last.cut(last.count - 1))
    run = run_class(case.order)(case.order, Plan(shorter), case.source(), SecureRandom(), _cpu())
    if shorter:
        try:
            run.measure()
            run.finish(Hooks())
        except StepNotOnPlan:
            pass
        assert run.plan.position <= sum(event.count for event in shorter)
    emptied = run_class(case.order)(case.order, Plan(()), case.source(), SecureRandom(), _cpu())
    if CATALOGUE[method].events(case.order, 1.0, 1e-7)(1.0)[0].private_steps == 0:
        with pytest.raises(StepNotOnPlan):
            emptied.measure()


def _cpu() -> Any:
    import torch

    return torch.device("cpu")


def reads_of_sums(source: str) -> set[str]:
    """Attributes `values` that are read and not called: those of a `PrivateSum` are sums without noise."""
    nodes = list(ast.walk(ast.parse(source)))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    read = [
        node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "values" and id(node) not in called
    ]
    return {ast.unparse(node) for node in read} - {"checkpoint.values", "saved.values"}


def test_no_run_reads_a_sum_but_through_its_release() -> None:
    """`release` and `release_counts` are the only ways out of a `PrivateSum` (docs/architecture.md)."""
    for path in sorted(Path(workers.methods.__path__[0]).rglob("*.py")):
        assert reads_of_sums(path.read_text(encoding="utf-8")) == set(), path
    assert reads_of_sums("counts.values[0].numpy(); grid.values(3); checkpoint.values") == {"counts.values"}
