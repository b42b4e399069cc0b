"""Draws synthetic rows from a published table generator. Needs numpy and onnxruntime, nothing else.

    python sample.py --rows 1000
    python sample.py --rows 1000 --seed 7 --where CLASS:1 --format jsonl -o rows.jsonl

A row: draw noise z ~ N(0, I) and, for a conditional generator, the value of its condition column. The network turns
them into logits, side by side for all columns. Each other column is one independent draw from the softmax of its own
logits. A drawn cell is a category or a bin of a public grid. In a bin the value is one that many rows share, as often
as config.json says, or a uniform one. A row that the schema excludes gets other values. Rows are dealt random numbers
in blocks (`Dealt`), and rows of a mixture are chosen between two draws (`balance`), so that the tables of a sample vary
less than those of independent rows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from service.samples.table.base import SamplingError
from service.samples.table.sampler import TableSampler

WRITERS = {"csv": TableSampler.csv, "jsonl": TableSampler.jsonl}


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw synthetic rows from the generator beside this file.")
    parser.add_argument("--rows", type=int, default=1_000, help="how many rows (default 1000)")
    parser.add_argument("--seed", type=int, help="makes the draw repeatable; without it every draw is new")
    parser.add_argument(
        "--where", action="append", default=[], metavar="COLUMN:VALUE", help="only rows with this value"
    )
    parser.add_argument("--format", choices=list(WRITERS), default="csv")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    arguments = parser.parse_args()
    folder = Path(__file__).resolve().parent
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    sampler = TableSampler.from_files(config, (folder / "generator.onnx").read_bytes())
    try:
        where: dict[str, str] = {}
        for text in arguments.where:
            where.update(sampler.parse_where(text))
        pieces = WRITERS[arguments.format](sampler, arguments.rows, seed=arguments.seed, where=where)
        if arguments.output:
            with arguments.output.open("w", encoding="utf-8", newline="") as file:
                file.writelines(pieces)
        else:
            for piece in pieces:
                sys.stdout.buffer.write(piece.encode())
            sys.stdout.flush()
    except SamplingError as error:
        parser.error(str(error))
    except BrokenPipeError:  # the reader has seen enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
