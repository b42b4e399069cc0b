"""Container images by digest: Dockerfile and docker-compose.yml name what was looked at, not what a tag has become."""

from __future__ import annotations

import re
import subprocess

from supply.closure import ROOT

FILES = (ROOT / "Dockerfile", ROOT / "docker-compose.yml")
PLACE = re.compile(
    r"^(?P<before>(?:FROM|\s+image:) +)(?P<image>[\w./-]+:[\w.-]+)(?:@(?P<digest>sha256:[0-9a-f]{64}))?(?P<after>.*)$",
    re.MULTILINE,
)
"""Images of others have a tag; ours, and earlier stages of the Dockerfile, have none."""


def images() -> dict[str, tuple[str, str]]:
    """File and image → the image with its tag, and its digest or ""."""
    found = {}
    for file in FILES:
        for match in PLACE.finditer(file.read_text(encoding="utf-8")):
            found[f"{file.name} {match['image']}"] = (match["image"], match["digest"] or "")
    return found


def faults() -> list[str]:
    """Images without a digest."""
    return [f"{place} has no digest: make digests" for place, (_, digest) in images().items() if not digest]


def pin_anew() -> None:
    """Ask the registries, by `docker buildx`, what the tags are now, and write that into both files."""
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        file.write_text(
            PLACE.sub(
                lambda match: f"{match['before']}{match['image']}@{_asked(match['image'])}{match['after']}", text
            ),
            encoding="utf-8",
        )


def _asked(image: str) -> str:
    command = ["docker", "buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}"]
    digest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        raise SystemExit(f"docker named no digest for {image}: {digest!r}")
    return digest
