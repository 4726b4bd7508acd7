"""Settings of a study: the keyword arguments of its function, given as text and read as the types of their defaults.

Tested in tests/attacks/test_studies.py and tests/crowd/test_studies.py.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from math import isfinite
from types import MappingProxyType

Setting = int | float | str | bool | tuple[str, ...]

_MAX_LENGTH = 1000
_KINDS = {bool: "true or false", int: "an integer", float: "a number", tuple: "a comma-separated list"}


def settings_of(function: Callable[..., object], given: Collection[str]) -> Mapping[str, Setting]:
    """Return the settings of a function with their defaults; `given` names the arguments that are not settings."""
    parameters = inspect.signature(function).parameters.values()
    return MappingProxyType({each.name: each.default for each in parameters if each.name not in given})


def kind_of(default: Setting) -> str:
    """Describe the values that a setting takes."""
    return _KINDS.get(type(default), "text")


def read_setting(value: object, default: Setting) -> Setting | None:
    """Convert a setting to the type of its default; None if that is not possible."""
    if isinstance(value, str) and len(value) > _MAX_LENGTH:
        return None
    if isinstance(default, bool):
        words = {"true": True, "yes": True, "false": False, "no": False}
        return value if isinstance(value, bool) else words.get(str(value).strip().lower())
    if isinstance(default, tuple):
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            return None
        return tuple(part.strip() for part in parts if part.strip())
    if isinstance(default, str):
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        if isinstance(default, int):
            return None if isinstance(value, float) else int(value)
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
