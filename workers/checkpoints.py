"""What a training run needs to continue: tensors as safetensors, the rest as JSON beside them. No pickle.

Everything in a checkpoint has been noised or is public. The state of the noise is never saved: steps that run again
after a crash draw fresh noise.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from safetensors.torch import load, save
from torch import Tensor

from workers.numerics.adam import Adam

FORMAT = "1"


class CheckpointStore(Protocol):
    """Where the one, latest checkpoint of a run is kept."""

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
    return {f"{prefix}.{name}": value for name, value in module.state_dict().items()}


def restore_module(module: torch.nn.Module, tensors: dict[str, Tensor], prefix: str) -> None:
    start = f"{prefix}."
    module.load_state_dict({name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)})
