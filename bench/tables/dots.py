"""A picture of one measure: a line for each table, a dot for each method, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from bench.tables.report import COLOURS

LEFT, RIGHT, TOP, STEP = 230.0, 610.0, 64.0, 18.0


class Dots(NamedTuple):
    title: str
    methods: Sequence[str]
    rows: Mapping[str, Mapping[str, float]]
    """Table -> method -> value above zero."""

    def svg(self) -> str:
        values = [value for row in self.rows.values() for value in row.values()]
        if not values:
            return '<svg xmlns="http://www.w3.org/2000/svg"/>\n'
        low, high = 0.9 * min(values), 1.1 * max(values)
        bottom = TOP + STEP * len(self.rows)

        def x(value: float) -> float:
            return LEFT + (RIGHT - LEFT) * float(np.log(value / low) / np.log(high / low))

        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {bottom + 34:.0f}" font-family="sans-serif" font-size="12">',
            f'<rect width="640" height="{bottom + 34:.0f}" fill="white"/>',
            f'<text x="12" y="20" font-weight="bold">{escape(self.title)}</text>',
        ]
        for place, method in enumerate(self.methods):
            parts.append(f'<circle cx="{LEFT + 110 * place:.0f}" cy="38" r="4" fill="{COLOURS[place]}"/>')
            parts.append(f'<text x="{LEFT + 110 * place + 9:.0f}" y="42">{escape(method)}</text>')
        for tick in _ticks(low, high):
            parts.append(f'<path d="M{x(tick):.1f} {TOP - 8:.0f}V{bottom:.0f}" stroke="#ddd"/>')
            parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 18:.0f}" text-anchor="middle">{tick:g}</text>')
        ordered = sorted(self.rows.items(), key=lambda row: row[1].get(self.methods[0], 0.0))
        for place, (name, row) in enumerate(ordered):
            y = TOP + STEP * (place + 0.5)
            parts.append(f'<text x="{LEFT - 12:.0f}" y="{y + 4:.0f}" text-anchor="end">{escape(name)}</text>')
            ends = x(min(row.values())), x(max(row.values()))
            parts.append(f'<path d="M{ends[0]:.1f} {y:.0f}H{ends[1]:.1f}" stroke="#bbb"/>')
            parts += [
                f'<circle cx="{x(row[method]):.1f}" cy="{y:.0f}" r="4" fill="{COLOURS[which]}"/>'
                for which, method in enumerate(self.methods)
                if method in row
            ]
        return "\n".join([*parts, "</svg>"]) + "\n"


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    return [
        tick for power in powers for tick in (1 * 10.0**power, 2 * 10.0**power, 5 * 10.0**power) if low <= tick <= high
    ]
