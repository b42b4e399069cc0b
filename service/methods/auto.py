"""`method: auto`, the default: the method that measured best on such data, chosen from the declaration and n alone."""

from __future__ import annotations

from typing import Literal

from service.methods.knobs import AnyOrder


class AutoOrder(AnyOrder):
    """The default: the method that measured best on such tables, chosen from schema and n alone."""

    method: Literal["auto"] = "auto"
