"""MODEL_CARD.md of a published generator: plain words for people who hold the ZIP and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workers.encoding.table import ColumnDomain, TableDomain

_SEE = "see certificate.json"

_KINDS = {"categories": "categories", "grid": "on a grid"}

_WHAT = {
    "marginals": "a mixture of simple distributions, written as a network, that was fitted to noised counts of",
    "idpgan": "a small neural network that was trained on",
}

_EXCLUDED = """\
`sample.py` never returns a row that meets one of the `exclusions` in config.json; who runs generator.onnx without it has to
leave such rows out.
"""

_CARD = """\
# A generator of synthetic rows

This ZIP holds {what} a private table under differential privacy by the method
`{method}`. It draws new rows with the same columns; the rows of the table are not in it.

## Draw rows

    pip install numpy onnxruntime
    python sample.py --rows 1000
    python sample.py --rows 1000 --seed 7 --format jsonl -o rows.jsonl
    python sample.py --rows 1000 --where COLUMN:VALUE

{condition}{excluded}
Any number of rows may be drawn, shared and analysed: drawing costs no privacy.

## What is protected

- Unit of protection: {unit}
- Rows of a unit, on average: {rows_per_unit}
- Adjacency: {adjacency}
- Trust model: {trust_model}
- Guarantee: ({epsilon}, {delta})-differential privacy
{warnings}
Whoever sees this ZIP, every row drawn from it, and knows everything about all other units, can hardly tell whether one
unit was in the table: any conclusion about it is at most e^ε times as likely, up to a probability δ, as it would
have been without that unit.

## What is not protected

- The declared schema, with its names, categories and bounds, and the number of units: they are public.
- Facts about the whole population. If the table shows that smoking goes with cancer, so will these rows.
- One unit beyond the unit named above: a household is not protected by a guarantee for single rows.
- Other releases from the same table: each adds to what is revealed. The owner's ledger keeps the sum within a budget.
  {other_releases}

Synthetic rows are approximate, most of all for rare groups and for relations among many columns. Do not use them to
decide about a single person, and check important findings against the real table with its owner. Standard errors
computed as if these were real, independent rows say nothing about that: rows of one sample are spread more evenly than
independent ones (those of a mixture so that each two columns come as near to what the generator knows as they can), and what
the noise of the method changed is in all of them.

## Where it comes from

- Schema: {schema_source}
- Code version: {code_version}
- Audit: {audit}
- certificate.json: the guarantee with its accounting, the ledger entry that paid for it, and a signature

| file | |
|---|---|
| generator.onnx | the network: noise{condition_input} in, logits of all columns out |
| generator.safetensors | its weights |
| config.json | columns, their cells and the values that many rows share, the schema |
| certificate.json | the guarantee |
| sample.py | draws rows; needs numpy and onnxruntime only |

## Columns

| column | type | cells |
|---|---|---|
{columns}

## Order

    {order}
"""


def model_card(
    *, domain: TableDomain, condition: str | None, certificate: Mapping[str, Any], order: Mapping[str, Any]
) -> str:
    """The card as Markdown; what the certificate does not say is left to certificate.json."""
    return _CARD.format(
        method=order.get("method", _SEE),
        what=_WHAT.get(order.get("method", ""), _WHAT["idpgan"]),
        rows_per_unit=_mean_rows(certificate.get("rows_per_unit")),
        condition=f"`--where {condition}:VALUE` sets the condition the generator was made with; other columns are filtered.\n"
        if condition
        else "`--where` filters: a rare value takes longer.\n",
        excluded=_EXCLUDED if domain.exclusions else "",
        unit=certificate.get("unit", _SEE),
        adjacency=certificate.get("adjacency", _SEE),
        epsilon=f"ε = {certificate['epsilon']}" if "epsilon" in certificate else f"ε: {_SEE}",
        warnings="".join(f"- Warning: {warning}\n" for warning in certificate.get("warnings", [])),
        delta=f"δ = {certificate['delta']}" if "delta" in certificate else f"δ: {_SEE}",
        schema_source=certificate.get("schema_source", "declared by the owner before any row was read"),
        code_version=certificate.get("code_version", _SEE),
        trust_model=certificate.get("trust_model", _SEE),
        other_releases=other_releases(certificate),
        audit=certificate.get("audit", {}).get("says", _SEE),
        condition_input=" and a condition" if condition else "",
        columns="\n".join(
            f"| {column.name.replace('|', chr(92) + '|')} | {column.type} | {column.size} {_KINDS[column.kind]}{_shared(column)} |"
            for column in domain.columns
        ),
        order=json.dumps(order, ensure_ascii=False, sort_keys=True),
    )


def other_releases(certificate: Mapping[str, Any]) -> str:
    """What had been charged on the same data when this was made."""
    others = certificate.get("other_releases")
    if others is None:
        return f"How much by others: {_SEE}."
    return (
        f"When this one was made, {others['charged']} others were charged and {others['pending']} reserved, together ε = "
        f"{others['epsilon']:.6g}; with this one ε = {others['with_this']['epsilon']:.6g}."
    )


def _shared(column: ColumnDomain) -> str:
    """How many values of a range are drawn as often as noised counts say."""
    count = len(column.shared_values)
    return f", {count} of its values as often as they are shared" if count else ""


def _mean_rows(rows_per_unit: Mapping[str, Any] | None) -> str:
    if rows_per_unit is None:
        return _SEE
    if rows_per_unit["mean"] is None:
        return f"not bought (at most {rows_per_unit['most']} are used)"
    return f"{rows_per_unit['mean']:g} (noised where it is not 1; at most {rows_per_unit['most']} are used)"
