"""The samplers that were used last, and loading what samples need ahead of the first.

Libraries that draw and write rows are loaded once a sample is to be expected: a service without releases does not need them.
"""

from __future__ import annotations

import importlib
import sys
import threading
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

from service.base.caching import BoundedCache

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from service.samples.samplers import Sampler

MOST_BYTES = 32 << 20
"""Of samplers in one process. One that is larger by itself is loaded for every sample."""
COPIES, SESSION_BYTES = 3, 1 << 20
"""What a runtime holds of a network's file, and beside it, at most (measured)."""

_ALL_OF_SAMPLES = "service.samples.streams"


def expect_samples() -> None:
    """Load the libraries that samples need, if that has not been done, in a thread of its own: a third of a second.

    Not with the process: they take 100 MiB.
    """
    if _ALL_OF_SAMPLES not in sys.modules:
        threading.Thread(target=load_all_of_samples, name="expect-samples", daemon=True).start()


def load_all_of_samples() -> None:
    """Load them now, if that has not been done."""
    if _ALL_OF_SAMPLES not in sys.modules:
        _load_arrow_alone()
        importlib.import_module(_ALL_OF_SAMPLES)


def _load_arrow_alone() -> None:
    """Pandas, where it is installed, would be imported with the first array: 45 MiB that nothing here uses."""
    if "pandas" in sys.modules:
        return
    hiding = _WithoutPandas()
    sys.meta_path.insert(0, hiding)
    try:
        importlib.import_module("pyarrow").array([])  # it looks for pandas once, unless a caller asks for a data frame
    finally:
        sys.meta_path.remove(hiding)


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /) -> None:  # noqa: ARG002 - as importlib calls it
        if fullname == "pandas":
            raise ModuleNotFoundError("this process does without pandas", name=fullname)


class SamplerCache:
    """The samplers used last, by bundle key, as many as fit into memory. Threads may share it; a key's bundle never changes."""

    def __init__(self, load: Callable[[str], bytes], *, most_bytes: int = MOST_BYTES) -> None:
        self._load = load
        self._samplers: BoundedCache[Sampler] = BoundedCache(most_bytes)

    def get(self, key: str) -> Sampler:
        """The sampler of a bundle, loaded at its first use."""
        if (known := self._samplers.get(key)) is not None:
            return known[0]
        load_all_of_samples()
        from service.samples.samplers import network_bytes, sampler_from_bundle  # noqa: PLC0415 - see the module's first lines

        # Outside any lock: others need not wait; loading twice does no harm.
        bundle = self._load(key)
        sampler = sampler_from_bundle(bundle)
        kept_bytes = sampler.most_kept_bytes if hasattr(sampler, "most_kept_bytes") else 0
        self._samplers.put(key, sampler, SESSION_BYTES + COPIES * network_bytes(bundle) + kept_bytes)
        return sampler
