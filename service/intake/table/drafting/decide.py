"""From what a column holds to the field that is proposed, or to why it is left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from imprimatur import personal_looks
from imprimatur.person_columns import (
    FEW_CATEGORIES,
    is_person_id,
    may_be_person_id,
    says_code,
    says_identifier,
    says_person,
)
from service.base.messages import Message, plural
from service.intake.table.cells import MARKERS_IN_WORDS
from service.intake.table.columns import cells_are
from service.intake.table.drafting import names
from service.intake.table.drafting.domains import CHECK_ENUM, moment_domain, number_domain
from service.intake.table.drafting.doubts import look_alikes
from service.intake.table.drafting.findings import Decided, Finding, shown
from service.intake.table.drafting.looks import LOOK_WORDS
from service.intake.table.drafting.moments import EIGHT_DIGITS
from service.intake.table.drafting.proposals import (
    ADD_TO_THE_ENUM,
    CORRECT_OR_MISSING,
    FREE_TEXT,
    MADE_ANEW,
    MAKE_IT_CATEGORIES,
    NAME_OR_REMOVE,
    PUBLIC_LIST,
    REMOVE,
    UNITS_IN_THE_FIRST_ROW,
    WHOSE,
)
from service.intake.table.drafting.shapes import LIMITS, PERIODS, TIMES, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.intake.table.drafting.observed import Observed

CHECK_TYPE = "DRAFT: the type was guessed from the data."

_FEW_TEXTS = 100
_ROWS_OF_A_TEXT = 20
"""So many different texts are categories in any table; more of them if so many rows share each."""

_FEW_ROWS = 10
"""Below it a column that counts 1, 2, 3 may be anything."""

_MOSTLY_DIFFERENT = 0.9
"""Of an identifier's cells so many are different; the others are one thing met twice."""

_LONG_NUMBER = 9
"""Whole numbers of so many digits, nearly all different, are numbers of contracts or people. Moments in seconds or milliseconds are not."""

_SPREAD = 100
"""Long numbers that lie within a hundredth of their size are more likely measured from somewhere far."""

_SECONDS = (10**9, 2 * 10**9)
_YEAR_AND_MONTH = re.compile(r"(18|19|20)[0-9]{2}(0[1-9]|1[0-2])")
_PAIRS: tuple[tuple[str, str], ...] = (
    ("yes", "no"),
    ("y", "n"),
    ("ja", "nein"),
    ("j", "n"),
    ("oui", "non"),
    ("si", "no"),
    ("sí", "no"),
    ("s", "n"),
    ("t", "f"),
    ("true", "false"),
)
_PAIRS += (("on", "off"), ("wahr", "falsch"), ("vrai", "faux"), ("sim", "não"), ("ano", "ne"), ("tak", "nie"))
"""True and false in words, in any case."""


def decide(seen: Observed, rows: int, markers: Sequence[str]) -> Decided:
    """`markers`: what the table takes for a missing value. A field may have the name as it is (`reading.propose_table`)."""
    decided = Decided(seen.name)
    _without_domain(seen, rows, decided)
    if not decided.why:
        _with_domain(seen, decided, markers)
    decided.repeats = _repeats(seen) if _may_say_whose(seen, decided) else False
    if decided.why or decided.field is None:
        return decided
    _doubtful_markers(seen, decided)
    if seen.missing == 0 and "missingValues" not in decided.field and not decided.omits_values:
        decided.field["constraints"]["required"] = True
    decided.field = {"name": decided.name, **decided.field}
    return decided


def _leave_out(
    decided: Decided, seen: Observed, why: str, role: str, proposal: str, *, cells: Sequence[str] = ()
) -> None:
    decided.why, decided.role = why, role
    becomes = Message("made anew in synthetic rows") if role == "identifier" else Message("left out")
    decided.findings.append(
        Finding(seen.name, Message("%(becomes)s: %(why)s", becomes=becomes, why=why), proposal, shown(cells))
    )


def _without_domain(seen: Observed, rows: int, decided: Decided) -> None:
    """Columns that are not published as they are, by name, place or look."""
    if seen.is_unnamed or not decided.name:
        why = (
            Message("it has no name, as row numbers have where R and pandas wrote the file")
            if seen.counts_rows
            else Message("it has no name")
        )
        _leave_out(
            decided,
            seen,
            why,
            "ignore",
            NAME_OR_REMOVE,
            cells=seen.sample,
        )
    elif seen.cells == 0:
        _leave_out(decided, seen, Message("it is empty"), "ignore", REMOVE)
    elif seen.is_index or _numbers_rows(seen, rows):
        why = Message("it is the index of a pandas table") if seen.is_index else Message("it numbers the rows")
        _leave_out(decided, seen, why, "ignore", REMOVE)
    elif found := _look_of(seen):
        look, count = found
        why = Message(
            "%(count)s of its %(cells)s cells are %(look)s", count=count, cells=seen.cells, look=LOOK_WORDS[look]
        )
        _leave_out(decided, seen, why, "identifier", MADE_ANEW, cells=seen.sample)
    elif _says_whose(seen):
        _leave_out(decided, seen, _whose(seen), "identifier", WHOSE, cells=seen.sample)
    elif says_person(seen.name) and not _is_yes_or_no(seen):
        why = Message("its name says that it points to a person")
        _leave_out(decided, seen, why, "identifier", MADE_ANEW, cells=seen.sample)
    elif says_identifier(seen.name) and _is_mostly_different(seen):
        why = Message("its name is that of an identifier, and nearly all its cells are different")
        _leave_out(decided, seen, why, "identifier", MADE_ANEW, cells=seen.sample)


def _look_of(seen: Observed) -> tuple[str, int] | tuple[()]:
    """What the cells look like, and how many do; nothing where they are dates, or too few look like it."""
    if 2 * seen.moment.count >= seen.cells:
        return ()
    return next(
        ((look, count) for look, count in seen.looks.most_common() if personal_looks.SOME * count >= seen.cells), ()
    )


def _is_yes_or_no(seen: Observed) -> bool:
    """`phone` may say whether there is one."""
    return _boolean(seen) is not None or (seen.texts is not None and set(seen.texts) <= {"0", "1"})


def _says_whose(seen: Observed) -> bool:
    return is_person_id(seen.name) or (may_be_person_id(seen.name) and _different(seen) > FEW_CATEGORIES)


def _whose(seen: Observed) -> str:
    if _repeats(seen):
        return Message("its name says whose row it is, and the same value stands in several rows")
    return Message("its name says whose row it is")


def _may_say_whose(seen: Observed, decided: Decided) -> bool:
    """An identifier; or a column whose name is that of one, with more different cells than categories have."""
    if decided.why and decided.role == "identifier":
        return True
    is_value = decided.field is not None and decided.field["type"] in {"boolean", "date", "datetime"}
    if is_value or not seen.cells or seen.is_index or seen.counts_rows or not says_identifier(seen.name):
        return False
    return _different(seen) > FEW_CATEGORIES or seen.cells < _ROWS_OF_A_TEXT * _different(seen)


def _repeats(seen: Observed) -> bool | None:
    """Whether two cells are the same; None where there are too many different ones to tell."""
    return None if seen.texts is None else len(seen.texts) < seen.cells


def _with_domain(seen: Observed, decided: Decided, markers: Sequence[str]) -> None:
    if (boolean := _boolean(seen)) is not None:
        decided.field = boolean
    elif moment_domain(seen, decided, markers, only=EIGHT_DIGITS):
        pass
    elif _is_of_codes(seen):
        _texts(
            seen,
            decided,
            Message("its numbers have leading zeros or are codes, as identifiers are, and too many are different"),
        )
    elif _is_long_identifier(seen):
        why = Message("its numbers are long and nearly all different, as identifiers are")
        _leave_out(decided, seen, why, "identifier", MADE_ANEW, cells=seen.sample)
    elif not number_domain(seen, decided, markers) and not moment_domain(seen, decided, markers):
        _texts(seen, decided, Message("it looks like names, identifiers or free text"))


def _numbers_rows(seen: Observed, rows: int) -> bool:
    if names.is_always_index(seen.name) or (seen.counts_rows and (names.is_index_name(seen.name) or rows >= _FEW_ROWS)):
        return True
    number = seen.number
    is_counted = (
        number.spelling.is_plain and rows > _FEW_TEXTS and number.whole == rows and not number.has_leading_zeros
    )
    ends = [one for one in (number.low, number.high, *number.candidates) if one is not None]
    return is_counted and max(ends) - min(ends) + 1 == rows and _different(seen) >= min(rows, _MANY)


_MANY = 10_001
"""So many different cells are not told apart any more."""


def _different(seen: Observed) -> int:
    return _MANY if seen.texts is None else len(seen.texts)


def _is_mostly_different(seen: Observed) -> bool:
    return _different(seen) >= min(_MANY, _MOSTLY_DIFFERENT * seen.cells)


def _is_long_identifier(seen: Observed) -> bool:
    number = seen.number
    if not (number.spelling.is_plain and number.whole == seen.cells and number.lengths and _is_mostly_different(seen)):
        return False
    if number.low is None or number.high is None or number.has_exponent or number.decimals:
        return False
    is_time = any(_SECONDS[0] * unit <= number.low and number.high <= _SECONDS[1] * unit for unit in (1, 10**3, 10**6))
    is_spread = _SPREAD * (number.high - number.low) >= number.high
    return len(number.lengths) == 1 and min(number.lengths) >= _LONG_NUMBER and is_spread and not is_time


def _is_of_codes(seen: Observed) -> bool:
    """Numbers that name something: their spelling is kept."""
    number = seen.number
    if not (number.spelling.is_plain and number.whole == number.count == seen.cells and not number.decimals):
        return False
    if number.has_leading_zeros or says_code(seen.name):
        return True
    extents = [abs(one) for one in (number.low, number.high) if one is not None]
    is_too_long = any(one >= 2**63 for one in extents)
    return is_too_long or (seen.texts is not None and all(_YEAR_AND_MONTH.fullmatch(text) for text in seen.texts))


def _boolean(seen: Observed) -> dict[str, Any] | None:
    texts: Mapping[str, int] = seen.texts or {}
    pair = next((pair for pair in _PAIRS if {text.lower() for text in texts} == set(pair)), None)
    if pair is None:
        is_word = seen.words == seen.cells
        return {"type": "boolean", "description": CHECK_TYPE, "constraints": {}} if is_word else None
    spelled: dict[str, Any] = {"type": "boolean", "description": CHECK_TYPE, "constraints": {}}
    for word, value in zip(("trueValues", "falseValues"), pair, strict=True):
        found = sorted((text for text in texts if text.lower() == value), key=lambda text: -texts[text])
        if pair != ("true", "false") or value not in found:
            spelled[word] = found
    return spelled


def _is_free_text(seen: Observed) -> bool:
    words = (seen.spaces + seen.cells) / seen.cells
    is_long = seen.characters >= personal_looks.LONG_TEXT * seen.cells or words >= personal_looks.WORDS_OF_TEXT
    return is_long or any(map(personal_looks.is_sentence, seen.texts or ()))


def _texts(seen: Observed, decided: Decided, why_too_many: str) -> None:
    """Categories that rows share, or why there are none."""
    shape, to_do = shape_of(seen.sample)
    mostly = _mostly(seen, decided, shape)
    to_do = to_do or PUBLIC_LIST
    known: Mapping[str, int] = seen.texts or {}
    many = max(_FEW_TEXTS, seen.cells // _ROWS_OF_A_TEXT)
    if _is_free_text(seen):
        _leave_out(
            decided,
            seen,
            Message("it is free text"),
            "free_text",
            FREE_TEXT,
            cells=seen.sample,
        )
    elif seen.texts is None or len(known) > many:
        why = shape or mostly or why_too_many
        _leave_out(decided, seen, why, "ignore", to_do, cells=[] if mostly else seen.sample)
    elif _are_ids(seen.name, list(known), shape):
        why = Message("its cells are letters and numbers of one form, as identifiers are")
        _leave_out(
            decided,
            seen,
            why,
            "identifier",
            Message("%(made_anew)s; %(public_list)s", made_anew=MADE_ANEW, public_list=PUBLIC_LIST),
            cells=seen.sample,
        )
    elif 2 * len(seen.singles) > len(known):
        why = shape or mostly or Message("most of its values occur once, as names and identifiers do")
        _leave_out(decided, seen, why, "ignore", to_do, cells=[] if mostly else seen.singles)
    else:
        _categories(seen, decided, known, mostly)
        if shape == LIMITS:
            decided.findings.append(Finding(seen.name, shape, to_do))


def _are_ids(name: str, texts: list[str], shape: str) -> bool:
    return personal_looks.are_shaped_ids(texts) and not says_code(name) and shape not in {PERIODS, TIMES}


def _categories(seen: Observed, decided: Decided, known: Mapping[str, int], mostly: str) -> None:
    about = f"{CHECK_ENUM} {mostly[:1].upper()}{mostly[1:]}.".removesuffix(" .")
    shared = sorted(text for text, count in known.items() if count > 1)
    if pointing := [text for text in shared if personal_looks.INSIDE.search(text)]:
        shared = [text for text in shared if text not in pointing]
        if not shared:
            why = Message("all values that rows share hold an e-mail address or a phone number")
            _leave_out(decided, seen, why, "ignore", REMOVE, cells=pointing)
            return
        decided.omits_values = True
        what = Message(
            "%(count)s of its values hold an e-mail address or a phone number, are not listed, and would become "
            "missing",
            count=len(pointing),
        )
        decided.findings.append(
            Finding(
                seen.name, what, Message("add those that are publicly known, or leave the column out"), shown(pointing)
            )
        )
    decided.field = {"type": "string", "description": about, "constraints": {"enum": shared}}
    if alike := look_alikes(seen.name, shared):
        decided.findings.append(alike)
    if seen.singles:
        decided.omits_values = True
        what = Message(
            "%(count)s of its values occur once and are not listed: each is of one row, and would become missing",
            count=len(seen.singles),
        )
        decided.findings.append(
            Finding(seen.name, what, Message("add those that are publicly known"), shown(seen.singles))
        )


def _mostly(seen: Observed, decided: Decided, shape: str) -> str:
    """Where a few cells alone keep a column from being numbers or dates: they may be mistakes, or mean that nothing is known."""
    if shape:  # which says more
        return ""
    for reading, what in ((seen.number, Message("finite numbers")), (seen.moment, Message("dates"))):
        if seen.cells <= 2 * reading.count and reading.count < seen.cells:
            mostly = Message(
                "%(count)s of its %(cells)s cells are %(what)s, so look at the others",
                count=reading.count,
                cells=seen.cells,
                what=what,
            )
            proposal = CORRECT_OR_MISSING
            if seen.cells - reading.count == 1 and seen.first_cell in reading.unread:
                proposal = UNITS_IN_THE_FIRST_ROW
            decided.findings.append(
                Finding(
                    seen.name,
                    Message("%(cells)s no %(what)s", cells=cells_are(seen.cells - reading.count), what=what),
                    proposal,
                    shown(reading.unread),
                )
            )
            return mostly
    return ""


def _doubtful_markers(seen: Observed, decided: Decided) -> None:
    """`NA` may be Namibia."""
    if "-" in seen.markers and decided.field is not None and decided.field["type"] in {"integer", "number"}:
        what = Message("cells that are a dash are taken as missing")
        decided.findings.append(
            Finding(seen.name, what, Message("if it stands for zero, as in accounts, write 0 in the file"))
        )
    is_string = decided.field is not None and decided.field["type"] == "string"
    words = [one for one in seen.markers if one in MARKERS_IN_WORDS or (is_string and one.isalpha())]
    if not words:
        return
    proposal = ADD_TO_THE_ENUM if is_string else MAKE_IT_CATEGORIES
    count = sum(seen.markers[word] for word in words)
    what = plural(
        "1 cell is taken as missing that may be an answer",
        "%(count)s cells are taken as missing that may be an answer",
        count,
        count=count,
    )
    decided.findings.append(Finding(seen.name, what, proposal, shown(words)))
