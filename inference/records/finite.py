"""Values as JSON may hold them: it has no NaN and no infinity. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite


def finite(value: object) -> object:
    """Return a value of JSON with null in place of every number that is not finite."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    return value
