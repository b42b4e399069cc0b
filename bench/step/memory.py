"""Peak memory of a step: on the CPU each in a process of its own, on a GPU by what its allocator counts.

    python -m bench.step.memory SETTING KIND BATCH DEVICE

prints the bytes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import torch

from bench.step.steps import AUTOGRAD, BY_HAND, CONVOLUTIONS, PERCEPTRON, PRIVATE, VMAP, Setting
from workers.mechanism.secure_random import SecureRandom
from workers.numerics.kernels import kernels

SETTINGS = {setting.name: setting for setting in (PERCEPTRON, CONVOLUTIONS)}
PEAK_RESET = "5"
"""What sets the kernel's mark of the largest resident size back (proc(5), clear_refs)."""


def memory_lines(settings: Iterable[Setting], device: torch.device, *, quick: bool) -> list[str]:
    """A table of peaks and their ratio to plain autograd."""
    lines = ["| critic | batch | step | peak memory, MiB | / autograd |", "|---|---|---|---|---|"]
    for setting in settings:
        for size in setting.batches[1:2] if quick else setting.batches[1:]:
            peaks = {}
            for kind in (AUTOGRAD, BY_HAND, PRIVATE) if quick else (AUTOGRAD, BY_HAND, PRIVATE, VMAP):
                peaks[kind] = (_peak_of_a_process if device.type == "cpu" else peak)(setting.name, kind, size, device)
                ratio = peaks[kind] / peaks[AUTOGRAD]
                lines.append(f"| {setting.name} | {size} | {kind} | {peaks[kind] / 2**20:.0f} | {ratio:.2f} |")
    return lines


def _peak_of_a_process(setting_name: str, kind: str, size: int, device: torch.device) -> int:
    command = [sys.executable, "-m", "bench.step.memory", setting_name, kind, str(size), device.type]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak(setting_name: str, kind: str, size: int, device: torch.device) -> int:
    """Bytes above what was held before, over three steps."""
    setting = SETTINGS[setting_name]
    warm = setting.make_step(AUTOGRAD, device)
    warm(setting.make_batch(2, device))  # libraries take what they take
    del warm
    kernels(device)  # so do a compiler's driver
    SecureRandom().normals(2)  # and the cipher's
    batch = setting.make_batch(size, device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    else:
        Path("/proc/self/clear_refs").write_text(PEAK_RESET)
        before = _status("VmRSS")
    step = setting.make_step(kind, device)
    for _ in range(3):
        step(batch)
    return (torch.cuda.max_memory_allocated() if device.type == "cuda" else _status("VmHWM")) - before


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise ValueError(name)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(peak(sys.argv[1], sys.argv[2], int(sys.argv[3]), torch.device(sys.argv[4])))
