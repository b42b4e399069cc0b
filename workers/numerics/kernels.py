"""The loops of kernels.c, compiled where a C compiler is at hand; without one the callers use torch's operations.

Compiling takes half a second, once a process, at the first use, for the very processor it runs on. What is computed is the
same either way up to rounding, and every bound on rounding covers both.
"""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from workers.numerics.block_sums import BLOCK_ROWS
from workers.numerics.workspace import Workspace

SOURCE = Path(__file__).with_name("kernels.c")
COMPILE_SECONDS = 60.0
FLAGS = (("-march=native", "-fopenmp"), ("-march=native",), ())
"""The first that the compiler knows. Threads come from the OpenMP library that torch has brought along."""

LARGEST_RANK = 8
"""Above this, Gram matrices by batched products are as fast."""

_TALL, _WIDE = 6, 16  # of a tile in kernels.c
_KINDS = {"p": ctypes.c_void_p, "i": ctypes.c_long, "c": ctypes.c_int, "f": ctypes.c_float}

logger = logging.getLogger(__name__)

_switched_off = False


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """A matrix (inner, width) in strips of columns."""

    strips: Tensor
    inner: int
    width: int

    @staticmethod
    def size(matrix: Tensor) -> int:
        """Floats that it or its transpose takes at most."""
        return matrix.numel() + _WIDE * max(matrix.shape)


class Kernels:
    """The compiled functions, on contiguous tensors of the CPU; factors are float32, what is added up exactly float64."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._weighted_block_sum = _function(library, "weighted_block_sum", "pppiiiipp", threads=True)
        self._pack_matrix = _function(library, "pack_matrix", "piicp")
        self._rows_times = _function(library, "rows_times", "piipippcfp", threads=True)
        self._product_norms = _function(library, "product_norms", "ppiiiiiippp", threads=True)
        self._weighted_row_sum = _function(library, "weighted_row_sum", "ppiip")
        self._add_kinds = _function(library, "add_kinds", "piiiiipp", threads=True)
        self._box_muller = _function(library, "box_muller", "ppipp", threads=True)

    def pack(self, matrix: Tensor, *, transposed: bool, space: Tensor) -> PackedMatrix:
        """A matrix, or its transpose, as `rows_times` reads it; `space` holds `PackedMatrix.size(matrix)` floats."""
        width, inner = matrix.shape if transposed else matrix.shape[::-1]
        if space.numel() < PackedMatrix.size(matrix):
            raise ValueError("too little space for this matrix")
        self._pack_matrix(_at(matrix), inner, width, int(transposed), _at(space))
        return PackedMatrix(space, inner, width)

    def rows_times(
        self,
        rows: Tensor,
        matrix: PackedMatrix,
        *,
        out: Tensor,
        bias: Tensor | None = None,
        leaky: bool = False,
        state: Tensor | None = None,
        slope: float = 1.0,
    ) -> Tensor:
        """Rows (..., inner) times the matrix, + bias, then LeakyReLU (leaky) or times its slope at `state`.

        A row's result depends on nothing but the row. `state` may be `out` itself; `rows` may not.
        """
        count, known = rows.numel() // matrix.inner, {rows.dtype, out.dtype, matrix.strips.dtype}
        if rows.shape[-1] != matrix.inner or out.numel() != count * matrix.width or known != {torch.float32}:
            raise ValueError("rows and results that fit the matrix")
        if state is not None and state.shape != out.shape:
            raise ValueError("a state for every result")
        ends = (None if part is None else _at(part) for part in (bias, state))
        self._rows_times(
            _at(rows),
            count,
            matrix.inner,
            _at(matrix.strips),
            matrix.width,
            *ends,
            int(leaky),
            slope,
            _at(out),
            _threads(),
        )
        return out

    def weighted_block_sum(self, left: Tensor, right: Tensor, weights: Tensor, workspace: Workspace) -> Tensor:
        """Σ_k left_kᵀ diag(weights) right_k (out, in) in float32; as `block_sums.sum_in_blocks`, with its bound on rounding.

        left (kinds, P, out), right (kinds, P, in), weights (P,). A row of weight 0 adds nothing, whatever it holds.
        """
        kinds, padded, height = left.shape
        width = right.shape[2]
        if padded % BLOCK_ROWS or right.shape[:2] != left.shape[:2] or weights.shape != (padded,):
            raise ValueError("factors and weights of whole blocks of rows")
        if {left.dtype, right.dtype, weights.dtype} != {torch.float32}:
            raise ValueError("factors and weights in float32")
        threads = _threads()
        tall, wide = height + _TALL, width + _WIDE
        each = tall * wide + BLOCK_ROWS * (tall + wide)
        space = workspace.take("packed rows", (threads * each + 8,), like=left)
        total = left.new_empty(height, width)
        places = (_at(part) for part in (left, right, weights))
        self._weighted_block_sum(*places, kinds * padded, padded, height, width, _at(total), _at(space), threads)
        return total

    def product_norms(self, left: Tensor, right: Tensor, units: int, rows_per_unit: int) -> Tensor:
        """(3, U) float64: of Σ_k left_k right_kᵀ the squared norm, Σ_k ‖left_k‖‖right_k‖, and the longest factor, squared.

        left (kinds, P, out), right (kinds, P, in); rank kinds · rows_per_unit, at most LARGEST_RANK.
        """
        kinds, padded, height = left.shape
        if kinds * rows_per_unit > LARGEST_RANK or right.shape[:2] != left.shape[:2] or units * rows_per_unit > padded:
            raise ValueError("factors of units of moderate rank")
        found = left.new_empty(3, units, dtype=torch.float64)
        sizes = (kinds, padded, height, right.shape[2], units, rows_per_unit)
        self._product_norms(_at(left), _at(right), *sizes, *(_at(part) for part in found), _threads())
        return found

    def weighted_row_sum(self, rows: Tensor, weights: Tensor) -> Tensor:
        """Σ_i weights_i rows_i (d,) in float64; a row of weight 0 adds nothing, whatever it holds."""
        count, size = rows.shape
        total = rows.new_empty(size, dtype=torch.float64)
        kept = weights.to(torch.float64).contiguous()
        if kept.shape != (count,):
            raise ValueError("one weight for every row")
        self._weighted_row_sum(_at(rows), _at(kept), count, size, _at(total))
        return total

    def add_kinds(self, terms: Tensor, *, minus: Sequence[int], out: Tensor) -> Tensor:
        """Out (P, d) = Σ_k ± terms_k of terms (kinds, P, d), `minus` for some kinds; returns the norms (P,) in float64."""
        kinds, padded, size = terms.shape
        if out.shape != terms.shape[1:]:
            raise ValueError("one sum for every row")
        squares = terms.new_empty(padded, dtype=torch.float64)
        signs = sum(1 << kind for kind in minus)
        self._add_kinds(_at(terms), kinds, padded, padded, size, signs, _at(out), _at(squares), _threads())
        return squares.sqrt_()

    def box_muller(self, words: Tensor, cosines: Tensor, sines: Tensor) -> None:
        """Standard normals from the low 53 bits of words: (2N,) int64 -> (N,) float64 twice."""
        pairs = len(cosines)
        if len(words) != 2 * pairs or len(sines) != pairs or words.dtype != torch.int64:
            raise ValueError("two words for every pair")
        self._box_muller(_at(words), _at(words[pairs:]), pairs, _at(cosines), _at(sines), _threads())


def kernels(device: torch.device, dtype: torch.dtype = torch.float32) -> Kernels | None:
    """The compiled functions, where they know this kind of tensor and this machine can compile them."""
    if device.type != "cpu" or dtype != torch.float32 or _switched_off:
        return None
    return _compiled()


@contextmanager
def without_kernels() -> Iterator[None]:
    """As on a machine without a compiler."""
    global _switched_off  # noqa: PLW0603
    before, _switched_off = _switched_off, True
    try:
        yield
    finally:
        _switched_off = before


@cache
def _compiled() -> Kernels | None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        logger.warning("no C compiler: private steps use torch's operations, which take longer")
        return None
    with tempfile.TemporaryDirectory(prefix="imprimatur-kernels-") as folder:
        library = Path(folder) / "kernels.so"
        for flags in FLAGS:
            # -fno-math-errno and -fno-trapping-math change no number; they let square roots run side by side.
            command = [compiler, "-O3", "-fno-math-errno", "-fno-trapping-math", *flags, "-shared", "-fPIC"]
            command += ["-o", str(library), str(SOURCE)]
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_SECONDS)  # noqa: S603
                return Kernels(ctypes.CDLL(str(library)))
            except (OSError, subprocess.SubprocessError) as error:
                refusal = error
    logger.warning("the C compiler failed: private steps use torch's operations, which take longer: %s", refusal)
    return None


def _function(library: ctypes.CDLL, name: str, arguments: str, *, threads: bool = False) -> ctypes._NamedFuncPointer:
    function = library[name]
    argtypes: list[Any] = [_KINDS[kind] for kind in arguments] + [ctypes.c_int] * threads
    function.argtypes = argtypes
    function.restype = None
    return function


def _threads() -> int:
    return torch.get_num_threads()


def _at(tensor: Tensor) -> int:
    if not tensor.is_contiguous():
        raise ValueError("a contiguous tensor is needed")
    return tensor.data_ptr()
