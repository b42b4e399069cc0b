"""What the model card says of a generator of rows alone."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from workers.generators.card import CERTIFICATE_FILE, Content, model_card
from workers.generators.markdown import code, escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workers.encoding.table import ColumnDomain, TableDomain

_KINDS = {"categories": "categories", "grid": "bins"}

_USE = """\
## Draw rows

    pip install numpy onnxruntime
    python sample.py --rows 1000
    python sample.py --rows 1000 --seed 7 --format jsonl -o rows.jsonl
    python sample.py --rows 1000 --where "COLUMN>=NUMBER&COLUMN=VALUE"
    python sample.py --complete mine.csv -o completed.csv
"""
_FREE = "Any number of rows may be drawn, shared and analysed: drawing costs no privacy."
_EXCLUDED = """\
`sample.py` never returns a row that meets one of the `exclusions` in config.json; programs that run generator.onnx without it
must leave such rows out.
"""
_CAUTION = """\
Synthetic rows are approximate, most of all for rare groups and for relations among many columns: a group smaller than the
noise is made of noise, however many of its rows are drawn. Do not use them to
decide about a single person, and check important findings against the real table with its owner. Do not compute standard
errors as if these were real, independent rows: rows of one sample are spread more evenly than independent ones (those of a
mixture are chosen so that each pair of columns is close to what the generator knows), and all of them share the error that
the noise of the method made."""


def table_card(
    *, domain: TableDomain, condition: str | None, certificate: Mapping[str, Any], order: Mapping[str, Any]
) -> str:
    """The whole card. condition: the column that the generator can be asked for values of."""
    option = code(f"--where {shlex.quote(f'{condition}:VALUE')}")
    where = (
        f"{option} sets the condition the generator was made with. Rows of a mixture meet any other, however rare, as fast; "
        "rows of a network are filtered.\n"
        if condition
        else "Rows of a mixture meet any `--where`, however rare, as fast; rows of a network are filtered.\n"
    )
    content = Content(
        title="A generator of synthetic rows",
        what_it_does="It draws new rows with the columns of a private table; the rows of the table are not in it.",
        use=f"{_USE}\n{where}{_EXCLUDED if domain.exclusions else ''}\n{_FREE}",
        record="row",
        declared="names, categories and bounds",
        population="If the table shows that smoking goes with cancer, so will these rows.",
        caution=_CAUTION,
        files={
            "generator.onnx": f"the network: noise{' and a condition' if condition else ''} in, logits of all columns out",
            "generator.safetensors": "its weights",
            "config.json": "columns, their bins and the values that many rows share, the schema",
            **CERTIFICATE_FILE,
            "sample.py": "draws rows; needs numpy and onnxruntime only",
        },
        more=_columns(domain, certificate.get("not_modelled", [])),
    )
    return model_card(content, certificate=certificate, order=order)


def _columns(domain: TableDomain, not_modelled: Sequence[Mapping[str, str]]) -> str:
    rows = "\n".join(
        f"| {escaped(column.name)} | {column.type} | {column.size} {_KINDS[column.kind]}{_shared(column)} |"
        for column in domain.columns
    )
    columns = f"## Columns\n\n| column | type | categories or bins |\n|---|---|---|\n{rows}"
    if not not_modelled:
        return columns
    others = "\n".join(f"| {escaped(each['column'])} | {escaped(each['becomes'])} |" for each in not_modelled)
    return (
        f"{columns}\n\nThese are declared, too, and the generator does not learn them:\n\n"
        f"| column | what becomes of it |\n|---|---|\n{others}"
    )


def _shared(column: ColumnDomain) -> str:
    """Values of a range that are drawn with a probability of their own."""
    count = len(column.shared_values)
    return f", {count} single values with noisy counts of their own" if count else ""
