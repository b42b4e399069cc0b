"""What was checked, against what, and what may be said of it in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imprimatur.verify.heads import TreeHead


class Word(StrEnum):
    """What one check says."""

    VERIFIED = "verified"
    """It held, against something outside the service: a key, a head or a certificate that the caller has from before."""
    CONSISTENT = "consistent"
    """It held, but only against what the same service says now."""
    FAILED = "failed"


class Result(StrEnum):
    """What all checks together say."""

    VERIFIED = "verified"
    CONSISTENT = "consistent"
    SELF_SIGNED = "self_signed"
    FAILED = "failed"


@dataclass
class Checks:
    """What was checked and held, what did not, and what outside the service it was held against."""

    word: Word = Word.CONSISTENT
    """What the next check that holds says."""
    held: list[tuple[Word, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What could not be checked."""
    anchors: list[str] = field(default_factory=list)
    """What the caller has from outside the service, and everything was held against."""
    self_signed: bool = False
    """Whether a signature was checked with nothing but the key that came along with it."""
    up_to: str = ""
    """Where not everything was held against the anchors: up to where."""
    head: TreeHead | None = None
    """The newest signed head, to be kept."""

    @property
    def result(self) -> Result:
        """Verified only where something outside the service says so."""
        if self.faults:
            return Result.FAILED
        if self.self_signed:
            return Result.SELF_SIGNED
        return Result.VERIFIED if self.anchors else Result.CONSISTENT

    @property
    def verified(self) -> bool:
        return self.result == Result.VERIFIED

    @property
    def passed(self) -> list[str]:
        return [text for _, text in self.held]

    @property
    def statement(self) -> str:
        """The last line."""
        if self.result == Result.VERIFIED:
            return f"verified{self.up_to}: against {'; '.join(self.anchors)}"
        if self.result == Result.SELF_SIGNED:
            return (
                "self-signed, not verified: anybody can make a key. Give the service's with --public-key, or name the"
                " service with --url"
            )
        if self.result == Result.FAILED:
            return f"FAILED: {len(self.faults)} of {len(self.faults) + len(self.held)} checks. Do not rely on it"
        return "consistent; not verified: nothing to compare with outside the service"

    def expect(self, held: bool, passed: str, fault: str, word: Word | None = None) -> None:
        """Note one check."""
        if held:
            self.hold(passed, word)
        else:
            self.faults.append(fault)

    def hold(self, passed: str, word: Word | None = None) -> None:
        """Note a check that held."""
        self.held.append((word or self.word, passed))

    def add(self, other: Checks, label: str = "") -> None:
        """Take in what others found about the same thing, or about the one that is named."""
        self.held += [(word, label + text) for word, text in other.held]
        self.faults += [label + text for text in other.faults]
        self.notes += [label + text for text in other.notes]
        self.anchors += [text for text in other.anchors if text not in self.anchors]
        self.self_signed |= other.self_signed
        self.up_to = self.up_to or other.up_to
        self.head = other.head or self.head

    def to_json(self) -> dict[str, Any]:
        """The document of --json."""
        reasons = {Result.SELF_SIGNED: "self_signed", Result.CONSISTENT: "nothing_outside", Result.FAILED: "failed"}
        checks = [{"check": text, "result": word.value} for word, text in self.held]
        return {
            "verified": self.verified,
            "result": self.result.value,
            "reason": reasons.get(self.result),
            "statement": self.statement,
            "checks": checks + [{"check": text, "result": Word.FAILED.value} for text in self.faults],
            "faults": self.faults,
            "notes": self.notes,
            "head": None if self.head is None else self.head.to_json(),
        }
