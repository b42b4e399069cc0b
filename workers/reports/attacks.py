"""Attacks on one published generator by who has real rows: likelihood, exposure, nearest synthetic rows. Not private.

The owner's report has them, and `python -m bench.audit --zip` of a downloaded ZIP. One release proves no ε, since its rows are no
independent runs. The work is bounded: so many rows of each kind, one of a privacy unit, so that they are independent.
"""

from __future__ import annotations

import functools
import io
import json
import math
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.metrics import roc_auc_score

from service.base.messages import Message
from service.samples.density import Density, nearest_distances
from service.samples.table.ranges import GridColumn
from service.samples.table.written import modelled_columns
from workers.reports.rows import domain_of, draw_frame, modelled, next_seed, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from service.domain.table_schema import TableSchema
    from workers.reports.rows import Rows

    Numbers = NDArray[np.float64]
    Cells = NDArray[np.int64]

MOST_ROWS = 20_000
"""Of each kind: used, held out, synthetic, evenly drawn."""
LEAST_ROWS, MOST_WORK = 1_000, 2 * 10**9
"""Fewer of each where the generator has many components: rows × components × columns; about ten seconds a kind."""
NEAREST_OF, NEAREST_AMONG = 2_000, 10_000
"""Rows whose nearest synthetic ones are sought, and among how many."""
CHANCE = 1.0 / math.log(2.0)
"""Mean bits of exposure of a row that is like a random one of those it is compared with."""
NORMAL = float(stats.norm.isf(0.025))
"""Half of a 95 % interval, in standard errors."""
LEAST = -1e300
"""In the place of the log of no chance at all, which cannot be ranked beside another."""

SAYS = Message(
    "One release proves no ε: these figures are what an adversary who has the published generator sees of real rows, and small ones are no "
    "evidence of privacy. Attacks with many releases (shadow models, poisoning, inversion, unlearning) are run by bench.audit --releases."
)
LIKELIHOOD = Message(
    "How well the generator's own log density tells rows that it was made from, from rows of held-out units: an AUROC of 0.5 and an "
    "advantage of 0 are guessing, 1 is certainty. It cannot show what a stronger attack would find."
)
NONE_HELD_OUT = Message(
    "All real rows were used to make this generator, so there are none to tell them from: order with held-out units to see how well its "
    "log density tells used rows from others."
)
NO_DENSITY = Message(
    "This generator is a network and has no exact density, so that only the nearest synthetic rows are looked at."
)
EXPOSURE = Message(
    "How far up rows come by log density among rows drawn from the generator, and among rows drawn evenly from what the declaration allows, in "
    "bits: 10 bits are the first of about 1,000. A generator that copies its rows draws them again, so that they have the bits of synthetic "
    "rows, and rows that it was not made from far fewer. Real rows are likelier than even ones in any case: that alone shows no copy."
)
NEAREST = Message(
    "The Gower distance of rows to the nearest synthetic row, over cells: 0 is a row with the same cells. Of copies it is 0 nearly always; where cells "
    "are few, it is so without any copy. A large distance is no evidence of privacy."
)


@dataclass(frozen=True)
class Scored:
    """What the attacks say of some rows."""

    log_p: Numbers
    over_independent: Numbers
    """Less log p if its columns were independent."""
    among_admissible: Numbers
    """Exposure, bits, among rows drawn evenly from what the declaration allows,"""
    among_own: Numbers
    """and among rows drawn from the generator."""
    nearest: Numbers
    """Gower distance to the nearest synthetic row, of the first rows."""


@dataclass(frozen=True)
class References:
    """What rows are compared with."""

    admissible: Numbers
    """Log densities of rows drawn evenly,"""
    own: Numbers
    """and of synthetic rows."""
    synthetic: Cells


@dataclass(frozen=True)
class Advantage:
    """True positive rate less false positive rate of one threshold, and its 95 % interval."""

    advantage: float
    low: float
    high: float


class Attacked:
    """A published ZIP of a table."""

    def __init__(self, bundle: bytes, schema: TableSchema) -> None:
        with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
            self._config, self._network = json.loads(archive.read("config.json")), archive.read("generator.onnx")
        self._bundle, self._schema = bundle, schema
        self.domain = domain_of(schema)
        self.columns = modelled_columns(self._config)
        self.widths = [column.size for column in self.columns]
        for column, declared in zip(self.columns, self.domain.columns, strict=True):
            if not isinstance(column, GridColumn) and column.size != declared.size:
                raise ValueError(f"{column.name}: the schema is not that of the ZIP")

    @property
    def has_density(self) -> bool:
        """Whether log densities are exact: of a network they are estimates."""
        return bool(self._config.get("generator") == "mixture")

    @functools.cached_property
    def density(self) -> Density:
        return Density(self._config, self._network)

    @property
    def most_rows(self) -> int:
        """Of each kind that the report looks at; it depends on the published generator alone."""
        if not self.has_density:
            return MOST_ROWS
        of_a_row = len(self.density.log_shares) * len(self.columns)
        return min(MOST_ROWS, max(LEAST_ROWS, MOST_WORK // of_a_row))

    def cells(self, rows: Rows) -> Cells:
        """(rows, columns) codes in the generator's own cells, which may have been found from counts."""
        found = []
        for place, column in enumerate(self.columns):
            codes = rows.codes[:, place]
            if isinstance(column, GridColumn):
                numbers = rows.numbers[:, place]
                missing = np.isnan(numbers)
                drawn = column.drawn_of(np.where(missing, 0.0, numbers), np.where(missing, column.size - 1, 0))
                codes = column.code_of(drawn)
            found.append(codes)
        return np.stack(found, axis=1).astype(np.int64)

    def admissible(self, rows: int, random: np.random.Generator) -> Cells:
        """(rows, columns) cells, drawn evenly."""
        return np.stack([random.integers(width, size=rows) for width in self.widths], axis=1)

    def synthetic(self, rows: int, *, seed: int) -> Cells:
        """(rows, columns) cells of synthetic rows."""
        drawn = draw_frame(self._bundle, rows, seed=seed)
        return self.cells(rows_of(modelled(drawn, self._schema), self.domain))

    def references(self, rows: int, random: np.random.Generator, *, seed: int | None = None) -> References:
        """So many rows of each kind."""
        own = self.synthetic(rows, seed=next_seed(random) if seed is None else seed)
        return References(self.density.of_cells(self.admissible(rows, random)), self.density.of_cells(own), own)

    def scored(self, cells: Cells, references: References, random: np.random.Generator) -> Scored:
        """What the attacks say of these rows."""
        log_p = self.density.of_cells(cells)
        with np.errstate(invalid="ignore"):
            over = log_p - self.density.of_independent_cells(cells)
        return Scored(
            log_p,
            over,
            bits(log_p, references.admissible, random),
            bits(log_p, references.own, random),
            self.nearest(cells, references.synthetic),
        )

    def nearest(self, cells: Cells, synthetic: Cells) -> Numbers:
        """Of the first rows: Gower distances to the nearest of the first synthetic ones."""
        is_range = [isinstance(column, GridColumn) for column in self.columns]
        first, among = cells[:NEAREST_OF], synthetic[:NEAREST_AMONG]
        return nearest_distances(first, among, is_range=is_range, widths=self.widths)


def attacks_of(
    attacked: Attacked, sides: tuple[Rows, Rows | None], epsilon: float, delta: float, random: np.random.Generator
) -> dict[str, Any]:
    """The section of the owner's report. sides: rows that the generator was made from, and rows that it was not, if there are any."""
    used, held_out = sides
    rows = {"real": attacked.cells(used)}
    if held_out is not None:
        rows["held_out"] = attacked.cells(held_out)
    rows["synthetic"] = attacked.synthetic(attacked.most_rows, seed=next_seed(random))
    found: dict[str, Any] = {"says": SAYS, "rows": {name: len(own) for name, own in rows.items()}}
    if not attacked.has_density:
        among = attacked.synthetic(NEAREST_AMONG, seed=next_seed(random))
        distances = {name: attacked.nearest(own, among) for name, own in rows.items()}
        return found | {"not_given": NO_DENSITY, "likelihood": None, "exposure": None, "nearest": _nearest(distances)}
    references = attacked.references(attacked.most_rows, random)
    scored = {name: attacked.scored(own, references, random) for name, own in rows.items()}
    return {
        **found,
        "not_given": None if "held_out" in scored else NONE_HELD_OUT,
        "likelihood": _likelihood(scored, epsilon, delta, random) if "held_out" in scored else None,
        "exposure": _exposure(scored),
        "nearest": _nearest({name: own.nearest for name, own in scored.items()}),
    }


def _likelihood(
    scored: Mapping[str, Scored], epsilon: float, delta: float, random: np.random.Generator
) -> dict[str, Any]:
    used, others, found = scored["real"], scored["held_out"], []
    for name, own, other in (
        ("log_p", used.log_p, others.log_p),
        ("log_p_over_independent", used.over_independent, others.over_independent),
    ):
        (auroc, half), best = area(own, other), best_advantage(own, other, random)
        found.append(
            {
                "score": name,
                "auroc": {"value": auroc, "low": max(0.0, auroc - half), "high": min(1.0, auroc + half)},
                "advantage": {"value": best.advantage, "low": best.low, "high": best.high},
            }
        )
    return {"says": LIKELIHOOD, "epsilon": epsilon, "most_advantage": most_advantage(epsilon, delta), "scores": found}


def _exposure(scored: Mapping[str, Scored]) -> dict[str, Any]:
    found = []
    for among in ("synthetic", "even"):
        for name, own in scored.items():
            exposed = own.among_own if among == "synthetic" else own.among_admissible
            found.append(
                {
                    "rows": name,
                    "among": among,
                    "median": float(np.median(exposed)),
                    "percentile_99": float(np.percentile(exposed, 99)),
                    "largest": float(exposed.max()),
                    "share_above_chance": float((exposed > CHANCE).mean()),
                }
            )
    return {"says": EXPOSURE, "chance": {"median": 1.0, "share_above_chance": 2.0**-CHANCE}, "found": found}


def _nearest(distances: Mapping[str, Numbers]) -> dict[str, Any]:
    found = [
        {"rows": name, "mean": float(own.mean()), "same": float((own == 0.0).mean())} for name, own in distances.items()
    ]
    return {"says": NEAREST, "found": found}


def most_advantage(epsilon: float, delta: float) -> float:
    """No test of whether one unit took part in an (ε, δ)-private release has more: TPR - FPR ≤ (e^ε - 1 + 2δ)/(e^ε + 1)."""
    shrunk = math.exp(-epsilon)  # both sides of the fraction by e^ε, which may be too large for a number
    return min(1.0, (1.0 - shrunk + 2.0 * delta * shrunk) / (1.0 + shrunk))


def bits(log_p: Numbers, reference: Numbers, random: np.random.Generator) -> Numbers:
    """(rows,) exposure of rows with these log densities among rows with those; a row's place among its equals is drawn."""
    ordered = np.sort(reference)
    above = len(ordered) - np.searchsorted(ordered, log_p, side="right")
    equal = len(ordered) - np.searchsorted(ordered, log_p, side="left") - above
    rank = 1 + above + random.integers(0, equal + 1)
    return np.asarray(np.log2(len(ordered) + 1) - np.log2(rank), dtype=np.float64)


def area(used: Numbers, others: Numbers) -> tuple[float, float]:
    """Area under the curve, and half of its 95 % interval (Hanley and McNeil 1982)."""
    scores = _ranked(np.concatenate([used, others]))
    found = float(roc_auc_score(np.repeat([1, 0], [len(used), len(others)]), scores))
    first, second = found / (2 - found), 2 * found**2 / (1 + found)
    spread = (len(used) - 1) * (first - found**2) + (len(others) - 1) * (second - found**2)
    variance = (found * (1 - found) + spread) / (len(used) * len(others))
    return found, NORMAL * math.sqrt(max(variance, 0.0))


def best_advantage(used: Numbers, others: Numbers, random: np.random.Generator) -> Advantage:
    """Of "a high score was used" at the threshold that is best on a random half; counted on the other half."""
    (chosen_on, counted), (other_chosen_on, other_counted) = (
        np.array_split(random.permutation(_ranked(scores)), 2) for scores in (used, others)
    )
    grid = np.unique(np.concatenate([chosen_on, other_chosen_on]))
    rates = [
        1.0 - np.searchsorted(np.sort(own), grid, side="left") / max(1, len(own))
        for own in (chosen_on, other_chosen_on)
    ]
    threshold = grid[np.argmax(rates[0] - rates[1])]
    hits, alarms = int((counted >= threshold).sum()), int((other_counted >= threshold).sum())
    return _difference(hits, len(counted), alarms, len(other_counted))


def _ranked(scores: Numbers) -> Numbers:
    return np.nan_to_num(scores, nan=LEAST, posinf=-LEAST, neginf=LEAST)


def _difference(hits: int, of: int, alarms: int, of_others: int) -> Advantage:
    """Of two rates, with the 95 % interval of Newcombe (1998)."""
    (one, low, high), (other, other_low, other_high) = _wilson(hits, of), _wilson(alarms, of_others)
    down, up = math.hypot(one - low, other_high - other), math.hypot(high - one, other - other_low)
    return Advantage(one - other, max(-1.0, one - other - down), min(1.0, one - other + up))


def _wilson(count: int, of: int) -> tuple[float, float, float]:
    """A rate and its 95 % interval (Wilson 1927)."""
    rate, square = count / of, NORMAL**2
    middle = (rate + square / (2 * of)) / (1 + square / of)
    half = NORMAL * math.sqrt(rate * (1 - rate) / of + square / (4 * of**2)) / (1 + square / of)
    return rate, middle - half, middle + half
