"""The analyses as methods, the same for a curator in this process and for a server: each writes the text of a call."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, TypedDict, TypeVar, Unpack

from hubbub.core.call import Call
from hubbub.core.numbers import Number
from hubbub.core.options import Options

R = TypeVar("R", covariant=True)


class Price(TypedDict, total=False):
    """What may be said about every analysis: what to spend, and what one unit may contribute at most."""

    epsilon: Number
    delta: Number | None
    groups: int | None
    rows: int | None
    key: str | None


class Analyses(Generic[R]):
    """Methods that ask for an analysis; `call` asks for any of them by name.

    Where a method is called decides what it gives: a release (`h.kmeans(…)`), or what that would cost
    (`h.estimates.kmeans(…)`, free).
    """

    @abstractmethod
    def _called(self, text: str, key: str | None, options: Options) -> R:
        """Ask for what the text says."""

    def call(self, name: str, /, arguments: dict[str, object], **price: Unpack[Price]) -> R:
        """Ask for an analysis by its name. Arguments that are None are left to their defaults."""
        given = {argument: value for argument, value in arguments.items() if value is not None}
        options: Options = {"epsilon": price.get("epsilon"), "delta": price.get("delta")}
        options |= {"groups": price.get("groups"), "rows": price.get("rows")}
        return self._called(Call(name, given).text(), price.get("key"), options)


class Estimates(Analyses[R]):
    """What each analysis would cost: `h.estimates.kmeans(…)`."""

    def __init__(self, estimate: Callable[..., R]) -> None:
        """Use `h.estimates`."""
        self._estimate = estimate

    def _called(self, text: str, key: str | None, options: Options) -> R:  # noqa: ARG002 - nothing is kept
        return self._estimate(text, **options)
