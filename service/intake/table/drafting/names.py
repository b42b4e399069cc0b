"""What a column's name says: a person's id, an identifier, a code, an index of pandas; and names that no schema can have."""

from __future__ import annotations

import re
import unicodedata

from imprimatur.person_columns import words_of

LONGEST_NAME = 200
"""Of a field (`FieldSchema.name`)."""

_ID_WORDS = frozenset({"id", "ids", "uuid", "guid", "key", "nr", "no", "num", "number", "nummer", "ssn", "mrn", "iban"})
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

_PANDAS_INDEX = re.compile(
    r"(__index_level_[0-9]+__|Unnamed: [0-9]+(_level_[0-9]+)?|level_[0-9]+|index|rownames|row_names)"
)
"""How pandas and R name the numbers of rows when they write a file."""


def says_identifier(name: str) -> bool:
    words = words_of(name)
    return bool(words) and words[-1] in _ID_WORDS and not says_code(name)


def says_person(name: str) -> bool:
    """`first_name`, `email`: not `hostname` or `product_name`."""
    words = words_of(name)
    direct = [word for word in words if word in _DIRECT]
    return bool(direct) and (
        len(words) == 1 or words[-1] != "name" or words[0] in {"first", "last", "full", "family", "given"}
    )


def says_code(name: str) -> bool:
    return any(word in _CODE_WORDS for word in words_of(name))


def is_index_name(name: str) -> bool:
    return _PANDAS_INDEX.fullmatch(name) is not None


def is_always_index(name: str) -> bool:
    """Names that nobody gives a column of their own."""
    return name.startswith(("__index_level_", "Unnamed: "))


def usable_name(name: str) -> str:
    """The name as a field may have it: without line breaks and other characters that are not printed, not too long."""
    text = "".join(char if char.isprintable() else " " for char in unicodedata.normalize("NFC", name))
    return " ".join(text.split())[:LONGEST_NAME].strip()


def why_renamed(name: str) -> str:
    """What is wrong with a name that `usable_name` changes."""
    if len(name) > LONGEST_NAME:
        return f"its name has {len(name)} characters, and {LONGEST_NAME} are the most"
    if "\n" in name or "\r" in name:
        return "its name holds a line break"
    return "its name holds characters that are not seen, such as a space that does not break"
