"""An event that is one of several lists: which one, an earlier output decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from service.base.errors import Unpriceable
from service.privacy.event import Events, Reader
from service.privacy.event_kinds import ParallelEvent, _OfAllUnits, accounted
from service.privacy.mechanisms import Mechanism, Parallel


@dataclass(frozen=True, slots=True)
class OneOfEvent(_OfAllUnits):
    """One of these lists runs on all units: the one that public coins or earlier outputs say.

    It costs what a release in parts costs whose parts follow outputs: the largest Rényi divergence of all lists, at each order. Lists that
    are accounted alike are one mechanism, and have its loss distribution.
    """

    kind: ClassVar[str] = "one_of"
    purpose: str
    lists: tuple[Events, ...]
    count: int = 1

    def __post_init__(self) -> None:
        if not self.lists:
            raise Unpriceable("there is no list to choose")
        _ = self._as_parts  # checks the lists and the count

    @property
    def _as_parts(self) -> ParallelEvent:
        return ParallelEvent(self.purpose, self.lists, self.count, follows_outputs=True)

    @property
    def mechanism(self) -> Mechanism:
        return Parallel(tuple(tuple(accounted(each)) for each in self.lists), follows_outputs=True)

    @property
    def whole_number_releases(self) -> int:
        return self._as_parts.whole_number_releases

    def parameters(self) -> dict[str, Any]:
        return {"sampling_probability": 1.0, "lists": self._as_parts.parameters()["parts"]}

    def as_json(self) -> dict[str, Any]:
        lists = [[event.as_json() for event in each] for each in self.lists]
        return {"kind": self.kind, "purpose": self.purpose, "lists": lists, "count": self.count}

    @classmethod
    def from_json(cls, row: dict[str, Any], read: Reader) -> Self:
        return cls(**{**row, "lists": tuple(read(each) for each in row["lists"])})
