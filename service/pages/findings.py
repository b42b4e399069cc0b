"""What a draft found of a column; `service.pages.rewording` has the words of the form instead of those of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.base.carried import unpacked

if TYPE_CHECKING:
    from collections.abc import Mapping


def findings_of(draft: Mapping[str, Any], name: str) -> list[str]:
    """Of a column; of a draft from before findings had places, as they were stored."""
    return [unpacked(each) for each in draft["findings"].get(name, ())]


def notices_of(draft: Mapping[str, Any]) -> list[str]:
    """On how the file was read."""
    return [unpacked(each) for each in draft["notices"]]
