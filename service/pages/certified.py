"""Sentences of a certificate in the language of the page. A certificate is signed, and in English."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.domain.outcomes import outcomes
from service.domain.table_schema import TableSchema
from service.domain.unit_words import unit_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.datasets.models import Dataset


def words_of(certificate: Mapping[str, Any], dataset: Dataset) -> dict[str, Any]:
    """What is said of the unit, and of columns that are not modelled.

    A sentence is made again from the declaration, and shown in another language only where it is the one that was signed.
    """
    schema = dataset.declared_schema
    made = [
        unit_in_words(schema, dataset.unit),
        *(outcomes(schema) if isinstance(schema, TableSchema) else {}).values(),
    ]
    known = {str(each): each for each in made}
    signed = certificate.get("not_modelled", [])
    return {
        "unit": known.get(certificate["unit"], certificate["unit"]),
        "not_modelled": [(each["column"], known.get(each["becomes"], each["becomes"])) for each in signed],
    }
