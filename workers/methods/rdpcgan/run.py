"""The run of `method: rdpcgan`: first the autoencoder's private steps, then the loop of `idpgan` with a generator of codes."""

from __future__ import annotations

from workers.methods.idpgan.run import Run as IdpganRun
from workers.methods.rdpcgan.coded import CodedTables


class Run(IdpganRun):
    """Label counts, then a step for each that is on the plan: of the autoencoder while any of its own are left."""

    of_tables = CodedTables
