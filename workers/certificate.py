"""The certificate that goes with every generator: what exactly is promised, how it was computed, signed."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from imprimatur.verify.members import facts_of
from imprimatur.version import VERSION
from service.domain.privacy_unit import IMAGE_UNITS, ImageUnit
from service.methods.catalogue import CATALOGUE
from service.methods.interface import Measured
from service.privacy.accounting import renyi_divergence
from service.privacy.events import Event, Events, events_to_json
from service.privacy.filters import proven_epsilon
from service.privacy.renyi import renyi_epsilon
from service.privacy.statements import statement_warnings
from workers.audited import AUDIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.datasets.models import Dataset
    from service.ledger.models import LedgerEntry
    from service.ledger.service import OtherReleases
    from service.methods.interface import Card
    from service.platform.signing import SigningKey
    from service.releases.models import Release
    from workers.generators.released import Released

FORMAT = 3
"""Since 2: contribution bound, neighbouring relation, mechanisms, trust model, what is not protected, other releases, audit.
Since 3: the members of the published ZIP."""

# -- the words of certificates, all here: docs/certificate.md explains each

ADJACENCY = (
    "zero-out one unit (REPLACE_SPECIAL in dp_accounting): a neighbouring dataset has one unit that contributes nothing"
)
NEIGHBOURING_RELATION = {
    "name": "zero-out",
    "changed_units": 1,
    "dp_accounting": "REPLACE_SPECIAL",
    "number_of_units": "the same in both datasets, and public",
    "replacing_a_unit_by_another": "(2ε, (1 + e^ε)·δ)",
}
GAUSSIAN_NOISE = "discrete Gaussian, drawn exactly, from ChaCha20 seeded by the operating system"
OTHER_NOISE = "as each mechanism says, from ChaCha20 seeded by the operating system"
WHOLE_NUMBERS = "discrete Gaussian on the integers, of variance noise_std² + 1.2 + ln(a)/(2π²), a the most numbers that a unit moves"
SAMPLED_SUMS = (
    "Poisson-sampled Gaussian: a fresh draw, each unit with the sampling probability, and a discrete Gaussian on a public grid of "
    "1/128 of its standard deviation, 1.00012 times noise_std; histograms of norms as whole numbers"
)
NOISE_STD = "Σ over the parts of one release of (sensitivity / noise_std)² = 1 / noise_multiplier²"
ACCOUNTING = (
    "all mechanisms compose adaptively; the privacy-loss distribution of the whole list gives pld, the sum of its Rényi divergences "
    "at the dataset's one order gives renyi, and the price is (epsilon, delta)"
)
MECHANISMS = {
    "gaussian": (WHOLE_NUMBERS, "L2", NOISE_STD),
    "sampled_step": (SAMPLED_SUMS, "L2", NOISE_STD),
    "laplace": ("Laplace noise", "L1", "√2 · noise_scale · sensitivity"),
    "pure": (
        "an epsilon-differentially private mechanism",
        "as its proof says",
        "no Gaussian noise: epsilon is of one run",
    ),
    "exponential": (
        "exponential mechanism: an output r with probability in proportion to exp(epsilon · score(r) / (2 · sensitivity))",
        "largest change of a score",
        "no noise is added: epsilon is of one run",
    ),
    "parallel": (
        "one list of mechanisms for each part of a public or random split of the units, each unit in one part",
        "of each mechanism",
        "as the parts say",
    ),
    "repeat_and_select": (
        "a list of mechanisms run a random number of times (truncated negative binomial; no shape: Poisson), of which one run is released",
        "of each mechanism",
        "as the list says",
    ),
}
"""Kind of event -> mechanism, norm of its sensitivity, how its noise follows."""
OTHERWISE = Measured("a sum over all units", "1 after scaling")
"""What is said of a purpose that the method's card does not name."""
TRUST_MODEL = (
    "central: those who run the service see the rows and are trusted with them; rows are stored encrypted, and decrypted in a worker while a "
    "generator is made; all others see what is released, and are not trusted"
)
NOT_PROTECTED = (
    "What the owner declared (columns or sizes, categories, bounds, privacy unit), and that every uploaded row agrees with it.",
    "The number of units.",
    "How long a release took, and when it was made.",
    "Facts about the population, which hold with or without any one unit.",
    "A person who is in several units: of k units together the promise is (k·ε, …), not (ε, δ).",
    "A person who is in other datasets too: each has a budget of its own, and they add up.",
    "What all releases of this dataset together reveal, beyond the dataset's budget.",
    "That these rows, or most of their columns, were uploaded before: they are refused a second budget.",
)


def state(
    *,
    dataset: Dataset,
    release: Release,
    posted: LedgerEntry,
    made: Released,
    others: OtherReleases,
    issued_at: dt.datetime,
) -> dict[str, Any]:
    """What is promised, before it is signed. Everything in it is public: order, price, ledger line, versions."""
    return {
        "format": FORMAT,
        "release_id": str(release.id),
        "dataset_id": str(dataset.id),
        "method": release.order_["method"],
        "unit": unit_in_words(dataset),
        "units": dataset.units,
        "contribution_bound": contribution_bound(dataset),
        "rows_per_unit": rows_per_unit(dataset, made),
        "adjacency": ADJACENCY,
        "neighbouring_relation": NEIGHBOURING_RELATION,
        **_promise(dataset, release),
        "ledger_entry": {
            "seq": posted.seq,
            "kind": posted.kind,
            "shares": {"simple": posted.simple, "renyi": posted.renyi},
            "hash": bytes(posted.hash).hex(),
        },
        "other_releases": in_figures(others, posted, dataset),
        "events": events_to_json(release.events),
        "mechanisms": mechanisms(
            release.events,
            CATALOGUE[release.order_["method"]].card,
            most_rows=contribution_bound(dataset)["max_rows"],
            renyi_order=dataset.budget.renyi_order,
        ),
        "accounting": ACCOUNTING,
        "accountant": f"Imprimatur {VERSION} (loss distributions), dp_accounting {version('dp_accounting')} (Rényi divergences)",
        "noise": noise_of(release.events),
        "gradients": made.engine,
        "trust_model": TRUST_MODEL,
        "not_protected": list(NOT_PROTECTED),
        "audit": AUDIT,
        "schema_source": "declared by the owner",
        "code_version": VERSION,
        "issued_at": issued_at.isoformat(timespec="seconds"),
    }


def certify(
    key: SigningKey,
    statement: Mapping[str, Any],
    files: Mapping[str, bytes],
    *,
    transparency: dict[str, Any],
    consistency: list[dict[str, Any]],
) -> dict[str, Any]:
    """The signed document: the statement, the files that are published with it, and the place in the log.

    Consistency proofs stand beside what is signed (`imprimatur.verify.signatures.UNSIGNED`): lists of releases leave them out.
    """
    members = {name: facts_of(content) for name, content in files.items()}
    document = {**statement, "members": members, "transparency": transparency}
    unsigned = {"consistency": consistency, "public_key": key.public_key}
    return {**document, **unsigned, "signature": key.sign(document)}


def _promise(dataset: Dataset, release: Release) -> dict[str, Any]:
    """ε and δ by both accounts, the budget that they are a part of, and warnings where these are large."""
    price, budget = release.price, dataset.budget
    return {
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
        "warnings": statement_warnings(
            epsilon=budget.epsilon, delta=budget.delta, units=dataset.units, release_epsilon=price["epsilon"]
        ),
    }


def noise_of(events: Events) -> str:
    """Of the whole list: which distribution, and where its randomness comes from."""
    return (
        GAUSSIAN_NOISE
        if {each.kind for event in events for each in event.alike} <= {"gaussian", "sampled_step"}
        else OTHER_NOISE
    )


def mechanisms(events: Events, card: Card, *, most_rows: int, renyi_order: int) -> list[dict[str, Any]]:
    """Every event of the price list with its original parameters, by what it is for; those alike are counted together.

    Order does not matter to composition. The Rényi divergences of all runs add up to that of the list.
    """
    alike: Counter[Event] = Counter()
    for event in (each for run in events for each in run.alike):
        alike[event.cut(1)] += event.count
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for event, count in alike.items():
        runs.setdefault((event.purpose, event.kind), []).append(_run(event, count, renyi_order))
    return [
        _mechanism(purpose, kind, card.releases.get(purpose, OTHERWISE), of_it, most_rows)
        for (purpose, kind), of_it in runs.items()
    ]


def _mechanism(
    purpose: str, kind: str, measured: Measured, runs: list[dict[str, Any]], most_rows: int
) -> dict[str, Any]:
    mechanism, norm, noise_std = MECHANISMS[kind]
    return {
        "purpose": purpose,
        "mechanism": mechanism,
        "releases": measured.what,
        "sensitivity": {"norm": norm, "of_one_unit": measured.of_one_unit.format(rows=most_rows)},
        "noise_std": noise_std,
        "runs": runs,
    }


def _run(event: Event, count: int, renyi_order: int) -> dict[str, Any]:
    """One set of parameters, and how often."""
    return {
        "count": count,
        **event.parameters(),
        "renyi_divergence": renyi_divergence([event.cut(count)], renyi_order),
    }


def in_figures(others: OtherReleases, posted: LedgerEntry, dataset: Dataset) -> dict[str, Any]:
    """What was charged or reserved on the same dataset by this moment, without this release and with it."""
    simple, renyi = others.simple + posted.simple, others.renyi + posted.renyi
    return {
        "charged": others.charged,
        "pending": others.pending,
        "epsilon": proven_epsilon(others.simple, others.renyi, dataset.budget),
        "shares": {"simple": others.simple, "renyi": others.renyi},
        "with_this": {
            "epsilon": proven_epsilon(simple, renyi, dataset.budget),
            "shares": {"simple": simple, "renyi": renyi},
        },
        "up_to_entry": others.entries,
    }


def contribution_bound(dataset: Dataset) -> dict[str, Any]:
    """The unit and its bound for programs: what `unit` says in words."""
    unit = dataset.unit
    if unit is None:
        return {"unit": "row" if dataset.image_schema is None else "image", "column": None, "max_rows": 1}
    if isinstance(unit, ImageUnit):
        return {"unit": "all images of a unit", "column": IMAGE_UNITS, "max_rows": unit.most}
    return {"unit": "value of a column", "column": unit.column, "max_rows": unit.most}


def rows_per_unit(dataset: Dataset, made: Released) -> dict[str, Any]:
    """How many rows of a unit are used at most, and how many it has on average where the events bought that."""
    most = 1 if dataset.unit is None else dataset.unit.most
    if made.rows_per_unit is None:
        return {"most": most, "mean": 1.0 if most == 1 and dataset.unit is None else None}
    return {"most": most, "mean": round(made.rows_per_unit, 6)}


def unit_in_words(dataset: Dataset) -> str:
    """Whose contribution is hidden."""
    unit = dataset.unit
    if unit is None:
        return "one row" if dataset.image_schema is None else "one image"
    if isinstance(unit, ImageUnit):
        what, words = "image", f"all images of one unit, of which at most {unit.most} are used"
    else:
        what, words = "row", f"all rows of one value of {unit.column!r}, of which at most {unit.most} are used"
    return words if unit.missing == "refuse" else f"{words}; {what}s without a unit id are units of their own"
