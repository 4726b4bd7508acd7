"""A wrapper for values computed from private data, which cannot be shown, compared, copied or stored by accident.

Tested in tests/curator/test_path.py.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Secret(Generic[T]):
    """A value that must pass through a mechanism before it is released.

    It cannot be printed, compared, hashed, pickled or used as a boolean, and a traceback shows nothing of it. The only
    way to use the value is `through`, which passes it to a function. In this package those functions add noise, or keep
    their result inside the curator.

    >>> Secret(42)
    Secret(…)
    >>> Secret(42).through(lambda value: value > 0)
    True
    """

    __slots__ = ("__value",)

    def __init__(self, value: T) -> None:
        self.__value = value

    def through(self, mechanism: Callable[[T], U]) -> U:
        """Return the result of a function of the value."""
        return mechanism(self.__value)

    def __repr__(self) -> str:
        return "Secret(…)"

    def __format__(self, spec: str) -> str:
        return "Secret(…)"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("a Secret cannot be compared, tested, iterated, copied or stored; pass it through a mechanism")

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __iter__ = __len__ = __getitem__ = __contains__ = __int__ = __float__ = __index__ = _refuse
    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def combine_secrets(secrets: Mapping[str, Secret[T]]) -> Secret[dict[str, T]]:
    """Combine several secrets into one."""
    opened: dict[str, T] = {}
    for name, secret in secrets.items():
        secret.through(partial(opened.__setitem__, name))
    return Secret(opened)
