"""What one unit is called where it may be a part of an image."""

from __future__ import annotations


def part_in_words(unit_pixels: tuple[int, int] | None, height: int) -> str:
    """For certificates and forecasts; None: an image."""
    if unit_pixels is None:
        return "one image"
    rows, columns = unit_pixels
    part = "one column of pixels" if (rows, columns) == (height, 1) else f"one block of {rows} × {columns} pixels"
    return f"{part} of one image: neither an image nor a person (`units` counts images)"
