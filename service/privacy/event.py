"""What every kind of event knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, Self

from service.privacy.mechanisms import Mechanism


class Event(Protocol):
    """A kind of release, so many times in a row; frozen and hashable."""

    kind: ClassVar[str]

    @property
    def purpose(self) -> str:
        """What it is for."""

    @property
    def count(self) -> int:
        """How often."""

    @property
    def sampling_probability(self) -> float:
        """With which a unit is in the draw; 1 where there is none."""

    @property
    def mechanism(self) -> Mechanism:
        """What one occurrence is accounted as; the dearest, where they differ."""

    @property
    def alike(self) -> Events:
        """The same releases, each of one mechanism, with their counts; not in the order in which they happen."""

    @property
    def private_steps(self) -> int:
        """How many steps of progress it is."""

    @property
    def whole_number_releases(self) -> int:
        """Gaussian releases of whole numbers, for each of which a part of ε is reserved (docs/privacy.md, Discrete noise)."""

    @property
    def quoted_noise_multiplier(self) -> float | None:
        """What a quote shows of it, if it has any."""

    @property
    def failures(self) -> float:
        """Probability, of all occurrences together, of an output that `mechanism` does not account for; it counts as δ."""

    def sizes(self) -> Sequence[float]:
        """`Mechanism.size` of all of them, in summands."""

    def parameters(self) -> dict[str, Any]:
        """What certificates say of one occurrence."""

    def cut(self, count: int) -> Self:
        """The same, so many times."""

    def as_json(self) -> dict[str, Any]:
        """As it is stored."""


Events = tuple[Event, ...]
Reader = Callable[[Sequence[dict[str, Any]]], Events]
"""Reads a stored list."""
