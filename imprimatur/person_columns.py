"""What the name of a column says: whose row it is (patient_id, customer, userId), a name or an address, an identifier, a code."""

from __future__ import annotations

import csv
import gzip
import importlib
import re
import tarfile
import zlib
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_HEADER_BYTES = 1 << 16
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
        "versicherten",
        "personen",
        "personal",
        "proband",
        "probanden",
        "mitglied",
        "mitglieds",
        "haushalt",
        "haushalts",
        "matrikel",
    ]
)
_IDS = frozenset(["id", "ids", "uuid", "guid", "key", "nr", "no", "num", "number", "nummer", "kennung", "code", "hash"])
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

_DIRECT = frozenset(
    [
        "name",
        "firstname",
        "lastname",
        "surname",
        "forename",
        "fullname",
        "email",
        "mail",
        "phone",
        "mobile",
        "telephone",
        "tel",
        "fax",
        "address",
        "street",
        "iban",
        "ssn",
        "passport",
        "vorname",
        "nachname",
        "strasse",
        "telefon",
    ]
)
"""Words of names whose cells are taken to point to a person, whatever they look like."""

_ID_WORDS = frozenset(
    {"id", "ids", "uuid", "guid", "key", "nr", "no", "num", "number", "nummer", "kennung", "ssn", "mrn", "iban"}
)
_CODE_WORDS = frozenset(
    [
        "code",
        "codes",
        "zip",
        "zipcode",
        "postcode",
        "postal",
        "plz",
        "icd",
        "atc",
        "nuts",
        "fips",
        "nace",
        "isco",
        "isic",
        "cpt",
        "sku",
        "naics",
        "dept",
        "ward",
    ]
)
"""Words of names whose numbers are names of something: no sum or mean of them makes sense."""

FEW_CATEGORIES = 20
"""A column `customer` of at most so many declared categories may be a kind of customer."""


def words_of(name: str) -> list[str]:
    """`patientId`, `patient_id`, `Patient ID` and, in German, `Patientnummer` are two words."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = re.sub(r"(?<=[a-z])(nummer|nr|kennung)(?![a-z])", r" \1", parted.lower())
    return [word for word in re.split(r"[^a-z]+", words) if word]


def is_person_id(name: str) -> bool:
    """`patient_id`: a person and an id. Whatever the cells look like, they say whose row it is."""
    words = words_of(name)
    named = len(words) > 1 and words[-1] in _IDS and any(word in _PERSONS for word in words[:-1])
    return named or (len(words) == 1 and words[0] in _ALONE)


def may_be_person_id(name: str) -> bool:
    """`customer` alone: an id, or a kind of customer."""
    words = words_of(name)
    return len(words) == 1 and words[0] in _PERSONS


def says_person(name: str) -> bool:
    """`first_name`, `email`: not `hostname` or `product_name`."""
    words = words_of(name)
    direct = [word for word in words if word in _DIRECT]
    return bool(direct) and (
        len(words) == 1 or words[-1] != "name" or words[0] in {"first", "last", "full", "family", "given"}
    )


def says_identifier(name: str) -> bool:
    """Whether a name is that of an identifier, such as `customer id`."""
    words = words_of(name)
    return bool(words) and words[-1] in _ID_WORDS and not says_code(name)


def says_code(name: str) -> bool:
    """Whether a name is that of a code, such as `postcode`: many people share one."""
    return any(word in _CODE_WORDS for word in words_of(name))


def person_columns(schema: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Columns that say whose row it is: those that are declared, else those of the table by their names alone."""
    return declared_person_columns(schema) or [name for name in names if is_person_id(name)]


def header_of(file: Path) -> list[str]:
    """The names of the columns of a CSV file, gzipped or not, and of Parquet, in parts or not; of other files none is known here."""
    if file.is_dir():
        return next(map(header_of, sorted(file.rglob("*.parquet"))), [])
    if not file.is_file():
        return []
    with file.open("rb") as opened:
        start = opened.read(_HEADER_BYTES)
        opened.seek(0)
        if start.startswith(b"PAR1"):
            return _parquet_header(opened)
        if start[257:262] == b"ustar":
            return _header_of_parts(opened)
        if start.startswith(b"\x1f\x8b"):
            with suppress(OSError, EOFError, zlib.error), gzip.open(opened) as unpacked:
                return _csv_header(unpacked.read(_HEADER_BYTES))
    return _csv_header(start)


def _csv_header(start: bytes) -> list[str]:
    if b"\x00" in start or start.startswith(b"PK"):
        return []
    line = start.decode("utf-8-sig", errors="replace").split("\n", 1)[0]
    delimiter = max(",;\t|", key=line.count)
    return [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]


def _parquet_header(file: IO[bytes]) -> list[str]:
    try:
        return list(importlib.import_module("pyarrow.parquet").read_schema(file).names)
    except (ImportError, ValueError, OSError):  # pyarrow's errors are both
        return []


def _header_of_parts(file: IO[bytes]) -> list[str]:
    with suppress(tarfile.TarError), tarfile.open(fileobj=file) as archive:
        for member in archive:
            part = archive.extractfile(member) if member.name.endswith((".parquet", ".pq")) else None
            if part is not None:
                return _parquet_header(part)
    return []


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
