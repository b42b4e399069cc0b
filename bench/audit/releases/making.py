"""What the attacks attack: releases of a small made-up table, made by the methods' own code, with a row of interest or without it.

Neighbours are those of the guarantee (docs/privacy.md): the number of units is public and the same, and a row that is left out is a
null record, which counts nowhere.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bench.audit.bounds import claimed_epsilon, scaled
from bench.audit.releases.verdicts import Price
from bench.orders import budget_of_one_release
from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares
from service.samples.density import log_density, log_shares_of_cells
from workers.encoding.table import ABSENT, EncodedTable, TableDomain
from workers.generators.released import TableRelease
from workers.mechanism.secure_random import SecureRandom
from workers.networks.mixture import MixtureGenerator
from workers.plan import Plan
from workers.sources import GivenTable
from workers.training import make_release

if TYPE_CHECKING:
    from service.methods.knobs import Order
    from service.privacy.events import Events

DELTA = 1e-5
WIDTHS = {"age": 8, "region": 6, "job": 5, "smokes": 2, "income": 5}
SCHEMA: dict[str, Any] = {
    "fields": [
        {"name": "age", "type": "integer", "bins": 8, "constraints": {"minimum": 0, "maximum": 79, "required": True}},
        *(
            {
                "name": name,
                "type": "string",
                "constraints": {"enum": [f"{name} {code}" for code in range(width)], "required": True},
            }
            for name, width in WIDTHS.items()
            if name != "age"
        ),
    ]
}
DOMAIN = TableDomain.from_schema(parse_table_schema(SCHEMA), numeric_bins=8)
LABEL = len(WIDTHS) - 1
SLOTS = 16
"""The last rows are null, but for the copies of a row that are put there."""
UNITS = 200
DRAWS_OF_A_NETWORK = 2_048
"""They stand for its noise where a log density is asked for."""
ALMOST_NONE = 1e-6
"""What the control's noise is multiplied by, so that counts are taken for exact, as they are."""


@dataclass(frozen=True)
class Attacked:
    """One release as an adversary has it: a mixture of components, or draws that stand for those of a network."""

    log_shares: np.ndarray  # (components,)
    log_cells: np.ndarray  # (components, total width)

    def log_density(self, cells: np.ndarray) -> np.ndarray:
        """(rows,) log p."""
        return log_density(cells, self.log_shares, self.log_cells, DOMAIN.widths)

    def sample(self, rows: int, seed: int) -> np.ndarray:
        """(rows, columns) synthetic rows, independent of each other."""
        rng = np.random.default_rng(seed)
        shares = np.exp(self.log_shares)
        picked = rng.choice(len(shares), size=rows, p=shares / shares.sum())
        columns, first = [], 0
        for width in DOMAIN.widths:
            weights = np.cumsum(np.exp(self.log_cells[picked, first : first + width]), axis=1)
            reach = rng.random((rows, 1)) * weights[:, -1:]
            columns.append(np.minimum((weights <= reach).sum(axis=1), width - 1))
            first += width
        return np.stack(columns, axis=1)


class NoNoise(SecureRandom):
    """Zeros where noise is drawn: the non-private control, which attacks must break. Never published."""

    def discrete_gaussian(
        self, *shape: int, variance: float, fractions: Tensor | None = None, device: torch.device | None = None
    ) -> Tensor:
        del variance, fractions
        return torch.zeros(shape, dtype=torch.int64, device=device)


@dataclass(frozen=True)
class Maker:
    """How releases are made: an order, and whether its noise is drawn at all."""

    name: str
    order: Mapping[str, Any] = field(hash=False)
    epsilon: float = 1.0
    is_control: bool = False
    """Priced like the others and made without noise."""

    def __call__(self, rows: np.ndarray, seed: int) -> Attacked:
        """A release of these rows (units, columns), as an adversary has it."""
        return attacked(self.released(rows, seed))

    def released(self, rows: np.ndarray, seed: int) -> TableRelease:
        """The release itself."""
        torch.manual_seed(seed)
        order, events = self._priced
        kind = NoNoise if self.is_control else SecureRandom
        plan = Plan(scaled(events, ALMOST_NONE) if self.is_control else events)
        source = GivenTable(EncodedTable(rows, len(rows), None, 1), DOMAIN)
        made = make_release(order, plan, source, kind.from_test_seed(seed))
        if not isinstance(made, TableRelease):
            raise TypeError(f"{self.name} makes no rows")
        return made

    @functools.cached_property
    def _priced(self) -> tuple[Order, Events]:
        """The order as the service would resolve it, and its price, which knows nothing of rows."""
        budget, schema = budget_of_one_release(100.0, DELTA), parse_table_schema(SCHEMA)
        facts = Facts.of_declaration(json.dumps(SCHEMA), units=UNITS, most_per_unit=1, budget=budget)
        order = parse_order({"epsilon": self.epsilon, "device": "cpu", **self.order})
        resolved = resolve_order(order, facts, Shares(NANO, NANO), schema)
        return resolved, price_order(resolved, budget).events

    @functools.cached_property
    def price(self) -> float:
        """ε of its events at `DELTA`."""
        return claimed_epsilon(self._priced[1], DELTA)

    @property
    def made_by(self) -> tuple[str, bool]:
        """The maker's name, and whether it is a control."""
        return self.name, self.is_control

    def paid(self, *, copies: int = 1, releases: int = 1) -> Price:
        """The price of what an attack sees."""
        return Price(self.price, DELTA, copies, releases)


def attacked(made: TableRelease) -> Attacked:
    """What the generator holds."""
    generator, place = made.generator, made.condition_index
    frequencies = np.ones(1) if place is None else np.clip(np.asarray(made.condition_frequencies), 0.0, None) + 1e-12
    frequencies = frequencies / frequencies.sum()
    with torch.no_grad():
        if isinstance(generator, MixtureGenerator):
            logits = generator.logits.numpy()
            given = np.repeat(np.arange(len(frequencies)), generator.components)
            shares = np.repeat(frequencies / generator.components, generator.components)
        else:
            random = torch.Generator().manual_seed(0)
            noise = torch.randn(DRAWS_OF_A_NETWORK, made.noise_dimension, generator=random)
            condition = torch.multinomial(
                torch.tensor(frequencies), DRAWS_OF_A_NETWORK, replacement=True, generator=random
            )
            logits = generator(noise, None if place is None else condition).numpy()
            given, shares = condition.numpy(), np.full(DRAWS_OF_A_NETWORK, 1.0 / DRAWS_OF_A_NETWORK)
    return Attacked(np.log(shares), log_shares_of_cells(logits, DOMAIN.widths, condition=place, given=given))


def marginals(epsilon: float = 1.0, *, is_control: bool = False, **knobs: Any) -> Maker:
    """All two-way tables, or what the knobs say, and a mixture small enough to be made hundreds of times."""
    order = {"method": "marginals", "pairs": "all", "tree_precision_share": 0.0, "components": 64, "steps": 200}
    name = "marginals without noise" if is_control else f"marginals, ε = {epsilon:g}"
    return Maker(knobs.pop("name", name), order | knobs, epsilon, is_control)


def idpgan(epsilon: float = 1.0, *, steps: int = 200, is_control: bool = False) -> Maker:
    """A few steps of small networks from nothing."""
    order = {
        "method": "idpgan",
        "steps": steps,
        "sampling_probability": 0.2,
        "warm_start": {"kind": "none"},
        "networks": {"noise_dimension": 8, "generator_hidden": [16], "critic_hidden": [16]},
    }
    name = f"idpgan without noise, {steps} steps" if is_control else f"idpgan, {steps} steps, ε = {epsilon:g}"
    return Maker(name, order, epsilon, is_control)


def made_up_rows(rows: int, seed: int) -> np.ndarray:
    """(rows, columns) of five columns that depend on each other through a hidden class; the last value of all but one occurs in no row."""
    rng = np.random.default_rng(seed)
    hidden = rng.choice(3, size=rows, p=[0.5, 0.35, 0.15])
    columns = []
    for width in DOMAIN.widths:
        shares = np.random.default_rng(1_000 + width + len(columns)).dirichlet(np.full(width, 0.6), size=3)
        if width > 2:
            shares[:, -1] = 0.0
        weights = np.cumsum(shares[hidden], axis=1)
        columns.append(np.minimum((weights <= rng.random((rows, 1)) * weights[:, -1:]).sum(axis=1), width - 1))
    return np.stack(columns, axis=1).astype(np.uint16)


def base_rows(seed: int = 0) -> np.ndarray:
    """`UNITS` rows of which the last `SLOTS` are null."""
    rows = made_up_rows(UNITS, seed)
    rows[-SLOTS:] = ABSENT
    return rows


def with_copies(rows: np.ndarray, target: np.ndarray, copies: int = 1) -> np.ndarray:
    """The rows with so many copies of a row in the place of null ones."""
    if not 0 < copies <= SLOTS:
        raise ValueError(f"from 1 to {SLOTS} copies")
    found = rows.copy()
    found[len(found) - SLOTS : len(found) - SLOTS + copies] = target
    return found


def admissible_rows(rows: int, seed: int) -> np.ndarray:
    """(rows, columns) evenly from all that the declaration allows."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(width, size=rows) for width in DOMAIN.widths], axis=1)


def outlier_row(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """(columns,) of many admissible rows, the one that the clean rows' columns make least likely."""
    clean, candidates = rows[rows[:, 0] != ABSENT].astype(np.int64), admissible_rows(10_000, seed)
    found = np.zeros(len(candidates))
    for place, width in enumerate(DOMAIN.widths):
        found += np.log(np.bincount(clean[:, place], minlength=width) + 0.5)[candidates[:, place]]
    return candidates[found.argmin()]
