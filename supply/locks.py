"""requirements/*.txt: every file of every pinned version by its hash, for `pip install --require-hashes`.

development.txt   all of constraints.txt but torch (Makefile)
service.txt       what the image of API and relay needs of it
worker.txt        what the image of a worker needs of it
documents.txt     what the stage of the images needs that builds the documents
torch.txt         torch, the files of the index
torch-cpu.txt     torch, CPU builds that are known; apart, because pip prefers a file whose hash an index names
cuda.txt          what a torch of the index needs besides, on Linux

The hashes are the index's, read by uv, which downloads no file for them.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from supply.closure import CUDA, ROOT, closure, pins

FOLDER = ROOT / "requirements"
IMAGES = ("service", "worker", "documents")
BUILD_TOOLS = ("setuptools",)
"""Builds our own two distributions, without an isolated environment whose contents no hash covers."""
CPU_BUILDS = {
    "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl": "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
}
"""Of the index for CPU builds; others are added from there, with `pip hash`."""


def make(uv: Path) -> None:
    """Write all of them."""
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    torch = next(line for line in pinned if line.startswith("torch=="))
    others = [line for line in pinned if line and not line.startswith(("#", "torch=="))]
    whole = _compiled(uv, [*others, *BUILD_TOOLS], "--no-deps")
    blocks = dict(_blocks(whole))
    _write("development.txt", "all of constraints.txt but torch", blocks)
    for part in IMAGES:
        names = [name for name in closure(part) if name not in {"torch", *BUILD_TOOLS}]
        _write(f"{part}.txt", f"the image of the {part}", {name: blocks[name] for name in (*names, *BUILD_TOOLS)})
    of_torch = dict(_blocks(_compiled(uv, [torch], "--constraint", str(ROOT / "constraints.txt"))))
    _write("torch.txt", "torch, of the index", {"torch": of_torch["torch"]})
    known = "".join(f" \\\n    --hash=sha256:{value}" for value in CPU_BUILDS.values())
    _write("torch-cpu.txt", "torch, CPU builds that supply/locks.py knows", {"torch": f"{torch}+cpu{known}\n"})
    cuda = {name: block for name, block in of_torch.items() if CUDA.fullmatch(name)}
    _write("cuda.txt", "what a torch of the index needs on Linux", cuda)


def faults() -> list[str]:
    """Pins that the lock files lack, or have in another version, and requirements without a hash."""
    found = []
    locked = {file.name: dict(_blocks(file.read_text(encoding="utf-8"))) for file in sorted(FOLDER.glob("*.txt"))}
    versions = {
        name: block.split("==")[1].split()[0]
        for name, block in {**locked["development.txt"], **locked["torch.txt"]}.items()
    }
    found += [
        f"{name} is {version} in constraints.txt, {versions.get(name)} in requirements/: make locks"
        for name, version in pins().items()
        if versions.get(name) != version
    ]
    for file, blocks in locked.items():
        found += [f"{file}: {name} has no hash" for name, block in blocks.items() if "--hash=sha256:" not in block]
        found += [
            f"{file}: {name} is not the one of development.txt"
            for name, block in blocks.items()
            if file.removesuffix(".txt") in IMAGES and block != locked["development.txt"].get(name)
        ]
    for part in IMAGES:
        missing = set(closure(part)) - set(locked[f"{part}.txt"]) - {"torch"}
        found += [f"{part}.txt lacks {name}: make locks" for name in sorted(missing)]
    return found


def _compiled(uv: Path, lines: list[str], *options: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        wanted, made = Path(folder, "wanted.in"), Path(folder, "made.txt")
        wanted.write_text("\n".join(lines) + "\n", encoding="utf-8")
        index = os.environ.get("PIP_INDEX_URL")
        environment = os.environ | ({"UV_DEFAULT_INDEX": index} if index else {})
        command = [str(uv), "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--python-version", "3.11"]
        command += ["--no-annotate", "--no-header", *options, str(wanted), "--output-file", str(made)]
        subprocess.run(command, check=True, env=environment)
        return made.read_text(encoding="utf-8")


def _blocks(text: str) -> list[tuple[str, str]]:
    return [
        (match[1], match[0])
        for match in re.finditer(r"^([a-z0-9][a-z0-9.-]*)==[^\n]*\n(?:    --hash[^\n]*\n?)*", text, re.MULTILINE)
    ]


def _write(name: str, what: str, blocks: dict[str, str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    head = f"# {what[0].upper()}{what[1:]}, by hash. Made by `make locks`; do not edit.\n"
    (FOLDER / name).write_text(
        head + "".join(block.rstrip("\n") + "\n" for _, block in sorted(blocks.items())), encoding="utf-8"
    )
