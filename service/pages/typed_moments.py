"""Days and times as the form of a column shows them and as they are typed there: in the declared format of the column."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from service.domain.bounds import as_number
from service.domain.spellings import SpelledField, check_spelling, parts_of
from service.domain.zones import offsets_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST_OF_TWO_DIGITS = dt.datetime(1969, 1, 1, tzinfo=dt.UTC).timestamp()
"""Two digits of a year are one of the hundred from then on, as in strptime."""
_DAY_SECONDS = 86_400
MOMENTS = frozenset({"date", "datetime"})


def moment_text(value: str, use: str, field: Mapping[str, Any]) -> str:
    """A bound as schemas have it in the format of its column; as it is where that would not mean the same."""
    spelled = _spelled(use, field)
    if spelled is None:
        return value
    from service.samples.table.spelling import SpelledMoments  # noqa: PLC0415 - large libraries: for columns with a format

    try:
        number = as_number(use, value, spelled.zone)
        text = SpelledMoments(_config(use, spelled)).texts(_in_seconds(number, use))[0]
        is_same = as_number(use, moment_of(text, use, field), spelled.zone) == number
    except (ValueError, OverflowError):
        return value
    return text if is_same else value


def moment_of(text: str, use: str, field: Mapping[str, Any]) -> str:
    """What was typed in the format of its column, as schemas have it; any other text as it is."""
    spelled = _spelled(use, field)
    if spelled is None:
        return text
    from service.samples.table.reading import ReadMoment  # noqa: PLC0415 - as above

    try:
        seconds = ReadMoment(_config(use, spelled), _FIRST_OF_TWO_DIGITS)(text)
        at = dt.datetime.fromtimestamp(seconds, dt.UTC if use == "date" else spelled.zone)
    except (ValueError, OverflowError):
        return text
    return at.date().isoformat() if use == "date" else at.replace(tzinfo=None).isoformat()


def _spelled(use: str, field: Mapping[str, Any]) -> SpelledField | None:
    """The format of the column and its zone; None where it has none, or none that may be published."""
    if use not in MOMENTS or "%" not in str(field.get("format", "")):
        return None
    words = {"format": field["format"], "timezone": field.get("timezone")}
    try:
        spelled = SpelledField.model_validate(words)
        check_spelling(spelled, use)
    except ValueError:
        return None
    return spelled


def _config(use: str, spelled: SpelledField) -> dict[str, Any]:
    config: dict[str, Any] = {"parts": [list(part) for part in parts_of(spelled.format or "")]}
    if use == "datetime" and spelled.timezone is not None:
        config["offsets"] = [list(one) for one in offsets_of(spelled.timezone)]
    return config


def _in_seconds(number: float, use: str) -> Any:
    import numpy as np  # noqa: PLC0415 - as above

    return np.array([int(number) * (_DAY_SECONDS if use == "date" else 1)])
