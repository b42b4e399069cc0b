"""The certificate that goes with every generator: what exactly is promised, how it was computed, signed."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from imprimatur.verify.members import facts_of
from imprimatur.version import VERSION
from service.base.messages import Message
from service.domain.open_columns import bought_columns
from service.domain.outcomes import outcomes
from service.domain.privacy_unit import IMAGE_UNITS, ImageUnit
from service.domain.table_schema import TableSchema
from service.domain.unit_words import protected_units, unit_in_words
from service.methods.catalogue import CATALOGUE
from service.methods.facts import Facts
from service.methods.interface import Measured
from service.methods.report import forecast_of as report_forecast
from service.methods.report import released_for
from service.privacy.accounting import has_loss_distribution, renyi_divergence
from service.privacy.events import Event, Events, events_to_json, failures_of
from service.privacy.failures import loss_of_failures
from service.privacy.filters import proven_epsilon
from service.privacy.renyi import renyi_epsilon
from service.privacy.statements import statement_warnings
from workers.audited import AUDIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.datasets.models import Dataset
    from service.ledger.models import LedgerEntry
    from service.ledger.service import OtherReleases
    from service.methods.forecast import Forecast
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
ACCOUNTING_BY_RENYI = (
    "all mechanisms compose adaptively; as this list has no privacy-loss distribution, pld is what its Rényi divergences say at the "
    "best of many orders, their sum at the dataset's one order gives renyi, and the price is (epsilon, delta)"
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
    "threshold": (
        "noisy counts; those above a threshold are released, with keys: epsilon-differentially private but for failure_probability, a part of delta",
        "L1",
        "no Gaussian noise: geometric noise of scale sensitivity/epsilon",
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
    "one_of": (
        "one of several lists of mechanisms, on all units; earlier outputs or public coins say which",
        "of each mechanism",
        "as the lists say",
    ),
    "drawn_part": (
        "one of 1/sampling_probability disjoint parts of the units is drawn and stays secret; discrete Gaussian noise on a function of that part",
        "L2",
        NOISE_STD,
    ),
}
"""Kind of event -> mechanism, norm of its sensitivity, how its noise follows."""
OTHERWISE = Measured("a sum over all units", "1 after scaling")
"""What is said of a purpose that the method's card does not name."""
TRUST_MODEL = (
    "central: those who run the service see the rows and are trusted with them; rows are stored encrypted, and decrypted in a worker while a "
    "generator is made; all others see what is released, and are not trusted"
)
NOT_OF_PUBLIC_ROWS = "none: these rows were used without noise and without a charge, and what is drawn may repeat them"
NOT_PROTECTED = (
    Message(
        "What the owner declared (columns or sizes, categories, bounds, privacy unit), and that every uploaded row "
        "agrees with it."
    ),
    Message("The number of units."),
    Message("How long a release took, and when it was made."),
    Message("Facts about the population, which hold with or without any one unit."),
    Message("A person who is in several units: of k units together the promise is (k·ε, …), not (ε, δ)."),
    Message("A person who is in other datasets too: each has a budget of its own, and they add up."),
    Message("What all releases of this dataset together reveal, beyond the dataset's budget."),
    Message("That these rows, or most of their columns, were uploaded before: they are refused a second budget."),
)


def state(
    *,
    dataset: Dataset,
    release: Release,
    posted: LedgerEntry,
    made: Released,
    others: OtherReleases,
    issued_at: dt.datetime,
    public: Dataset | None = None,
) -> dict[str, Any]:
    """What is promised, before it is signed. Everything in it is public: order, price, ledger line, versions.

    public: the dataset, declared public, that the order reads besides its own.
    """
    forecast = forecast_of(dataset, release)
    return {
        "format": FORMAT,
        "release_id": str(release.id),
        "dataset_id": str(dataset.id),
        "method": release.order_["method"],
        **({} if made.choice is None else {"choice": dict(made.choice)}),
        **public_start(public),
        "unit": str(unit_in_words(dataset.declared_schema, dataset.unit)),
        "units": dataset.units,
        "contribution_bound": contribution_bound(dataset),
        "rows_per_unit": rows_per_unit(dataset, made),
        "adjacency": ADJACENCY,
        "neighbouring_relation": NEIGHBOURING_RELATION,
        **_promise(dataset, release, forecast),
        "forecast": forecast.as_json,
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
        "accounting": accounting_of(release.events),
        "accountant": f"Imprimatur {VERSION} (loss distributions), dp_accounting {version('dp_accounting')} (Rényi divergences)",
        "noise": noise_of(release.events),
        "gradients": made.engine,
        "trust_model": TRUST_MODEL,
        "not_protected": [str(each) for each in NOT_PROTECTED],
        "not_modelled": not_modelled(dataset),
        "audit": AUDIT,
        "schema_source": schema_source(dataset),
        "bought": [one for one in bought_columns(dataset.declared_schema) if one["release"] is not None],
        "code_version": VERSION,
        "issued_at": issued_at.isoformat(timespec="seconds"),
    }


def accounting_of(events: Events) -> str:
    """How pld and renyi follow from the list."""
    return ACCOUNTING if has_loss_distribution(events) else ACCOUNTING_BY_RENYI


def schema_source(dataset: Dataset) -> str:
    """Whose word the declaration is."""
    bought = sum(one["release"] is not None for one in bought_columns(dataset.declared_schema))
    if not bought:
        return "declared by the owner"
    of = "1 column" if bought == 1 else f"{bought} columns"
    return f"declared by the owner; what is said of the values of {of} was bought from the rows, and charged (bought)"


def public_start(public: Dataset | None) -> dict[str, Any]:
    """The public dataset that networks were trained on first, where the order names one."""
    if public is None:
        return {}
    named = {"id": str(public.id), "name": public.name, "units": public.units}
    return {
        "public_dataset": {**named, "declared_public_by": "an owner of the tenant", "protection": NOT_OF_PUBLIC_ROWS}
    }


def not_modelled(dataset: Dataset) -> list[dict[str, str]]:
    """Declared columns that the generator does not learn, and what becomes of them."""
    schema = dataset.declared_schema
    found = outcomes(schema) if isinstance(schema, TableSchema) else {}
    return [{"column": name, "becomes": str(said)} for name, said in found.items()]


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


def forecast_of(dataset: Dataset, release: Release) -> Forecast:
    """How far off counts are, as the quote said: from order, events, declaration and n, and not from what was released."""
    unit = dataset.unit
    facts = Facts.of_schema(
        dataset.declared_schema,
        units=dataset.units,
        most_per_unit=1 if unit is None else unit.most,
        budget=dataset.budget,
    )
    return report_forecast(CATALOGUE[release.order_["method"]], release.order, release.events, facts)


def _promise(dataset: Dataset, release: Release, forecast: Forecast) -> dict[str, Any]:
    """ε and δ by both accounts, the budget that they are a part of, and warnings where these are large or buy little."""
    price, budget = release.price, dataset.budget
    failures = failures_of(release.events)
    of_promise = statement_warnings(
        epsilon=budget.epsilon,
        delta=budget.delta,
        units=protected_units(dataset.image_schema, dataset.units),
        release_epsilon=price["epsilon"],
        rows_are_public=dataset.rows_are_public,
    )
    return {
        "epsilon": price["epsilon"],
        "delta": price["delta"],
        "pld": {"epsilon": price["pld_epsilon"], "delta": price["delta"]},
        "renyi": {
            "order": budget.renyi_order,
            "divergence": price["renyi_divergence"],
            "epsilon": renyi_epsilon(price["renyi_divergence"], price["delta"] - failures, budget.renyi_order)
            + loss_of_failures(failures),
            "delta": price["delta"],
        },
        "dataset_budget": {"epsilon": budget.epsilon, "delta": budget.delta},
        "warnings": [str(each) for each in (*of_promise, *forecast.warnings)],
    }


def noise_of(events: Events) -> str:
    """The distribution of the noise of the whole list, and where its randomness comes from."""
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
        _mechanism(purpose, kind, released_for(card, purpose) or OTHERWISE, of_it, most_rows)
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
        schema = dataset.image_schema
        part = schema is not None and schema.pixel_unit is not None
        what = "row" if schema is None else "part of an image" if part else "image"
        return {"unit": what, "column": None, "max_rows": 1}
    if isinstance(unit, ImageUnit):
        return {"unit": "all images of a unit", "column": IMAGE_UNITS, "max_rows": unit.most}
    return {"unit": "value of a column", "column": unit.column, "max_rows": unit.most}


def rows_per_unit(dataset: Dataset, made: Released) -> dict[str, Any]:
    """How many rows of a unit are used at most, and how many it has on average where the events include that count."""
    most = 1 if dataset.unit is None else dataset.unit.most
    if made.rows_per_unit is None:
        return {"most": most, "mean": 1.0 if most == 1 and dataset.unit is None else None}
    return {"most": most, "mean": round(made.rows_per_unit, 6)}
