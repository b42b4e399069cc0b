"""Compiles the C sources beside it where a C compiler is at hand, for the very processor it runs on.

It takes a second or two. A worker does it once and hands the library to the trainings that it starts; a training
that gets none compiles at the first use, once a process. Without torch: `kernels.py` calls what is compiled here.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

SOURCES = tuple(Path(__file__).with_name(name) for name in ("perceptron.c", "sums.c", "discrete_gaussian.c"))
COMPILE_SECONDS = 60.0
FLAGS = (
    ("-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-march=native", "-mprefer-vector-width=512", "-fopenmp"),
    ("-O3", "-march=native", "-fopenmp"),
    ("-O3", "-march=native"),
    ("-O3",),
)
"""The first that the compiler knows; as fast as -O3, and compiled in half the time. Threads come from the OpenMP library that
torch has brought along."""

ROWS_AT_ONCE = 32
"""Of one block in perceptron.c; those of a unit must fit into one."""

BLOCKS_IN_FLOAT32 = 10
"""Such blocks that a thread adds up in float32, before they go to the sums in float64."""

DEEPEST = 8
"""Hidden layers of a critic that it knows."""

SIZES = (f"-DROWS={ROWS_AT_ONCE}", f"-DBLOCKS_IN_FLOAT32={BLOCKS_IN_FLOAT32}", f"-DDEEPEST={DEEPEST}")

HANDED_OVER = "IMPRIMATUR_KERNELS_FD"
"""Names, in a training's environment, the open file of the library that its worker has compiled."""

logger = logging.getLogger(__name__)


def compile_library(folder: Path, *macros: str) -> Path | None:
    """The library, a file in this folder; None, and a warning, where that is not possible."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        logger.warning("no C compiler: private steps use torch's operations, which take longer")
        return None
    library = folder / "kernels.so"
    for flags in FLAGS:
        # -fno-math-errno and -fno-trapping-math change no number; they let square roots run side by side.
        command = [compiler, *flags, *SIZES, *macros, "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]
        command += ["-o", str(library), *map(str, SOURCES), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_SECONDS)  # noqa: S603
        except (OSError, subprocess.SubprocessError) as error:
            refusal = error
        else:
            return library
    logger.warning("the C compiler failed: private steps use torch's operations, which take longer: %s", refusal)
    return None


class SharedLibrary:
    """A worker's, compiled in the background; the trainings that it starts inherit it, as an open file without a name."""

    def __init__(self) -> None:
        self._descriptor: Future[int | None] = Future()

    def compile(self) -> None:
        """Begin to."""
        self._descriptor = ThreadPoolExecutor(1, "compiling").submit(_compile_to_share)

    def for_a_child(self) -> dict[str, Any]:
        """Arguments of `Popen`; none before it is there, or where it could not be compiled: the child tries by itself."""
        if not self._descriptor.done() or self._descriptor.exception() is not None:
            return {}
        descriptor = self._descriptor.result()
        if descriptor is None:
            return {}
        return {"pass_fds": (descriptor,), "env": os.environ | {HANDED_OVER: str(descriptor)}}


def _compile_to_share() -> int | None:
    with tempfile.TemporaryDirectory(prefix="imprimatur-kernels-") as folder:
        library = compile_library(Path(folder))
        return None if library is None else os.open(library, os.O_RDONLY)
