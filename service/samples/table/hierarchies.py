"""Categories of a public hierarchy: the coarse one is drawn by the model, the fine one by its declared share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from service.samples.table.base import Array, Mask, SamplingError
from service.samples.table.columns import CategoryColumn, text_of


class HierarchyColumn(CategoryColumn):
    """A drawn column is the codes of fine categories; `size` counts the coarse ones, which the model knows."""

    def __init__(self, config: Mapping[str, Any], fine: list[list[list[Any]]], missing_value: str) -> None:
        values = [value for shares in fine for value, _ in shares]
        missing = [None] if config["values"][-1] is None else []
        super().__init__({**config, "size": len(values) + len(missing), "values": values + missing}, missing_value)
        self.size = config["size"]
        self._coarse = CategoryColumn(config, missing_value)
        sizes = [len(shares) for shares in fine] + [1] * len(missing)
        self._coarse_of = np.repeat(np.arange(self.size), sizes)
        shares = np.array([share for shares in fine for _, share in shares] + [1.0] * len(missing))
        before = np.concatenate([[0.0], np.cumsum(shares)])
        starts = np.cumsum([0, *sizes[:-1]])
        self._first, self._last = starts, np.cumsum(sizes) - 1
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

    def where(self, wanted: Any) -> Mask:
        """Rows with this fine value, or any of this coarse one."""
        try:
            return super().where(wanted)
        except SamplingError:
            if text_of(wanted) not in map(text_of, self._coarse.values):
                raise
            coarse = self._coarse.code_of(wanted)
        return lambda drawn: self._coarse_of[drawn] == coarse

    def meets(self, condition: Mapping[str, Any]) -> Mask:
        """Rows that meet this part of an exclusion, which names coarse values."""
        cells = self.cells_of(condition)
        return lambda drawn: cells[self._coarse_of[drawn]]

    def cells_of(self, condition: Mapping[str, Any]) -> Array:
        """(size,) which coarse categories meet this part of an exclusion."""
        return self._coarse.cells_of(condition)
