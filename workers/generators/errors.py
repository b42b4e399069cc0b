"""Why something that was made cannot be published."""

from __future__ import annotations

from typing import ClassVar

from service.base.errors import ImprimaturError


class UnusableGeneratorError(ImprimaturError):
    """What was made cannot be published: numbers that are not finite, or an export that disagrees."""

    code: ClassVar[str] = "unusable_generator"
