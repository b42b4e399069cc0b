"""A device that is not the CPU: a GPU where there is one, and else one made of the CPU, which refuses what a GPU would refuse.

Tensors on `ELSEWHERE` hold a tensor of the CPU, on which every operation runs. As on a GPU, an operation on tensors of two devices
is an error, NumPy cannot look inside, and whatever asks `device.type == "cpu"` goes the other way. It says nothing of speed, of a
GPU's own rounding, or of kernels that only CUDA lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree, backend_registration
from torch.utils._python_dispatch import TorchDispatchMode

NAME = "elsewhere"
ATEN = torch.ops.aten
BETWEEN_DEVICES = (ATEN._to_copy.default, ATEN.copy_.default, ATEN._foreach_copy_.default)
INDEXED = (ATEN.index.Tensor, ATEN.index_put.default, ATEN.index_put_.default, ATEN._index_put_impl_.default)
"""Takes indices from the CPU for tensors anywhere."""
LITERALS = (torch.tensor, torch.as_tensor, torch.Tensor.new_tensor)

IS_A_GPU = torch.cuda.is_available()
"""torch takes one accelerator in a process, so the one made of the CPU must not be where a GPU is."""

if not IS_A_GPU:
    backend_registration._setup_privateuseone_for_python_backend(NAME)
ELSEWHERE = torch.device("cuda") if IS_A_GPU else torch.device(NAME, 0)


class MixedDevices(RuntimeError):
    """An operation on tensors of two devices."""


class There(Tensor):
    """A tensor on `ELSEWHERE`; `held` is what it stands for."""

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, held: Tensor) -> Self:
        made = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=ELSEWHERE,
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, operation: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(operation, args, kwargs or {})

    def tolist(self) -> Any:
        return self.held.tolist()


class _Operations(TorchDispatchMode):
    """Sees operations that make tensors, too."""

    def __torch_dispatch__(self, operation: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(operation, args, kwargs or {})


class _Literals(TorchFunctionMode):
    """Tensors of Python's numbers are made on the CPU and moved: torch makes them where no mode looks."""

    def __torch_function__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function not in LITERALS:
            return function(*args, **kwargs)
        device = kwargs.pop("device", None)
        if function is torch.Tensor.new_tensor:
            device = device or args[0].device
            args = (torch.empty(0, dtype=args[0].dtype), *args[1:])
        made = function(*args, **kwargs)
        return made if device is None else made.to(device)


@contextmanager
def elsewhere() -> Iterator[torch.device]:
    """Within it tensors can be made on and moved to the device it gives."""
    if IS_A_GPU:
        yield ELSEWHERE
        return
    with _Literals(), _Operations():
        yield ELSEWHERE


def brought_back(module: nn.Module) -> nn.Module:
    """Its tensors on the CPU, in place; `Module.cpu` cannot take a wrapper's place."""
    for part in module.modules():
        for name, tensor in part._parameters.items():
            if isinstance(tensor, There):
                part._parameters[name] = nn.Parameter(tensor.held.clone(), requires_grad=tensor.requires_grad)
        for name, buffer in part._buffers.items():
            if isinstance(buffer, There):
                part._buffers[name] = buffer.held.clone()
    return module


def _run(operation: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [leaf for leaf in _pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, There)]
    if there and operation not in (*BETWEEN_DEVICES, *INDEXED):
        for tensor in tensors:
            if not isinstance(tensor, There) and tensor.dim() > 0:
                raise MixedDevices(f"{operation}: {tuple(tensor.shape)} lies on the CPU")
    target = kwargs.get("device")
    if target is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    held_args, held_kwargs = _pytree.tree_map_only(There, lambda tensor: tensor.held, (args, kwargs))
    made = operation(*held_args, **held_kwargs)
    if operation is ATEN.copy_.default:
        return args[0]
    if not (there if target is None else torch.device(target).type == NAME):
        return made
    same = {id(tensor.held): tensor for tensor in there}  # in place, or into `out`

    def wrap(tensor: Tensor) -> Tensor:
        return same[id(tensor)] if id(tensor) in same else There(tensor)

    return _pytree.tree_map_only(Tensor, wrap, made)
