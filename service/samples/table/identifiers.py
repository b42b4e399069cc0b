"""Identifiers made anew: no two rows of a sample have the same, and nothing of them comes from a private row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from service.base.messages import Message, whole
from service.samples.table.base import Array, SamplingError
from service.samples.table.columns import quoted

MOST_COUNTED = 2**60
"""So many identifiers are told apart by a row's number; characters before those that it takes are random."""
ROUNDS = 6
SEEDED = 0xFFFF_FFFF
"""Begins the key of what is seeded for identifiers: no block has it."""


class IdentifierColumn:
    """One character of a list at each place. A drawn column is an array of texts, or of whole numbers.

    A row's number in the sample goes through a permutation of all numbers below that of the identifiers, keyed by the
    sample's seed (a Feistel network, walked on until the result is small enough): so no list of those given out is needed.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.name: str = config["name"]
        self.type: str = config["type"]
        self.size = 1
        self.missing = False
        self.is_spelled = self.is_json_number = False
        self.spelling: Mapping[str, Any] = {}
        self.missing_value = ""
        alphabets: list[str] = config["identifier"]
        self._alphabets = [np.array([ord(one) for one in alphabet], dtype=np.uint32) for alphabet in alphabets]
        self._is_plain = not any(character in '",\r\n' for alphabet in alphabets for character in alphabet)
        self._counted_places, self.count = 0, 1
        for alphabet in reversed(alphabets):
            if self.count * len(alphabet) > MOST_COUNTED:
                break
            self._counted_places, self.count = self._counted_places + 1, self.count * len(alphabet)
        self._has_all_counted = self._counted_places == len(alphabets)

    @property
    def described(self) -> str:
        """What it holds, in words."""
        return Message("it holds identifiers that are made anew")

    def spelled(self, drawn: Array) -> list[str]:
        """As text."""
        return [str(each) for each in drawn.tolist()]

    def check_rows(self, rows: int) -> None:
        """Refuse a sample of more rows than there are identifiers."""
        if rows > self.count and self._has_all_counted:
            raise SamplingError(
                Message(
                    "the pattern of %(column)s has only %(count)s identifiers; ask for fewer rows",
                    column=self.name,
                    count=whole(self.count),
                )
            )

    def numbered(self, first: int, rows: int, seeds: np.random.SeedSequence, place: int) -> Array:
        """The identifiers of these rows of the sample; `place`: which column it is."""
        own = np.random.SeedSequence(seeds.entropy, spawn_key=(SEEDED, place, 0))
        keys = own.generate_state(ROUNDS + 1, np.uint64)
        numbers = np.arange(first, first + rows, dtype=np.uint64)
        counted = permuted(numbers, self.count, keys[:ROUNDS])
        characters = np.empty((rows, len(self._alphabets)), dtype=np.uint32)
        for at in reversed(range(len(self._alphabets))):
            alphabet = self._alphabets[at]
            if at >= len(self._alphabets) - self._counted_places:
                counted, digit = np.divmod(counted, np.uint64(len(alphabet)))
            else:
                digit = mixed(mixed(numbers + keys[-1]) + np.uint64(at)) % np.uint64(len(alphabet))
            characters[:, at] = alphabet[digit.astype(np.intp)]
        texts = characters.view(f"U{len(self._alphabets)}").reshape(rows)
        return texts.astype(np.int64) if self.type == "integer" else texts

    def to_values(self, drawn: Array) -> list[Any]:
        return drawn.tolist()  # type: ignore[no-any-return]

    def to_texts(self, drawn: Array) -> list[str]:
        texts = list(map(str, drawn.tolist()))
        return texts if self._is_plain else [quoted(text, empty_too=False) for text in texts]

    def to_jsons(self, drawn: Array) -> list[str]:
        return [json.dumps(value, ensure_ascii=False) for value in drawn.tolist()]


def permuted(numbers: Array, count: int, keys: Array) -> Array:
    """Numbers below `count`, each to another one below it."""
    half_bits = np.uint64(max(1, ((count - 1).bit_length() + 1) // 2))
    low = np.uint64((1 << int(half_bits)) - 1)
    found, waiting = numbers.copy(), np.arange(len(numbers))
    while len(waiting):
        left, right = found[waiting] >> half_bits, found[waiting] & low
        for key in keys:
            left, right = right, left ^ (mixed(right + key) & low)
        found[waiting] = left << half_bits | right
        waiting = waiting[found[waiting] >= count]
    return found


def mixed(numbers: Array) -> Array:
    """Every bit depends on every bit (the finalizer of SplitMix64)."""
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers
