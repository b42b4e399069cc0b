"""`method: ganobfuscator`: its knobs, and those of every method that takes its clip norms from public records."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.methods.idpgan.knobs import PublicStartOrder
from service.methods.idpgan.order import PlainGanOrder


class PublicNormOrder(PublicStartOrder, PlainGanOrder):
    """Clip norms from public records, which are made up from the declaration alone."""

    public_records: Annotated[
        int, Field(ge=1, le=10_000, description="Made-up public records: uniform over bins, or smooth random images.")
    ] = 600
    looked_at: Annotated[
        int,
        Field(
            ge=1, le=256, description="Public records looked at in a step; their mean gradient norm is its clip norm."
        ),
    ] = 32

    @property
    def public_records_a_step(self) -> int:
        return min(self.looked_at, self.public_records)


class GanobfuscatorOrder(PublicNormOrder):
    """A comparison: WGAN-GP whose clip norm is, at every step, the mean gradient norm of public records (Xu et al. 2019)."""

    method: Literal["ganobfuscator"]
