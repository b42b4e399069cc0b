"""The run of `method: ganobfuscator`."""

from __future__ import annotations

from workers.methods.ganobfuscator.public import PublicImages, PublicTable
from workers.methods.idpgan.run import Run as IdpganRun


class Run(IdpganRun):
    """The loop of `idpgan`; each step looks at public records first."""

    of_tables, of_images = PublicTable, PublicImages
