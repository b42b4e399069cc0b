"""Which column names say that a column holds whose row it is: patient_id, customer, userId."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_PERSONS = frozenset(
    [
        "patient",
        "person",
        "persons",
        "customer",
        "client",
        "user",
        "member",
        "subject",
        "employee",
        "student",
        "insured",
        "participant",
        "respondent",
        "household",
        "guest",
        "passenger",
        "resident",
        "citizen",
        "voter",
        "donor",
        "tenant",
        "borrower",
        "policyholder",
        "cardholder",
        "account",
        "kunde",
        "kunden",
        "patienten",
        "mitarbeiter",
        "versicherter",
    ]
)
_IDS = frozenset(["id", "ids", "uuid", "guid", "key", "nr", "no", "num", "number", "nummer", "code", "hash"])
_ALONE = frozenset(
    {
        "pid",
        "uid",
        "mrn",
        "ssn",
        "subjid",
        "usubjid",
        "custid",
        "userid",
        "patid",
        "patientid",
        "customerid",
        "clientid",
    }
)
"""Names that mean a person's id by themselves."""

FEW_CATEGORIES = 20
"""A column `customer` of at most so many declared categories may be a kind of customer."""


def words_of(name: str) -> list[str]:
    """`patientId`, `patient_id` and `Patient ID` are the same two words."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z]+", parted.lower()) if word]


def is_person_id(name: str) -> bool:
    """`patient_id`: a person and an id. Whatever the cells look like, they say whose row it is."""
    words = words_of(name)
    named = len(words) > 1 and words[-1] in _IDS and any(word in _PERSONS for word in words[:-1])
    return named or (len(words) == 1 and words[0] in _ALONE)


def may_be_person_id(name: str) -> bool:
    """`customer` alone: an id, or a kind of customer."""
    words = words_of(name)
    return len(words) == 1 and words[0] in _PERSONS


def declared_person_columns(schema: Mapping[str, Any]) -> list[str]:
    """Fields of a declaration that say whose row it is, by their names and domains, whatever their role."""
    fields = schema.get("fields")
    found = [field for field in (fields if isinstance(fields, list) else []) if isinstance(field, dict)]
    return [str(field.get("name")) for field in found if _says_whose(field)]


def _says_whose(field: Mapping[str, Any]) -> bool:
    name, kind = str(field.get("name", "")), field.get("type")
    if kind in {"boolean", "date", "datetime"}:
        return False
    if is_person_id(name):
        return True
    constraints = field.get("constraints")
    enum = constraints.get("enum") if isinstance(constraints, dict) else None
    return may_be_person_id(name) and not (isinstance(enum, list) and len(enum) <= FEW_CATEGORIES)
