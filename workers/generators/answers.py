"""The published ZIP of a method that returns numbers instead of a generator. Post-processing; no pickle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from workers.generators.archive import to_json
from workers.generators.card import CERTIFICATE_FILE, Content, model_card
from workers.generators.errors import UnusableGeneratorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.domain.image_schema import DeclaredSchema

_USE = """\
## Read the answers

They are in answers.json; any JSON reader will do. The service returns the same at `GET /v1/releases/{id}/answers`. Answers may be
shared and computed with as often as you like: this costs no privacy.
"""
_CAUTION = """\
Answers are noisy, and small counts most of all. Do not use them to decide about a single person, and check important findings
against the real data with their owner."""


def answers_files(
    answers: Mapping[str, Any], schema: DeclaredSchema, *, certificate: Mapping[str, Any], order: Mapping[str, Any]
) -> dict[str, bytes]:
    """The files of these answers: values that JSON can hold, noisy or public."""
    _check(dict(answers))
    config = {"format": 1, "kind": "answers", "schema": schema.as_json()}
    return {
        "answers.json": to_json(answers),
        "config.json": to_json(config),
        "MODEL_CARD.md": answers_card(certificate=certificate, order=order).encode(),
    }


def answers_card(*, certificate: Mapping[str, Any], order: Mapping[str, Any]) -> str:
    """The whole card."""
    content = Content(
        title="Private answers",
        what_it_does="The private data are not in it.",
        use=_USE,
        record="record",
        declared="names, categories, sizes and bounds",
        population="If the data show that smoking goes with cancer, so may these answers.",
        caution=_CAUTION,
        files={
            "answers.json": "the answers",
            "config.json": "the kind of this release, and the declared schema",
            **CERTIFICATE_FILE,
        },
    )
    return model_card(content, certificate=certificate, order=order)


def _check(value: object) -> None:
    """Refuses what JSON would change or cannot hold. What is wrong was computed from noisy values, so the refusal is no secret."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        for each in value.values():
            _check(each)
    elif isinstance(value, list):
        for each in value:
            _check(each)
    elif isinstance(value, float) and not math.isfinite(value):
        raise UnusableGeneratorError("The answers hold a number that is not finite.")
    elif not (value is None or isinstance(value, str | bool | int | float)):
        raise TypeError(f"answers must be JSON values with texts as names, not {type(value).__name__}")
