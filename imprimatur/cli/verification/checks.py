"""What was checked, as two lists of sentences."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Checks:
    """What was checked and held, and what did not."""

    passed: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def verified(self) -> bool:
        return not self.faults

    def expect(self, held: bool, passed: str, fault: str) -> None:
        """Note one check."""
        (self.passed if held else self.faults).append(passed if held else fault)

    def __add__(self, other: Checks) -> Checks:
        return Checks(self.passed + other.passed, self.faults + other.faults)
