"""Which distributions a part of the service brings along, from what is installed beside this file."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
OURS = {"imprimatur", "imprimatur-server"}
PARTS = {
    "client": ("imprimatur", ("registry", "verify")),
    "service": ("imprimatur-server", ()),
    "worker": ("imprimatur-server", ("worker",)),
    "embedded": ("imprimatur-server", ("embedded",)),
    "documents": ("imprimatur-server", ("documents",)),
    "development": ("imprimatur-server", ("worker", "embedded", "documents", "dev")),
}
"""Each with the distribution and the extras that it is installed by."""
CUDA = re.compile(r"cuda-.*|nvidia-.*|triton")
"""What a torch of the index brings on Linux, and a CPU build does not: left out, so that both have one closure."""


def closure(part: str) -> dict[str, Distribution]:
    """Every distribution that this part installs, ours apart, by its canonical name."""
    name, extras = PARTS[part]
    found: dict[str, Distribution] = {}
    todo = [(name, frozenset(extras))]
    seen = set()
    while todo:
        name, wanted = todo.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        found[name] = distribution(name)
        for text in found[name].requires or ():
            requirement = Requirement(text)
            needed = canonicalize_name(requirement.name)
            if any(_applies(requirement, extra) for extra in wanted or {""}) and not CUDA.fullmatch(needed):
                todo.append((needed, frozenset(requirement.extras)))
    return {name: found[name] for name in sorted(found) if name not in OURS}


def pins() -> dict[str, str]:
    """Name and version of every line of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.partition(" ;")[0].strip().split("==") for line in lines if line and not line.startswith("#"))


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})
