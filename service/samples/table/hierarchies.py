"""Categories of a public hierarchy: the coarse one is drawn by the model, the fine one by its declared share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from service.samples.table.base import Array, Mask
from service.samples.table.columns import CategoryColumn, text_of


class HierarchyColumn(CategoryColumn):
    """A drawn column is the codes of fine categories; `size` counts the coarse ones, which the model knows."""

    def __init__(self, config: Mapping[str, Any], fine: list[list[list[Any]]], missing_value: str) -> None:
        values = [value for shares in fine for value, _ in shares]
        missing = [None] if config["values"][-1] is None else []
        super().__init__({**config, "size": len(values) + len(missing), "values": values + missing}, missing_value)
        self.size = config["size"]
        self._coarse = CategoryColumn(config, missing_value)
        self._coarse_texts = set(map(text_of, self._coarse.values))
        sizes = [len(shares) for shares in fine] + [1] * len(missing)
        self._coarse_of = np.repeat(np.arange(self.size), sizes)
        shares = np.array([share for shares in fine for _, share in shares] + [1.0] * len(missing))
        before = np.concatenate([[0.0], np.cumsum(shares)])
        starts = np.cumsum([0, *sizes[:-1]])
        self._first, self._last = starts, np.cumsum(sizes) - 1
        self._shares = shares
        # Code c of a coarse category's lies where c + (share of those before it) begins.
        self._up_to = self._coarse_of + np.minimum(before[1:] - before[starts][self._coarse_of], 1.0)

    def fill(self, codes: Array, rng: np.random.Generator) -> Array:
        """A fine category of each coarse one."""
        found = np.searchsorted(self._up_to, codes + rng.random(len(codes)), side="right")
        return np.clip(found, self._first[codes], self._last[codes])

    def coarse_codes(self, drawn: Array) -> Array:
        """What the model knows of drawn categories."""
        codes: Array = self._coarse_of[drawn]
        return codes

    def code_of(self, wanted: Any) -> int:
        """The code of a fine value."""
        return len(self.values) - 1 if wanted is None and self.missing else super().code_of(wanted)

    def knows(self, wanted: Any) -> bool:
        """Whether it is a fine value or a coarse one."""
        return super().knows(wanted) or text_of(wanted) in self._coarse_texts

    def codes_of(self, wanted: Any) -> list[int]:
        """Of a fine value, or all of a coarse one."""
        if super().knows(wanted) or text_of(wanted) not in self._coarse_texts:
            return super().codes_of(wanted)
        coarse = self._coarse.code_of(wanted)
        return list(range(int(self._first[coarse]), int(self._last[coarse]) + 1))

    def chances_of(self, allowed: Array) -> Array:
        """(size,) what part of each coarse category's rows has one of the allowed fine ones."""
        found = np.bincount(self._coarse_of, weights=self._shares * allowed, minlength=self.size)
        whole = np.bincount(self._coarse_of, weights=~allowed, minlength=self.size) == 0
        chances: Array = np.where(whole, 1.0, np.minimum(found, 1.0))
        return chances

    def fill_allowed(self, codes: Array, allowed: Array, rng: np.random.Generator) -> Array:
        """One of the allowed fine categories of each coarse one, by their shares."""
        up_to = np.cumsum(self._shares * allowed)
        before = np.concatenate([[0.0], up_to])
        low, high = before[self._first[codes]], before[self._last[codes] + 1]
        found = np.searchsorted(up_to, low + rng.random(len(codes)) * (high - low), side="right")
        # Sums round: the last allowed one of the coarse category is the last that can be meant.
        last_allowed = np.maximum.accumulate(np.where(allowed, np.arange(len(allowed)), 0))
        fine: Array = np.clip(found, self._first[codes], last_allowed[self._last[codes]])
        return fine

    def coarse_of(self, codes: Array) -> Array:
        """(fine values,) bool from (coarse categories,) bool."""
        found: Array = codes[self._coarse_of]
        return found

    def meets(self, condition: Mapping[str, Any]) -> Mask:
        """Rows that meet this part of an exclusion, which names coarse values."""
        cells = self.cells_of(condition)
        return lambda drawn: cells[self._coarse_of[drawn]]

    def cells_of(self, condition: Mapping[str, Any]) -> Array:
        """(size,) which coarse categories meet this part of an exclusion."""
        return self._coarse.cells_of(condition)
