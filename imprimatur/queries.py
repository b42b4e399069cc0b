"""Questions about the private rows of a dataset: asked, paid, waited for, answered; and what a session of them has left."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from imprimatur.asking import order_headers
from imprimatur.datasets import DatasetT, Named, ReleaseT, Where
from imprimatur.errors import NotPublished
from imprimatur.releases import ReleaseOperations
from imprimatur.replies import Json
from imprimatur.steps import Ask

if TYPE_CHECKING:
    from imprimatur.steps import Steps

NANO = 1_000_000_000


@dataclass(frozen=True)
class Answer:
    """One answer: a value, the interval that holds the true one in 95 of 100 cases where there is one, and all that was said of it."""

    value: Any
    interval: tuple[Any, Any] | None
    release_id: str
    """Of the release that holds it, whose certificate says what was charged."""
    is_new: bool
    """Whether it was paid now; an answer from before costs nothing."""
    raw: Json
    """As answers.json has it: the question, its events, how far off it may be."""

    @classmethod
    def of(cls, raw: Json, release_id: str, *, is_new: bool) -> Answer:
        interval = raw.get("interval")
        return cls(raw["value"], None if interval is None else (interval[0], interval[1]), release_id, is_new, raw)


class QueryOperations(ReleaseOperations[DatasetT, ReleaseT]):
    """Questions, one or several for one price."""

    def query(
        self,
        dataset: Named,
        questions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        epsilon: float | None = None,
        share: float | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> Steps[Json]:
        """Order the answers and go on: what was asked before is in the reply, the rest in the release it names. `dry_run`: the price alone."""
        asked = [dict(questions)] if isinstance(questions, Mapping) else [dict(each) for each in questions]
        body: dict[str, Any] = {"questions": asked, "dry_run": dry_run}
        body |= {} if epsilon is None else {"epsilon": epsilon}
        body |= {} if share is None else {"share": share}
        path = f"/v1/datasets/{(yield from self._dataset_id(dataset))}/queries"
        headers = order_headers(idempotency_key or str(uuid.uuid4()), None, None)
        return cast(
            "Json", (yield from self.asking.send(Ask("POST", path, json=body, headers=headers), repeat=True)).json()
        )

    def ask(
        self,
        dataset: Named,
        questions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        epsilon: float | None = None,
        share: float | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Steps[list[Answer]]:
        """The answers, one for each question, once they are there; raises `NotPublished` where their release ends otherwise."""
        reply = yield from self.query(dataset, questions, epsilon=epsilon, share=share, idempotency_key=idempotency_key)
        read: dict[str, list[Json]] = {}
        found = []
        for question in reply["questions"]:
            release_id, raw = question["release_id"], question["answer"]
            if raw is None:
                if release_id not in read:
                    ended = yield from self.wait(release_id, timeout=timeout)
                    if ended.state != "published":
                        raise NotPublished(ended)
                    read[release_id] = (yield from self.answers(release_id))["answers"]
                raw = read[release_id][question["place"]]
            found.append(Answer.of(raw, release_id, is_new=question["state"] == "ordered"))
        return found

    def remaining_epsilon(self, dataset: Named) -> Steps[float]:
        """ε that is left where amounts are added up, as questions mostly are paid."""
        budget = yield from self.budget(dataset)
        return budget.accounts.simple.remaining / NANO * budget.epsilon


O = TypeVar("O", bound="QueryOperations[Any, Any]")  # noqa: E741 - operations


class QuerySession(Generic[O]):
    """One question after another on one dataset: `session.count(where="age>=65")`. Of an `AsyncClient`, everything is awaited.

    epsilon: of each question that does not say its own.
    """

    def __init__(self, run: Callable[[Any], Any], operations: O, dataset: Named, epsilon: float | None) -> None:
        self._run, self._operations, self._dataset, self._epsilon = run, operations, dataset, epsilon

    @property
    def remaining_budget(self) -> Any:
        """ε that is left by basic composition."""
        return self._run(self._operations.remaining_epsilon(self._dataset))

    def ask(self, questions: Sequence[Mapping[str, Any]], *, epsilon: float | None = None) -> Any:
        """Several questions for one price: a list of answers."""
        return self._run(self._operations.ask(self._dataset, questions, epsilon=self._price(epsilon)))

    def price(self, questions: Sequence[Mapping[str, Any]], *, epsilon: float | None = None) -> Any:
        """What they would cost, and whether that fits: nothing is charged."""
        return self._run(self._operations.query(self._dataset, questions, epsilon=self._price(epsilon), dry_run=True))

    def count(self, *, where: Where | None = None, epsilon: float | None = None, **more: Any) -> Any:
        """How many rows there are."""
        return self._one("count", where, epsilon, more)

    def histogram(self, column: str, *, where: Where | None = None, epsilon: float | None = None, **more: Any) -> Any:
        """How many rows each value has; of a range, each of its bins."""
        return self._one("histogram", where, epsilon, {"column": column, **more})

    def cross_table(self, *columns: str, where: Where | None = None, epsilon: float | None = None, **more: Any) -> Any:
        """How many rows each combination of values has."""
        return self._one("cross_table", where, epsilon, {"columns": list(columns), **more})

    def sum(self, column: str, *, where: Where | None = None, epsilon: float | None = None) -> Any:
        """The sum of a column."""
        return self._one("sum", where, epsilon, {"column": column})

    def mean(self, column: str, *, where: Where | None = None, epsilon: float | None = None) -> Any:
        """The mean of a column."""
        return self._one("mean", where, epsilon, {"column": column})

    def quantiles(
        self,
        column: str,
        probabilities: Sequence[float] = (0.25, 0.5, 0.75),
        *,
        where: Where | None = None,
        epsilon: float | None = None,
    ) -> Any:
        """Values below which these parts of the rows lie."""
        return self._one("quantiles", where, epsilon, {"column": column, "probabilities": list(probabilities)})

    def arg_max(self, column: str, *, where: Where | None = None, epsilon: float | None = None, **more: Any) -> Any:
        """The most frequent value."""
        return self._one("arg_max", where, epsilon, {"column": column, **more})

    def median(self, column: str, *, epsilon: float | None = None) -> Any:
        """The median, by smooth sensitivity; for units of one row."""
        return self._one("median", None, epsilon, {"column": column})

    def keys(self, *columns: str, where: Where | None = None, epsilon: float | None = None) -> Any:
        """The combinations of values that are common."""
        return self._one("keys", where, epsilon, {"columns": list(columns)})

    def _one(self, kind: str, where: Where | None, epsilon: float | None, more: Mapping[str, Any]) -> Any:
        conditions = {} if where is None else {"where": where}
        return self._run(self._only(self._price(epsilon), {"kind": kind, **conditions, **more}))

    def _only(self, epsilon: float, question: Mapping[str, Any]) -> Steps[Answer]:
        (answer,) = yield from self._operations.ask(self._dataset, question, epsilon=epsilon)
        return answer

    def _price(self, epsilon: float | None) -> float:
        price = self._epsilon if epsilon is None else epsilon
        if price is None:
            raise ValueError("say epsilon, here or for the whole session")
        return price
