"""How many pictures a second a ZIP of PNG files is taken in at, and whether twice as many take twice as long.

    python -m bench.pictures [--pictures 20000] [--runs 3] [--quick]

Each run is an upload as the API has it when the body has ended, read by the process that reads uploads, whose start is
counted. On a busy host the last column says more: the reading process lets others go first. "Empty files" is a ZIP of that many members without content, which is refused.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from bench.ingest import machine
from bench.pages import keep
from service.base.errors import InvalidFile
from service.domain.image_schema import parse_schema
from service.intake.ingest import ingest_table
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile

SIDE = 28
SCHEMA = {"type": "image", "height": SIDE, "width": SIDE, "channels": 1, "classes": 10}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="2,000 pictures, one run, no file of results")
    arguments = parser.parse_args()
    count, runs = (2_000, 1) if arguments.quick else (arguments.pictures, arguments.runs)
    lines = []
    for what, content, number in (
        ("pictures", pictures(count), count),
        ("twice as many", pictures(2 * count), 2 * count),
        ("empty files", empty(15 * count), 15 * count),
    ):
        found = [timed(content) for _ in range(runs)]
        seconds, processor = (statistics.median(each) for each in zip(*found, strict=True))
        lines.append(
            f"| {what} | {number:,} | {seconds:.2f} | {processor:.2f} | {number / seconds:,.0f} | {number / processor:,.0f} |"
        )
        print(lines[-1], flush=True)
    head = [
        f"`python -m bench.pictures --pictures {count} --runs {runs}`; {machine()}. Medians; {SIDE} × {SIDE} grey PNG.",
        "",
        "| ZIP of | files | seconds | CPU s | files/s | files/CPU s |",
        "|---|---|---|---|---|---|",
    ]
    if not arguments.quick:
        keep("pictures", "\n".join([*head, *lines]) + "\n")


def pictures(count: int) -> bytes:
    """Random pictures and their labels file."""
    generator, buffer = np.random.default_rng(0), io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for number in range(count):
            picture = io.BytesIO()
            pixels = generator.integers(0, 256, (SIDE, SIDE), dtype=np.uint8)
            Image.fromarray(pixels).save(picture, "PNG", compress_level=1)
            archive.writestr(f"{number:07}.png", picture.getvalue())
        lines = [f"{number:07}.png,{number % 10}" for number in range(count)]
        archive.writestr("labels.csv", "\n".join(["file,label", *lines]))
    return buffer.getvalue()


def empty(count: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for number in range(count):
            archive.writestr(f"{number:07}.png", b"")
    return buffer.getvalue()


def timed(content: bytes) -> tuple[float, float]:
    """Wall clock and processor seconds, the reading process's among them."""
    with tempfile.TemporaryDirectory(prefix="imprimatur-bench-") as folder, SealedFile.create(Path(folder)) as upload:
        upload.append(content)
        began, processor = time.perf_counter(), sum(os.times()[:4])
        try:
            ingest_table(
                upload,
                parse_schema(SCHEMA),
                privacy_unit=None,
                limits=IngestLimits(),
                scratch_dir=Path(folder),
                fingerprint_key=os.urandom(32),
            ).canonical.close()
        except InvalidFile as refusal:
            if "empty files" not in refusal.detail:
                raise
        return time.perf_counter() - began, sum(os.times()[:4]) - processor


if __name__ == "__main__":
    main()
