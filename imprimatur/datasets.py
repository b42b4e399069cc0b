"""Operations on datasets: what is asked, and how the answer is read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack

from imprimatur.asking import Asking
from imprimatur.naming import id_among, whole_id
from imprimatur.replies import Accepted, Budget, Dataset, DatasetOptions, Declaration, Json, Ledger, Release
from imprimatur.steps import Ask, Upload, listed

if TYPE_CHECKING:
    from imprimatur.steps import Steps

DatasetT = TypeVar("DatasetT", bound=Dataset)
ReleaseT = TypeVar("ReleaseT", bound=Release)
Named = str | uuid.UUID | Mapping[str, Any]
"""A dataset or a release: its id, four or more of its first digits, its name, or what the service answered."""
Where = Mapping[str, Any] | str | Sequence[str]
"""Rows that meet all of these conditions: `{"sex": "F", "age": {"minimum": 65}, "rank": [1, 2]}`, or as the API writes them."""
Weights = Mapping[str, Mapping[str, float] | str]
"""How often values come: `{"income": {">50K": 0.5, "<=50K": 0.5}}`, or `{"sex": "uniform"}`."""
Formulas = Literal["keep", "escape"]


class Drawn(TypedDict, total=False):
    """How rows are drawn."""

    where: Where | None
    weights: Weights | None
    seed: int | None
    formulas: Formulas | None


Hear = Callable[[str, float], None]


class DatasetOperations(Generic[DatasetT, ReleaseT]):
    """One service. `new_dataset` and `new_release` make of a reply what the caller gets."""

    new_dataset: Callable[[Json], DatasetT]
    new_release: Callable[[Json], ReleaseT]

    def __init__(self, asking: Asking) -> None:
        self.asking = asking

    def create_dataset(
        self,
        /,
        file: str | Path,
        schema: Mapping[str, Any],
        *,
        epsilon: float,
        on_progress: Hear | None = None,
        **options: Unpack[DatasetOptions],
    ) -> Steps[DatasetT]:
        """Upload a CSV or Parquet file, or images, with the declared schema and the budget, given once.

        privacy_unit: {"column": "customer", "max_rows_per_unit": 8}, or of images {"max_images_per_unit": 10}. With
        "missing": "own_unit", what has no unit id is a unit of its own; without, it is refused.
        At `rows_expire_at` (RFC 3339, with its time zone) the rows and their key are destroyed.
        `accept_draft`: take a schema that is marked as a draft. `accept_undeclared`: columns of which most rows may be
        outside what is declared.
        `distinct_from`: datasets that look the same, but hold other people's rows; the audit log keeps it.
        `rows_are_public`: everybody may have the rows; orders on other datasets may begin from them without a charge. It
        is said here or never, and cannot be taken back.
        `on_progress` hears a phase (uploading, reading, storing) and the share of the file that is through it.
        """
        refuse_unknown(options, DatasetOptions.__optional_keys__)
        fields = yield from self._upload_fields(schema, epsilon, options)
        rows_expire_at = options.get("rows_expire_at")
        if rows_expire_at is not None:
            fields["rows_expire_at"] = rows_expire_at
        if options.get("rows_are_public"):
            fields["rows_are_public"] = "true"
        upload = Upload(file, fields, on_progress)
        return self.new_dataset((yield from self.asking.upload_heard("POST", "/v1/datasets", upload)))

    def replace_declaration(
        self,
        dataset: Named,
        /,
        *,
        schema: Mapping[str, Any] | None = None,
        privacy_unit: Mapping[str, Any] | Literal["rows"] | None = None,
        name: str | None = None,
        file: str | Path | None = None,
        on_progress: Hear | None = None,
        **accepted: Unpack[Accepted],
    ) -> Steps[DatasetT]:
        """Replace a dataset's schema, privacy unit or name before its first order is charged; None stays as it is.

        `privacy_unit="rows"`: each row is a unit. The file of the upload is needed again where the service says
        `upload_needed`. Progress is heard as by `create_dataset`.
        """
        refuse_unknown(accepted, Accepted.__optional_keys__)
        fields = _accepted(accepted) | ({} if name is None else {"name": name})
        if schema is not None:
            fields["schema"] = json.dumps(dict(schema))
        if privacy_unit is not None:
            fields["privacy_unit"] = "null" if privacy_unit == "rows" else json.dumps(dict(privacy_unit))
        path = f"/v1/datasets/{(yield from self._dataset_id(dataset))}/declaration"
        return self.new_dataset((yield from self.asking.upload_heard("PUT", path, Upload(file, fields, on_progress))))

    def datasets(self) -> Steps[list[DatasetT]]:
        """All datasets of this tenant, newest first."""
        return [self.new_dataset(each) for each in (yield from listed(self.asking.pages("/v1/datasets")))]

    def dataset(self, dataset: Named) -> Steps[DatasetT]:
        """One dataset: its schema, its privacy unit, its whole budget, and whether its rows are still there."""
        return self.new_dataset((yield from self.asking.get(f"/v1/datasets/{(yield from self._dataset_id(dataset))}")))

    def erase_dataset(self, dataset: Named) -> Steps[None]:
        """Erase the rows; the ledger, and releases already published, stay."""
        yield from self.asking.send(
            Ask("DELETE", f"/v1/datasets/{(yield from self._dataset_id(dataset))}"), repeat=True
        )

    def expire_rows_at(self, dataset: Named, rows_expire_at: str) -> Steps[DatasetT]:
        """Give the rows a deletion date, or an earlier one."""
        path = f"/v1/datasets/{(yield from self._dataset_id(dataset))}"
        ask = Ask("PATCH", path, json={"rows_expire_at": rows_expire_at})
        return self.new_dataset((yield from self.asking.send(ask, repeat=True)).json())

    def budget(self, dataset: Named) -> Steps[Budget]:
        """What is spent and left in both accounts, and the largest ε that one more release may have."""
        return Budget.of((yield from self.asking.get(f"/v1/datasets/{(yield from self._dataset_id(dataset))}/budget")))

    def ledger(self, dataset: Named) -> Steps[Ledger]:
        """Every entry of a dataset's ledger, in order, and whether the hash chain and the balance are whole."""
        path = f"/v1/datasets/{(yield from self._dataset_id(dataset))}/ledger"
        return Ledger.of((yield from self.asking.whole(path)))

    def _dataset_id(self, named: Named) -> Steps[str]:
        known = whole_id(named)
        if known is not None:
            return known
        return id_among((yield from listed(self.asking.pages("/v1/datasets"))), str(named), "dataset")

    def _upload_fields(self, schema: Mapping[str, Any], epsilon: float, declared: Declaration) -> Steps[dict[str, str]]:
        """The text fields of an upload."""
        delta = declared.get("delta")
        budget = {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}
        fields = {"schema": json.dumps(dict(schema)), "budget": json.dumps(budget)}
        name = declared.get("name")
        if name is not None:
            fields["name"] = name
        privacy_unit = declared.get("privacy_unit")
        if privacy_unit is not None:
            fields["privacy_unit"] = json.dumps(dict(privacy_unit))
        unlike: list[str] = []
        for each in declared.get("distinct_from") or ():
            unlike += [(yield from self._dataset_id(each))]
        if unlike:
            fields["distinct_from"] = json.dumps(unlike)
        return fields | _accepted(declared)


def _accepted(said: Mapping[str, Any]) -> dict[str, str]:
    """What the owner takes on their word: a draft, columns that hardly fit."""
    fields = {"accept_draft": "true"} if said.get("accept_draft") else {}
    if said.get("accept_undeclared"):
        fields["accept_undeclared"] = json.dumps(list(said["accept_undeclared"]))
    return fields


def refuse_unknown(options: Mapping[str, Any], known: frozenset[str]) -> None:
    """Raise `TypeError` for unknown options, as Python does for unknown keywords."""
    unknown = sorted(options.keys() - known)
    if unknown:
        raise TypeError(f"unexpected keyword argument {unknown[0]!r}; known are {', '.join(sorted(known))}")
