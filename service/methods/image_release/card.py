"""What people are told about `image_release`."""

from __future__ import annotations

from service.methods.image_release.price import COEFFICIENTS, SINGULAR_VALUES, SIZE
from service.methods.interface import Card, Measured

RELEASES = {
    SIZE: Measured(
        "how many cosines along each side, by the distance of all images to what those keep, plus the noise to be expected",
        "√{rows}·R, R = 127.5·√(pixel values of a unit): the distance is 1-Lipschitz in the images",
    ),
    COEFFICIENTS: Measured(
        "coefficients of each image, less grey, in a public basis of cosines",
        "√{rows}·R·u·v for Gaussian noise, R = 127.5·√(pixel values of a unit), u and v the largest norms of a unit's rows and columns in the "
        "basis (1 for whole images); for Laplace noise the same in L1",
    ),
    SINGULAR_VALUES: Measured(
        "singular values of the coefficients of each image",
        "√{rows}·R; in L1 {rows}·R·√(the unit's shorter side), for each channel (Mirsky 1960)",
    ),
}

CARD = Card(
    summary="Each image is released by itself: coefficients of low frequency, with noise.",
    makes="blurred and noisy copies of the images of the dataset, one for each",
    source="after Zhang, Fu, Meng 2020 (LAP, LRA, SRA, ESRA: releases of face images); Mirsky 1960; Robertson et al. 1988 (isotonic repair)",
    paper_holds="The published ones do not hold: LAP takes its noise from the image's own largest column, LRA publishes a factor, SRA and ESRA the "
    "singular vectors as they are, and all four tell neighbours apart at any ε (docs/methods/image_release.md). Here the basis is public, "
    "every pixel is bounded, and the size is chosen by an exponential mechanism that is paid.",
    releases=RELEASES,
    cannot_learn="Anything sharp: at small ε an image of whole-image units is grey. Whose face it is can be recognised where ε is large, and then that is what was released.",
)
