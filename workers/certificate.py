"""The certificate that goes with every generator: what exactly is promised, how it was computed, signed."""

from __future__ import annotations

import datetime as dt
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from service.privacy.events import events_to_json
from service.privacy.filters import renyi_epsilon
from service.privacy.orders import IdpganOrder
from service.version import VERSION

if TYPE_CHECKING:
    from service.crypto import Secrets
    from service.datasets.models import Dataset
    from service.ledger.models import LedgerEntry
    from service.releases.models import Release
    from workers.image_measuring import MeasuredImages
    from workers.training import TrainedGenerator

FORMAT = 1
NOISE = {"idpgan": "", "marginals": "; rounded to whole counts", "mixture": "; rounded to whole numbers"}
ADJACENCY = (
    "zero-out one unit (REPLACE_SPECIAL in dp_accounting): a neighbouring dataset has one unit that contributes nothing"
)


def certify(
    secrets: Secrets,
    *,
    dataset: Dataset,
    release: Release,
    posted: LedgerEntry,
    trained: TrainedGenerator | MeasuredImages,
) -> dict[str, Any]:
    """The signed document. Everything in it is public: order, price, ledger line, versions."""
    price, budget = release.price, dataset.budget
    document = {
        "format": FORMAT,
        "release_id": str(release.id),
        "dataset_id": str(dataset.id),
        "method": release.order_["method"],
        "unit": unit_in_words(dataset),
        "units": dataset.units,
        "rows_per_unit": rows_per_unit(dataset, trained),
        "adjacency": ADJACENCY,
        "epsilon": price["epsilon"],
        "delta": price["delta"],
        "pld": {"epsilon": price["pld_epsilon"], "delta": price["delta"]},
        "renyi": {
            "order": budget.renyi_order,
            "divergence": price["renyi_divergence"],
            "epsilon": renyi_epsilon(price["renyi_divergence"], price["delta"], budget.renyi_order),
            "delta": price["delta"],
        },
        "dataset_budget": {"epsilon": budget.epsilon, "delta": budget.delta},
        "ledger_entry": {
            "seq": posted.seq,
            "kind": posted.kind,
            "shares": {"simple": posted.simple, "renyi": posted.renyi},
            "hash": bytes(posted.hash).hex(),
        },
        "events": events_to_json(release.events),
        "accountant": f"dp_accounting {version('dp_accounting')} for the Rényi divergence, our own for the privacy loss",
        "noise": "Gaussian, from ChaCha20 seeded by the operating system" + _rounding(release),
        "gradients": trained.engine,
        "schema_source": "declared by the owner",
        "code_version": VERSION,
        "issued_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }
    return {**document, "public_key": secrets.public_key, "signature": secrets.sign(document)}


def _rounding(release: Release) -> str:
    """Which noised sums are whole numbers."""
    order = release.order
    if isinstance(order, IdpganOrder) and order.tables_order is not None:
        return "; that of tables rounded to whole counts"
    return NOISE[order.method]


def rows_per_unit(dataset: Dataset, trained: TrainedGenerator | MeasuredImages) -> dict[str, Any]:
    """How many rows of a unit are used at most, and how many it has on average where the events bought that."""
    most = 1 if dataset.unit is None else dataset.unit.max_rows_per_unit
    if trained.rows_per_unit is None:
        return {"most": most, "mean": 1.0 if most == 1 and dataset.unit is None else None}
    return {"most": most, "mean": round(trained.rows_per_unit, 6)}


def unit_in_words(dataset: Dataset) -> str:
    """Whose contribution is hidden."""
    unit = dataset.unit
    if unit is None:
        return "one row" if dataset.image_schema is None else "one image"
    return f"all rows of one value of {unit.column!r}, of which at most {unit.max_rows_per_unit} are used"
