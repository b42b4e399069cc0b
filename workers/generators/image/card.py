"""MODEL_CARD.md of a published generator of images: plain words for people who hold the ZIP and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from workers.generators.table.card import other_releases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.domain.image_schema import ImageSchema

_SEE = "see certificate.json"

_CARD = """\
# A generator of synthetic images

This ZIP holds a generator that was made from private images under differential privacy by the method `{method}`. It draws
new images of {height} × {width} pixels, {colours}{classes}; the images themselves are not in it.

## Draw images

    pip install numpy onnxruntime
    python sample.py --rows 1000 -o images.npz
    python sample.py --rows 1000 --seed 7 --where label={example} -o some.npz

Any number of images may be drawn, shared and analysed: drawing costs no privacy.

## What is protected

- Unit of protection: {unit}
- Adjacency: {adjacency}
- Trust model: {trust_model}
- Guarantee: ({epsilon}, {delta})-differential privacy
{warnings}
Whoever sees this ZIP, every image drawn from it, and knows everything about all other units, can hardly tell whether one
unit was in the data: any conclusion about it is at most e^ε times as likely, up to a probability δ, as it would have been
without that unit.

## What is not protected

- The declared schema, with its size and classes, and the number of {counted}: they are public.
- Facts about the whole population, such as how a class looks on average.
- A person who {several}, beyond the protection of each single one.
- Other releases from the same images: each adds to what is revealed. The owner's ledger keeps the sum within a budget.
  {other_releases}

Synthetic images are approximate and look blurred: what few images share is lost on purpose. Do not use them to decide
about a single person, and check important findings against the real images with their owner.

## Where it comes from

- Code version: {code_version}
- Audit: {audit}
- certificate.json: the guarantee with its accounting, the ledger entry that paid for it, and a signature

| file | |
|---|---|
| generator.onnx | noise and a component in, images between 0 and 1 out |
| generator.safetensors | its numbers |
| config.json | size, classes, the class and share of every component |
| certificate.json | the guarantee |
| sample.py | draws images; needs numpy and onnxruntime only |

## Order

    {order}
"""


def image_card(*, schema: ImageSchema, certificate: Mapping[str, Any], order: Mapping[str, Any]) -> str:
    """The card as Markdown; what the certificate does not say is left to certificate.json."""
    names = schema.class_names
    by_image = certificate.get("unit", "one image") == "one image"
    return _CARD.format(
        method=order.get("method", _SEE),
        height=schema.height,
        width=schema.width,
        colours="grey" if schema.channels == 1 else "in colour",
        classes=f", of {len(names)} classes" if names else "",
        example=names[0] if names else "CLASS",
        unit=certificate.get("unit", _SEE),
        counted="images" if by_image else "units",
        several="is in several images" if by_image else "has several unit ids, or is in images of others",
        adjacency=certificate.get("adjacency", _SEE),
        epsilon=f"ε = {certificate['epsilon']}" if "epsilon" in certificate else f"ε: {_SEE}",
        warnings="".join(f"- Warning: {warning}\n" for warning in certificate.get("warnings", [])),
        delta=f"δ = {certificate['delta']}" if "delta" in certificate else f"δ: {_SEE}",
        code_version=certificate.get("code_version", _SEE),
        trust_model=certificate.get("trust_model", _SEE),
        other_releases=other_releases(certificate),
        audit=certificate.get("audit", {}).get("says", _SEE),
        order=json.dumps(order, ensure_ascii=False, sort_keys=True),
    )
