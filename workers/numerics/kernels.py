"""The loops of the C sources as functions on tensors; where they cannot be compiled the callers use torch.

What is computed is the same either way up to rounding, and every bound on rounding covers both.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from workers.numerics.compiling import DEEPEST, HANDED_OVER, ROWS_AT_ONCE, compile_library
from workers.numerics.discrete_gaussian import GUARD, GUIDE_BITS, WORD_BITS, Table
from workers.numerics.workspace import Workspace


class Layers(Protocol):
    """A perceptron: weights W_1 … W_L, W_L with a single row; biases b_1 … b_{L-1}; LeakyReLU's slope."""

    @property
    def weights(self) -> Sequence[Tensor]: ...
    @property
    def biases(self) -> Sequence[Tensor]: ...
    @property
    def slope(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Rows:
    """What the critic sees of U units of R rows each; those of a unit side by side. Float32, present bool."""

    fake: Tensor  # (U·R, d_0)
    real: Tensor  # (U·R, d_0)
    mix: Tensor  # (U·R,)
    present: Tensor  # (U·R,)
    units: int
    rows_per_unit: int


@dataclass(frozen=True, slots=True)
class ClippingRule:
    """Tensor m of a unit times min(1, largest_norms[group_of[m]] / norm of the unit's tensors of that group)."""

    group_of: Sequence[int]
    largest_norms: Sequence[float]
    smallest_factor: float
    """A factor below it is 0."""


@dataclass(frozen=True, slots=True)
class Limits:
    """As the constants of the same names in `workers.mechanism`."""

    largest_norm: float
    largest_cancellation: float
    float32_cancellation: float


class Kernels:
    """The compiled functions, on contiguous tensors of the CPU; factors are float32, what is added up exactly float64."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._space_for = library.space_for
        self._space_for.argtypes, self._space_for.restype = [ctypes.POINTER(_Critic), ctypes.c_int], ctypes.c_long
        self._gradients = library.perceptron_gradients
        self._gradients.argtypes = [
            *(ctypes.POINTER(_Critic), ctypes.POINTER(_Draw), ctypes.c_int, ctypes.c_float),
            *(ctypes.POINTER(_Weighting), ctypes.POINTER(_Limits)),
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int),
        ]
        self._gradients.restype = None
        self._discrete_gaussian = _declared(library.discrete_gaussian, "tppplpp", ctypes.c_long)
        self._squared_lengths = _declared(library.squared_lengths, "pllpi")
        self._gram_space = _declared(library.gram_space, "li", ctypes.c_long)
        self._gram_norms = _declared(library.gram_norms, "plplllpppi")
        self._product_space = _declared(library.product_space, "lli", ctypes.c_long)
        self._add_products = _declared(library.add_products, "plplllplppi")

    def perceptron_gradients(
        self,
        critic: Layers,
        rows: Rows,
        *,
        paired: bool,
        gradient_penalty: float,
        limits: Limits,
        workspace: Workspace,
        weighting: ClippingRule | Tensor | None = None,
        sums: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Norms (U, M) float64 and who contributes (U,) bool; adds the weighted gradients to `sums`, where there are any.

        M = 2L - 1 tensors in the order W_1, b_1, …, W_L, one after the other in `sums` (float64). `weighting` is by
        norms, or a tensor (U, M) float64.
        """
        _require_fit(critic, rows)
        weights, biases = critic.weights, critic.biases
        norms = rows.mix.new_empty(rows.units, 2 * len(weights) - 1, dtype=torch.float64)
        contributes = rows.present.new_empty(rows.units)
        rule = _weighting(weighting, norms)
        if sums is not None and (
            weighting is None or sums.dtype != torch.float64 or sums.numel() != _numbers(weights, biases)
        ):
            raise ValueError("weights, and sums in float64 with a place for every number of the critic")
        sizes = [weight.shape[1] for weight in weights]
        layers = _Critic(
            len(biases), (ctypes.c_long * len(sizes))(*sizes), _places(weights), _places(biases), critic.slope
        )
        places = (_at(part) for part in (rows.fake, rows.real, rows.mix, rows.present))
        draw = _Draw(*places, rows.units, rows.rows_per_unit)
        threads = torch.get_num_threads()
        space = workspace.take("perceptron", (self._space_for(layers, threads),), like=rows.fake)
        self._gradients(
            *(layers, draw, paired, gradient_penalty, rule, _Limits(*astuple(limits))),
            *(_at(norms), _at(contributes), None if sums is None else _at(sums), _at(space), threads),
        )
        return norms, contributes

    def squared_lengths(self, rows: Tensor) -> Tensor:
        """(U, d) float32 -> (U,) float64."""
        if rows.dim() != 2 or rows.dtype != torch.float32:
            raise ValueError("a matrix in float32")
        squared = rows.new_empty(len(rows), dtype=torch.float64)
        self._squared_lengths(_at(rows), *rows.shape, _at(squared), torch.get_num_threads())
        return squared

    def add_products(
        self, left: Tensor, right: Tensor, scale: Tensor, totals: Tensor, *, together: int, workspace: Workspace
    ) -> None:
        """Adds Σ_i scale_i left_iᵀ right_i to totals (out, in) float64, of (U, rank, out), (U, rank, in) and (U,) float32.

        The rows of `together` units are added up in float32, their sums in float64.
        """
        units, rank, height = _of_units(left, right)
        if (scale.shape, scale.dtype) != ((units,), torch.float32):
            raise ValueError("a scale for every unit, in float32")
        if (totals.shape, totals.dtype) != ((height, right.shape[2]), torch.float64):
            raise ValueError("totals of the products' shape, in float64")
        threads, together = torch.get_num_threads(), max(1, min(together, units))
        space = workspace.take("strips", (self._product_space(together * rank, height, threads),), like=left)
        self._add_products(
            *(_at(left), height, _at(right), right.shape[2], units, rank, _at(scale), together),
            *(_at(totals), _at(space), threads),
        )

    def gram_norms(self, left: Tensor, right: Tensor, workspace: Workspace) -> tuple[Tensor, Tensor]:
        """Of leftᵀ right, (U, rank, out) and (U, rank, in) in float32: the squared Frobenius norms (U,) float64.

        And the squared lengths of the rows of both, (2, U, rank) float64.
        """
        units, rank, height = _of_units(left, right)
        squared = left.new_empty(units, dtype=torch.float64)
        lengths = left.new_empty(2, units, rank, dtype=torch.float64)
        threads = torch.get_num_threads()
        space = workspace.take("gram", (self._gram_space(rank, threads),), like=squared)
        self._gram_norms(
            *(_at(left), height, _at(right), right.shape[2], units, rank),
            *(_at(squared), _at(lengths), _at(space), threads),
        )
        return squared, lengths

    def discrete_gaussian(
        self, table: Table, words: Tensor, offsets: Tensor | None, fractions: Tensor | None, values: Tensor
    ) -> list[int]:
        """Writes the values (n,) int64 that words decide; returns the places of the others.

        words (n,) int64; offsets likewise, or None where blocks hold one integer; fractions (n,) float64, or None for 0.
        A place that is left holds 0 where its word is undecided, and -1 where it is to be drawn again.
        """
        whole = [words, *([] if offsets is None else [offsets])]
        if {part.dtype for part in (*whole, values)} != {torch.int64} or len({len(part) for part in whole}) != 1:
            raise ValueError("as many offsets as words, in int64")
        if (offsets is None) != (table.block_bits == 0) or (fractions is None) != table.is_centred:
            raise ValueError("offsets where blocks hold several integers, fractions where the centre is no integer")
        if len(words) != len(values) or (
            fractions is not None and (fractions.shape, fractions.dtype) != (values.shape, torch.float64)
        ):
            raise ValueError("a word for every value, and a fraction in float64 where there are any")
        pending = (ctypes.c_int64 * len(values))()
        left = self._discrete_gaussian(
            _Table(
                *(_at(table.cumulative), _at(table.sure), _at(table.guide), WORD_BITS - GUIDE_BITS),
                *(table.buckets, table.first, table.block_bits, table.scale, -0.5 / table.variance, GUARD),
            ),
            *(_at(words), None if offsets is None else _at(offsets), None if fractions is None else _at(fractions)),
            *(len(values), _at(values), pending),
        )
        return pending[:left]


def kernels(device: torch.device, dtype: torch.dtype = torch.float32) -> Kernels | None:
    """The compiled functions, where they know this kind of tensor and this machine can compile them."""
    if device.type != "cpu" or dtype != torch.float32:
        return None
    return _compiled()


@cache
def _compiled() -> Kernels | None:
    if HANDED_OVER in os.environ:
        with suppress(OSError, ValueError):  # no such file, or no number
            return Kernels(ctypes.CDLL(f"/proc/self/fd/{int(os.environ[HANDED_OVER])}"))
    return compile_kernels()


def compile_kernels(*macros: str) -> Kernels | None:
    """Them anew, perhaps with macros; None, and a warning, where that is not possible."""
    with tempfile.TemporaryDirectory(prefix="imprimatur-kernels-") as folder:
        library = compile_library(Path(folder), *macros)
        return None if library is None else Kernels(ctypes.CDLL(str(library)))


class _Critic(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.c_long),
        ("sizes", ctypes.POINTER(ctypes.c_long)),
        ("weights", ctypes.POINTER(ctypes.c_void_p)),
        ("biases", ctypes.POINTER(ctypes.c_void_p)),
        ("slope", ctypes.c_float),
    )


class _Draw(ctypes.Structure):
    _fields_ = (
        ("fake", ctypes.c_void_p),
        ("real", ctypes.c_void_p),
        ("mix", ctypes.c_void_p),
        ("present", ctypes.c_void_p),
        ("units", ctypes.c_long),
        ("rows_per_unit", ctypes.c_long),
    )


class _Weighting(ctypes.Structure):
    _fields_ = (
        ("given", ctypes.c_void_p),
        ("group_of", ctypes.POINTER(ctypes.c_long)),
        ("largest_norms", ctypes.POINTER(ctypes.c_double)),
        ("groups", ctypes.c_long),
        ("smallest_factor", ctypes.c_double),
    )


class _Table(ctypes.Structure):
    _fields_ = (
        ("cumulative", ctypes.c_void_p),
        ("sure", ctypes.c_void_p),
        ("guide", ctypes.c_void_p),
        ("guide_shift", ctypes.c_long),
        ("buckets", ctypes.c_long),
        ("first", ctypes.c_long),
        ("block_bits", ctypes.c_long),
        ("scale", ctypes.c_double),
        ("minus_half_over_variance", ctypes.c_double),
        ("guard", ctypes.c_double),
    )


class _Limits(ctypes.Structure):
    _fields_ = tuple((field.name, ctypes.c_double) for field in fields(Limits))


def _require_fit(critic: Layers, rows: Rows) -> None:
    weights, biases = critic.weights, critic.biases
    sizes, count = [weight.shape[1] for weight in weights], rows.units * rows.rows_per_unit
    fits = 1 <= len(biases) == len(sizes) - 1 <= DEEPEST and 1 <= rows.rows_per_unit <= ROWS_AT_ONCE
    fits &= rows.fake.shape == rows.real.shape == (count, sizes[0])
    fits &= rows.mix.numel() == rows.present.numel() == count and rows.present.dtype == torch.bool
    fits &= [len(weight) for weight in weights] == [len(bias) for bias in biases] + [1] == [*sizes[1:], 1]
    if not fits or {part.dtype for part in (*weights, *biases, rows.fake, rows.real, rows.mix)} != {torch.float32}:
        raise ValueError("a perceptron and rows that fit it, in float32")


def _weighting(weighting: ClippingRule | Tensor | None, norms: Tensor) -> _Weighting:
    """As the library takes it; a tensor must outlive the call, arrays are kept by the structure."""
    if weighting is None:
        return _Weighting()
    if isinstance(weighting, Tensor):
        if weighting.shape != norms.shape or weighting.dtype != norms.dtype:
            raise ValueError("one weight for every tensor of every unit")
        return _Weighting(given=_at(weighting))
    tensors, groups = norms.shape[1], len(weighting.largest_norms)
    if len(weighting.group_of) != tensors or max(weighting.group_of) >= groups:
        raise ValueError("one group for every tensor")
    group_of = (ctypes.c_long * tensors)(*weighting.group_of)
    return _Weighting(None, group_of, _doubles(weighting.largest_norms), groups, weighting.smallest_factor)


def _doubles(numbers: Sequence[float]) -> ctypes.Array[ctypes.c_double]:
    return (ctypes.c_double * len(numbers))(*numbers)


def _places(tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(tensors))(*map(_at, tensors))


def _numbers(*tensors: Sequence[Tensor]) -> int:
    return sum(tensor.numel() for some in tensors for tensor in some)


def _of_units(left: Tensor, right: Tensor) -> torch.Size:
    """The shape of left (U, rank, out), beside right (U, rank, in)."""
    if left.shape[:2] != right.shape[:2] or {left.dtype, right.dtype} != {torch.float32}:
        raise ValueError("as many rows of both for every unit, in float32")
    return left.shape


def _declared(function: Any, arguments: str, result: Any = None) -> Any:
    """A function of the library whose arguments are pointers (p), longs (l), ints (i) and tables (t)."""
    kinds = {"p": ctypes.c_void_p, "l": ctypes.c_long, "i": ctypes.c_int, "t": ctypes.POINTER(_Table)}
    function.argtypes, function.restype = [kinds[argument] for argument in arguments], result
    return function


def _at(tensor: Tensor) -> int:
    if not tensor.is_contiguous():
        raise ValueError("a contiguous tensor is needed")
    return tensor.data_ptr()
