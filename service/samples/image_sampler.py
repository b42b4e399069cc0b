"""Draws synthetic images from a published image generator. Needs numpy and onnxruntime, nothing else.

    python sample.py --rows 1000 -o images.npz
    python sample.py --rows 100 --seed 7 --where label=3 -o threes.npz

An image: draw one of the generator's components (each belongs to one class) and noise z ~ N(0, I); the network turns them
into pixels between 0 and 1, which are written as whole numbers from 0 to 255.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from service.base.messages import Message

Array = np.ndarray[Any, Any]

PIXELS_AT_A_TIME = 2**22  # bounds the memory of a draw
IMAGES_AT_A_TIME = (64, 4_096)


class ImageSamplingError(ValueError):
    """The request cannot be met; the message says why and what to do."""


class ImageSampler:
    """An image generator. Immutable: threads may share one."""

    def __init__(self, config: Mapping[str, Any], session: onnxruntime.InferenceSession) -> None:
        if config.get("format") != 1 or config.get("kind") != "image":
            raise ImageSamplingError(
                Message("config.json is not of a kind this sampler knows; use the sample.py of the same ZIP")
            )
        self.shape: tuple[int, int, int] = (config["height"], config["width"], config["channels"])
        self.classes: list[str] = config["classes"]
        self._session = session
        self._noise_dimension: int = config["noise_dimension"]
        self._component_labels: Array | None = None
        if config["condition"] is not None:
            self._component_labels = np.array(config["condition"]["labels"], dtype=np.int64)
            self._frequencies = np.array(config["condition"]["frequencies"], dtype=np.float64)
            self._one_a_run: bool = config["condition"]["one_a_run"]
        self.images_at_a_time = int(np.clip(PIXELS_AT_A_TIME // int(np.prod(self.shape)), *IMAGES_AT_A_TIME))

    @classmethod
    def from_files(cls, config: Mapping[str, Any], onnx_bytes: bytes, *, threads: int = 1) -> ImageSampler:
        """From the contents of config.json and generator.onnx; `threads` run the network."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        return cls(config, onnxruntime.InferenceSession(onnx_bytes, options, providers=["CPUExecutionProvider"]))

    def parse_where(self, text: str) -> int:
        """`label=NAME` (or `label:NAME`) as the class it means."""
        if not self.classes:
            raise ImageSamplingError(Message("these images have no labels to choose by"))
        name = text[len("label=") :] if text[: len("label=")] in {"label=", "label:"} else None
        if name not in self.classes:
            some = ", ".join(self.classes[:20])
            raise ImageSamplingError(
                Message("%(text)s is not label=CLASS; the classes are: %(classes)s", text=repr(text), classes=some)
            )
        return self.classes.index(name)

    def draws(
        self, rows: int, *, seed: int | None = None, label: int | None = None
    ) -> Iterator[tuple[Array, Array | None]]:
        """Chunks of pixels (n, height, width, channels) uint8 and labels (n,) uint16, `rows` in all, memory bounded.

        The same seed gives the same images, and fewer are the beginning of more; labels are None without classes.
        """
        if rows < 0 or (seed is not None and seed < 0):
            raise ImageSamplingError(Message("rows and seed must not be negative"))
        return self._draws(rows, np.random.Generator(np.random.PCG64(seed)), label)

    def grid(self, columns: int, *, seed: int | None = None, label: int | None = None) -> Array:
        """`columns` images of every class (or of one, or of none where there are no classes), a class a row.

        Returns (rows, columns, height, width, channels).
        """
        rng = np.random.Generator(np.random.PCG64(seed))
        wanted = [None] if not self.classes else range(len(self.classes)) if label is None else [label]
        return np.stack([self._draw(columns, rng, one)[0] for one in wanted])

    def _draws(self, rows: int, rng: np.random.Generator, label: int | None) -> Iterator[tuple[Array, Array | None]]:
        # Always whole chunks, cut at the end: that makes fewer images the beginning of more.
        for start in range(0, rows, self.images_at_a_time):
            pixels, labels = self._draw(self.images_at_a_time, rng, label)
            count = min(self.images_at_a_time, rows - start)
            yield pixels[:count], None if labels is None else labels[:count]

    def _draw(self, count: int, rng: np.random.Generator, label: int | None) -> tuple[Array, Array | None]:
        noise = rng.standard_normal((count, self._noise_dimension), dtype=np.float32)
        if self._component_labels is None:
            return self._run({"noise": noise}), None
        shares = (
            self._frequencies if label is None else np.where(self._component_labels == label, self._frequencies, 0.0)
        )
        if label is not None and not shares.sum() > 0.0:  # a class that was hardly there still has its components
            shares = (self._component_labels == label).astype(np.float64)
        component = rng.choice(len(shares), size=count, p=shares / shares.sum())
        labels = self._component_labels[component].astype(np.uint16) if self.classes else None
        if not self._one_a_run:
            return self._run({"noise": noise, "condition": component}), labels
        pixels = np.empty((count, *self.shape), dtype=np.uint8)
        for one in np.unique(component):
            rows = component == one
            pixels[rows] = self._run({"noise": noise[rows], "condition": np.array([one])})
        return pixels, labels

    def _run(self, inputs: Mapping[str, Array]) -> Array:
        (images,) = self._session.run(["images"], inputs)
        return np.rint(np.clip(images, 0.0, 1.0) * 255.0).astype(np.uint8)  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw synthetic images from the generator beside this file.")
    parser.add_argument("--rows", type=int, default=1_000, help="how many images (default 1000)")
    parser.add_argument("--seed", type=int, help="makes the draw repeatable; without it every draw is new")
    parser.add_argument("--where", metavar="label=CLASS", help="only images of this class")
    parser.add_argument("-o", "--output", type=Path, default=Path("images.npz"), help="file to write")
    arguments = parser.parse_args()
    if arguments.output.suffix != ".npz":  # to which numpy would add it
        parser.error(f"{arguments.output}: images are written as arrays of numpy; name a file that ends in .npz")
    folder = Path(__file__).resolve().parent
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    sampler = ImageSampler.from_files(config, (folder / "generator.onnx").read_bytes())
    try:
        label = None if arguments.where is None else sampler.parse_where(arguments.where)
        drawn = list(sampler.draws(arguments.rows, seed=arguments.seed, label=label))
    except ImageSamplingError as error:
        parser.error(str(error))
    arrays = {"images": np.concatenate([np.empty((0, *sampler.shape), np.uint8), *(pixels for pixels, _ in drawn)])}
    if sampler.classes:
        arrays["labels"] = np.concatenate(
            [np.empty(0, np.uint16), *(labels for _, labels in drawn if labels is not None)]
        )
    np.savez_compressed(arguments.output, allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
