"""What a training run needs to continue: tensors as safetensors, the rest as JSON beside them. No pickle.

Everything in a checkpoint is noisy or public. The state of the noise is never saved: steps that run again
after a crash draw fresh noise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from safetensors.torch import load, save
from torch import Tensor

from workers.numerics.adam import Adam
from workers.plan import Plan, StepNotOnPlan

FORMAT = "1"


class CheckpointStore(Protocol):
    """A store of the one, latest checkpoint of a run."""

    def put(self, checkpoint: bytes) -> None: ...

    def get(self) -> bytes | None: ...


@dataclass(frozen=True)
class Checkpoint:
    """Named tensors, and values that JSON can hold."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]

    def to_bytes(self) -> bytes:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()}
        return save(tensors, metadata={"format": FORMAT, "values": json.dumps(self.values, allow_nan=False)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Checkpoint:
        return cls(load(data), cls.values_of(data))

    @staticmethod
    def values_of(data: bytes) -> dict[str, Any]:
        """The values alone, without the tensors."""
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        values: dict[str, Any] = json.loads(header["__metadata__"]["values"])
        return values


class Kept(Protocol):
    """A run whose checkpoints say where it stands on its price list, and whether a test seed touched it."""

    plan: Plan
    is_private: bool


def position_of(run: Kept) -> dict[str, Any]:
    """What a checkpoint says of the run's plan: its digest, the position, and whether all randomness was private."""
    return {"plan": run.plan.digest(), "position": run.plan.position, "is_private": run.is_private}


def resume(run: Kept, values: Mapping[str, Any]) -> None:
    """Put the run's plan where a checkpoint with these values was taken; `StepNotOnPlan` for one of another price list."""
    if values["plan"] != run.plan.digest():
        raise StepNotOnPlan("this checkpoint belongs to another price list; start the release again")
    run.plan.resume(values["position"])
    # A run that was touched by a test seed stays marked.
    run.is_private = run.is_private and bool(values["is_private"])


def tensors_of(run: object, names: Iterable[str]) -> dict[str, Tensor]:
    """The tensors of the networks and optimisers that are attributes of these names."""
    found: dict[str, Tensor] = {}
    for name in names:
        part: torch.nn.Module | Adam = getattr(run, name)
        found |= adam_tensors(part, name) if isinstance(part, Adam) else module_tensors(part, name)
    return found


def put_back(run: object, names: Iterable[str], tensors: dict[str, Tensor]) -> None:
    """Put back the tensors that `tensors_of` took."""
    for name in names:
        part: torch.nn.Module | Adam = getattr(run, name)
        if isinstance(part, Adam):
            restore_adam(part, tensors, name)
        else:
            restore_module(part, tensors, name)


def adam_tensors(optimizer: Adam, prefix: str) -> dict[str, Tensor]:
    """Adam's moments and step counts, by the parameters' places."""
    return {
        f"{prefix}.{place}.{name}": value
        for name, values in optimizer.state.items()
        for place, value in enumerate(values)
    }


def restore_adam(optimizer: Adam, tensors: dict[str, Tensor], prefix: str) -> None:
    """Put back what `adam_tensors` took; where there is nothing (no step had been taken) the optimizer stays as it is."""
    for key, value in adam_tensors(optimizer, prefix).items():
        if key in tensors:
            value.copy_(tensors[key])


def module_tensors(module: torch.nn.Module, prefix: str) -> dict[str, Tensor]:
    """Parameters and buffers of a module, under names that begin with the prefix."""
    return {f"{prefix}.{name}": value for name, value in module.state_dict().items()}


def restore_module(module: torch.nn.Module, tensors: dict[str, Tensor], prefix: str) -> None:
    """Put back what `module_tensors` took."""
    start = f"{prefix}."
    module.load_state_dict({name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)})
