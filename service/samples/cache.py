"""The samplers that were used last, and loading what samples need ahead of the first.

Libraries that draw and write rows are loaded once a sample is to be expected: a service without releases does not need them.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.samples.samplers import Sampler

_ALL_OF_SAMPLES = "service.samples.streams"


def expect_samples() -> None:
    """Load the libraries that samples need, if that has not been done, in a thread of its own: a third of a second.

    Not with the process: they take 100 MiB.
    """
    if _ALL_OF_SAMPLES not in sys.modules:
        load, arguments = importlib.import_module, (_ALL_OF_SAMPLES,)
        threading.Thread(target=load, args=arguments, name="expect-samples", daemon=True).start()


class SamplerCache:
    """The last few samplers used, by bundle key. Threads may share it; a key's bundle never changes."""

    def __init__(self, load: Callable[[str], bytes], *, capacity: int = 16) -> None:
        self._load = load
        self._capacity = capacity
        self._samplers: OrderedDict[str, Sampler] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> Sampler:
        """The sampler of a bundle, loaded at its first use."""
        with self._lock:
            if key in self._samplers:
                self._samplers.move_to_end(key)
                return self._samplers[key]
        from service.samples.samplers import sampler_from_bundle  # noqa: PLC0415 - see the module's first lines

        # Outside the lock: others need not wait; loading twice does no harm.
        sampler = sampler_from_bundle(self._load(key))
        with self._lock:
            self._samplers[key] = sampler
            while len(self._samplers) > self._capacity:
                self._samplers.popitem(last=False)
        return sampler
