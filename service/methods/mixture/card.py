"""What people are told about `mixture`."""

from __future__ import annotations

from service.methods.interface import Card, Measured
from service.privacy.events import CELL_MEANS, CELL_MOMENTS, CLASS_MEANS, LEANINGS, SHARED_MOMENTS, TONES

_IN_SUMS = "{rows} in counts, {rows}·R in sums, R the clip norm"

RELEASES = {
    CLASS_MEANS: Measured("records and sums of each class", _IN_SUMS),
    CELL_MEANS: Measured("records and sums of each cell of a class", _IN_SUMS),
    SHARED_MOMENTS: Measured("sum of products of two coefficients over all records", "{rows}·R², R the clip norm"),
    CELL_MOMENTS: Measured(
        "records, sums and sums of products of each class or cell",
        "{rows} in counts, {rows}·R in sums, {rows}·R² in products, R the clip norm",
    ),
    TONES: Measured("histogram of the numbers of all images", "{rows} times how many numbers an image has"),
    LEANINGS: Measured("records in each interval of slant", "{rows} in all counts"),
}

CARD = Card(
    summary="The moments of the images of every class are measured once, with noise, and a mixture of Gaussians is made from them.",
    makes="a mixture of Gaussians, written as a network, that was made from noisy moments of",
    source="Dwork et al. 2014 (Analyze Gauss), for moments of clipped records; docs/results/images.md",
    paper_holds="Nothing is trained on images: the whole analysis is that of Gaussian releases of clipped sums (docs/privacy.md).",
    releases=RELEASES,
)
