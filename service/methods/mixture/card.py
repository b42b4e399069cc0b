"""What people are told about `mixture`."""

from __future__ import annotations

from service.methods.interface import Card, Measured
from service.methods.mixture.price import CELL_MEANS, CELL_MOMENTS, CLASS_MEANS, LEANINGS, SHARED_MOMENTS, TONES

_IN_SUMS = "{rows} in counts, {rows}·R in sums, R the clip norm"

RELEASES = {
    CLASS_MEANS: Measured("number of records and their sum, for each class", _IN_SUMS),
    CELL_MEANS: Measured("number of records and their sum, for each cluster of a class", _IN_SUMS),
    SHARED_MOMENTS: Measured("sums over all records of the products of two coefficients", "{rows}·R², R the clip norm"),
    CELL_MOMENTS: Measured(
        "number of records, their sum and the sum of their products, for each class or cluster",
        "{rows} in counts, {rows}·R in sums, {rows}·R² in products, R the clip norm",
    ),
    TONES: Measured(
        "histogram of the pixel values of all images", "{rows} times the number of pixel values of an image"
    ),
    LEANINGS: Measured("number of records in each interval of slant", "{rows} in all counts"),
}

CARD = Card(
    summary="Noisy moments of the images of each class are measured once; a mixture of Gaussians is made from them.",
    makes="a mixture of Gaussians, written as a network and made from noisy moments of images",
    source="Dwork et al. 2014 (Analyze Gauss), for moments of clipped records; docs/results/images.md",
    paper_holds="Nothing is trained on images: the whole analysis is that of Gaussian releases of counts and clipped sums (docs/privacy.md).",
    releases=RELEASES,
)
