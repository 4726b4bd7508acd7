"""The HTTP requests behind the methods of a session.

Tested in tests/client/test_alike.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from hubbub.answers import options
from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.estimate import Estimate
from hubbub.answers.options import Options
from hubbub.answers.profile import Profile
from hubbub.answers.release import Release
from hubbub.client.protocol import Request, Steps, read, run_query, send
from hubbub.core import numbers
from hubbub.core.schema import Table, unknown_dataset
from hubbub.errors import ParameterError

T = TypeVar("T")

#: Charges per page.
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of the API, each with a maximum number of retries."""

    retries: int

    def me(self) -> Steps[str]:
        """Return the name of the analyst."""
        return read(self._get("me"), lambda reply: str(reply["name"]))

    def datasets(self) -> Steps[tuple[str, ...]]:
        """List the datasets."""
        return read(self._get("datasets"), lambda reply: tuple(map(str, reply["datasets"])))

    def describe(self, dataset: str) -> Steps[Table]:
        """Return the declaration of a dataset."""
        return self._dataset(dataset, Table.from_json)

    def published_profile(self, dataset: str) -> Steps[Profile | None]:
        """Return the newest published profile of a dataset."""
        return self._dataset(dataset, _profile)

    def _dataset(self, dataset: str, reader: Callable[[Any], T]) -> Steps[T]:
        try:
            return (yield from read(self._get(f"datasets/{quote(dataset, safe='')}"), reader))
        except ParameterError:  # no such dataset, or an invalid name
            pass
        raise unknown_dataset(dataset, (yield from self.datasets()))

    def budget(self) -> Steps[tuple[BudgetOverview, ...]]:
        """Return the spent and remaining budgets."""
        return read(self._get("budget"), lambda reply: tuple(map(BudgetOverview.from_json, reply["budgets"])))

    def estimate(self, sql: str, given: Options) -> Steps[Estimate]:
        """Estimate the privacy cost and accuracy of a query."""
        return read(send(Request("POST", "estimate", _body(sql, given)), retries=self.retries), Estimate.from_json)

    def query(self, sql: str, key: str | None, given: Options, *, free: bool = False) -> Steps[Release]:
        """Run a query; with `free`, only if nothing has to be charged for it."""
        body = _body(sql, given) | ({} if key is None else {"key": key}) | ({"free": True} if free else {})
        joint = given.get("intervals") == "joint"  # also of an answer that was recorded before
        return read(
            run_query(body, retries=self.retries),
            lambda reply: Release.from_json(reply).jointly() if joint else Release.from_json(reply),
        )

    def releases(self, limit: int, before: int | None) -> Steps[tuple[PastCharge, ...]]:
        """List past charges, page by page."""
        limit, charges = numbers.integer(limit, "limit", 1, 1000), list[PastCharge]()
        while True:
            count = min(_PAGE, limit - len(charges))
            query = {"limit": count} | ({} if before is None else {"before": before})
            page = yield from read(self._get("releases", query), _past)
            charges += page
            if len(page) < count or len(charges) >= limit:
                return tuple(charges)
            before = page[-1].id

    def release(self, number: int) -> Steps[Release]:
        """Return an earlier release."""
        return read(self._get(f"releases/{quote(str(number), safe='')}"), Release.from_json)

    def sandbox_datasets(self) -> Steps[tuple[str, ...]]:
        """List the datasets that can be tried on made-up rows."""
        return read(self._get("sandbox/datasets"), lambda reply: tuple(map(str, reply["datasets"])))

    def sandbox_describe(self, dataset: str) -> Steps[Table]:
        """Return the declaration of a dataset that can be tried on made-up rows."""
        return read(self._get(f"sandbox/datasets/{quote(dataset, safe='')}"), Table.from_json)

    def sandbox_estimate(self, sql: str, given: Options) -> Steps[Estimate]:
        """Estimate a query without looking at a budget."""
        return read(self._post("sandbox/estimate", _body(sql, given)), Estimate.from_json)

    def sandbox_query(self, sql: str, given: Options) -> Steps[Release]:
        """Answer a query on made-up rows; the address is that of no real query, on any server."""
        return read(self._post("sandbox/query", _body(sql, given)), Release.from_json)

    def _post(self, path: str, body: Mapping[str, Any]) -> Steps[Any]:
        return send(Request("POST", path, body), retries=self.retries)

    def _get(self, path: str, query: Mapping[str, str | int] | None = None) -> Steps[Any]:
        return send(Request("GET", path, query=query), retries=self.retries)


def _profile(reply: Any) -> Profile | None:
    return None if reply.get("profile") is None else Profile.from_json(reply["profile"])


def _past(reply: Any) -> list[PastCharge]:
    return [PastCharge.from_json(charge) for charge in reply["releases"]]


def _body(sql: str, given: Options) -> dict[str, Any]:
    return {"sql": sql, **options.to_json(given)}
