"""Types that all parts use, and the one error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Mask = Callable[[Array], Array]
"""A column of drawn rows -> which of them are meant."""
Columns = list[Array]


class SamplingError(ValueError):
    """The request cannot be met; the message says why and what to do."""
