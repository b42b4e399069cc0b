"""Streams of synthetic rows and images for the API, in bounded memory, from a published bundle. Reads nothing private."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.base.errors import InvalidInput
from service.base.messages import Message
from service.samples.formats import FORMATS, default_format, format_named, formats_of
from service.samples.request import Wanted
from service.samples.samplers import Sampler, content_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from service.samples.formulas import Formulas
    from service.samples.table.blocks import InOrder
    from service.samples.table.conditions import Where
    from service.samples.table.weighting import Weights

WRITERS = {name: each.load_writer() for name, each in FORMATS.items()}
"""Loaded with this module: their libraries take a third of a second, for which no request should wait."""


def stream_rows(
    sampler: Sampler,
    *,
    rows: int,
    format: str | None = None,  # noqa: A002 - the query parameter's name
    seed: int | None = None,
    where: Where | None = None,
    weights: Weights | None = None,
    formulas: Formulas = "keep",
    each: InOrder = map,
) -> Generator[bytes]:
    """The stream of a sample that these words ask for.

    `where` and `weights` are what `TableSampler.draws` takes; `formulas` says what happens to CSV texts that a spreadsheet would carry out;
    `each` draws chunks of rows, as `map` would.
    """
    return stream(sampler, Wanted(rows, seed, where, formulas, each, weights), format)


def stream(sampler: Sampler, wanted: Wanted, format: str | None = None) -> Generator[bytes]:  # noqa: A002 - as above
    """The bytes of synthetic rows or images, piece by piece; a piece may be empty, to let other samples have a turn.

    A wrong request raises `InvalidInput` here, before the first piece. `format` is the default one unless it is named.
    """
    content = content_of(sampler)
    name = default_format(content) if format is None else format
    if format_named(name).content != content:
        raise InvalidInput(
            Message(
                "this release makes %(content)s: choose format %(choices)s",
                content=content,
                choices=", ".join(formats_of(content)),
            ),
            where="format",
        )
    pieces: Generator[bytes] = WRITERS[name](sampler, wanted)
    return pieces
