"""What writing a format costs beside the draws, in processor time, which a busy machine moves little.

    python -m bench.sample_formats

Fifteen columns like Adult's, nine of texts and six of numbers, are drawn beforehand; every format writes them in turn,
and the least of the rounds counts. About half a minute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from service.samples.formats import formats_of
from service.samples.streams import stream_rows
from service.samples.table.columns import CategoryColumn
from service.samples.table.ranges import GridColumn

TEXTS = (9, 16, 7, 15, 6, 5, 2, 42, 2)
NUMBERS = 6
CHUNK, CHUNKS, ROUNDS = 4_096, 60, 7
FORMATS = formats_of("rows")


class DrawnBefore:
    """Stands in for a sampler: hands out the same chunks again and again."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.columns: list[CategoryColumn | GridColumn] = []
        for place, size in enumerate(TEXTS):
            values = [f"Some-value-{value}" for value in range(size)]
            config = {"name": f"text{place}", "type": "string", "size": size, "values": values}
            self.columns.append(CategoryColumn(config, ""))
        for place in range(NUMBERS):
            edges = list(np.linspace(0, 100_000 if place % 2 else 99, 17))
            config = {"name": f"number{place}", "type": "integer", "size": 16, "missing": False, "edges": edges}
            self.columns.append(GridColumn(config, ""))
        self.names, self.missing_value = [column.name for column in self.columns], ""
        self.chunks = [[c.fill(rng.integers(0, c.size, CHUNK), rng) for c in self.columns] for _ in range(40)]

    def draws(self, rows: int, **_: Any) -> Iterator[list[Any]]:
        for number in range(rows // CHUNK):
            yield self.chunks[number % len(self.chunks)]


def main() -> None:
    sampler, rows = DrawnBefore(), CHUNK * CHUNKS
    least = dict.fromkeys(FORMATS, float("inf"))
    sizes = {}
    for _ in range(ROUNDS):
        for name in FORMATS:
            started = time.process_time()
            stream: Any = stream_rows
            sizes[name] = sum(map(len, stream(sampler, rows=rows, format=name))) / rows
            least[name] = min(least[name], 1e6 * (time.process_time() - started) / rows)
    print("| format | processor µs a row | bytes a row |", "|---|---|---|", sep="\n")
    for name in FORMATS:
        print(f"| {name} | {least[name]:.2f} | {sizes[name]:.0f} |")


if __name__ == "__main__":
    main()
