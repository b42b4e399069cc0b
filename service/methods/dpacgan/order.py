"""`method: dpacgan`: its knobs."""

from __future__ import annotations

from typing import Literal

from service.methods.ganobfuscator.order import PublicNormOrder


class DpacganOrder(PublicNormOrder):
    """A comparison, for labelled images: the critic also names the class, and clip norms come from public records (Guo et al. 2018)."""

    method: Literal["dpacgan"]

    @property
    def names_classes(self) -> bool:
        return True
