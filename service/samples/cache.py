"""The samplers that were used last, and loading what samples need ahead of the first.

Libraries that draw and write rows are loaded once a sample is to be expected: a service without releases does not need them.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import TYPE_CHECKING

from service.base.caching import BoundedCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.samples.samplers import Sampler

MOST_BYTES = 48 << 20
"""Of samplers in one process. One that is larger by itself is loaded for every sample."""
COPIES, SESSION_BYTES = 3, 1 << 20
"""What a runtime holds of a network's file, and beside it, at most (measured)."""

_ALL_OF_SAMPLES = "service.samples.streams"


def expect_samples() -> None:
    """Load the libraries that samples need, if that has not been done, in a thread of its own: a third of a second.

    Not with the process: they take 100 MiB.
    """
    if _ALL_OF_SAMPLES not in sys.modules:
        load, arguments = importlib.import_module, (_ALL_OF_SAMPLES,)
        threading.Thread(target=load, args=arguments, name="expect-samples", daemon=True).start()


class SamplerCache:
    """The samplers used last, by bundle key, as many as fit into memory. Threads may share it; a key's bundle never changes."""

    def __init__(self, load: Callable[[str], bytes], *, most_bytes: int = MOST_BYTES) -> None:
        self._load = load
        self._samplers: BoundedCache[Sampler] = BoundedCache(most_bytes)

    def get(self, key: str) -> Sampler:
        """The sampler of a bundle, loaded at its first use."""
        if (known := self._samplers.get(key)) is not None:
            return known[0]
        from service.samples.samplers import network_bytes, sampler_from_bundle  # noqa: PLC0415 - see the module's first lines

        # Outside any lock: others need not wait; loading twice does no harm.
        bundle = self._load(key)
        sampler = sampler_from_bundle(bundle)
        kept_bytes = sampler.most_kept_bytes if hasattr(sampler, "most_kept_bytes") else 0
        self._samplers.put(key, sampler, SESSION_BYTES + COPIES * network_bytes(bundle) + kept_bytes)
        return sampler
