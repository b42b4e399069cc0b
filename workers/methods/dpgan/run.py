"""The run of `method: dpgan`: that of `idpgan`, whose order says all that differs."""

from __future__ import annotations

from workers.methods.idpgan.run import Run

__all__ = ["Run"]
