"""A value computed from the data, before noise. It cannot be shown, compared, copied or stored by accident."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Secret(Generic[T]):
    """Holds what must go through a mechanism before anybody may see it.

    It has no text, no truth value, no order, no hash and no pickle; a traceback that prints it prints nothing. The one
    way out is `through`, which hands the value to a function: in this package only functions that add noise, or that
    keep what they make on the curator's side.

    >>> Secret(42)
    Secret(…)
    >>> Secret(42).through(lambda value: value > 0)
    True
    """

    __slots__ = ("__value",)

    def __init__(self, value: T) -> None:
        self.__value = value

    def through(self, mechanism: Callable[[T], U]) -> U:
        """Give what a function makes of the value."""
        return mechanism(self.__value)

    def __repr__(self) -> str:
        return "Secret(…)"

    def __format__(self, spec: str) -> str:
        return "Secret(…)"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("a secret cannot be compared, tested, iterated, copied or stored; put it through a mechanism")

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __iter__ = __len__ = __getitem__ = __contains__ = __int__ = __float__ = __index__ = _refuse
    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def together(secrets: Mapping[str, Secret[T]]) -> Secret[dict[str, T]]:
    """Make one secret of several."""
    opened: dict[str, T] = {}
    for name, secret in secrets.items():
        secret.through(partial(opened.__setitem__, name))
    return Secret(opened)
