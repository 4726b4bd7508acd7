"""The requests behind each method of a session, and how their answers are read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hubbub.answers import options
from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.estimate import Estimate
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.client.protocol import Request, Steps, run_query, read, send
from hubbub.core import numbers
from hubbub.core.schema import Table, unknown_dataset
from hubbub.errors import ParameterError

#: So many charges come in one page.
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Calls:
    """Every call, each tried again at most so many times."""

    retries: int

    def me(self) -> Steps[str]:
        """Say who asks."""
        return read(self._get("me"), lambda found: str(found["name"]))

    def datasets(self) -> Steps[tuple[str, ...]]:
        """List the datasets."""
        return read(self._get("datasets"), lambda found: tuple(map(str, found["datasets"])))

    def describe(self, dataset: str) -> Steps[Table]:
        """Show what is declared about a dataset."""
        try:
            return (yield from read(self._get(f"datasets/{quote(dataset, safe='')}"), Table.from_json))
        except ParameterError:  # no such dataset, or no such name
            pass
        raise unknown_dataset(dataset, (yield from self.datasets()))

    def budget(self) -> Steps[tuple[BudgetOverview, ...]]:
        """Say what is spent and left."""
        return read(self._get("budget"), lambda found: tuple(map(BudgetOverview.from_json, found["budgets"])))

    def estimate(self, sql: str, given: Options) -> Steps[Estimate]:
        """Say what a question would cost."""
        return read(send(Request("POST", "estimate", _body(sql, given)), retries=self.retries), Estimate.from_json)

    def query(self, sql: str, key: str | None, given: Options) -> Steps[Release]:
        """Ask, for a price."""
        body = _body(sql, given) | ({} if key is None else {"key": key})
        return read(run_query(body, retries=self.retries), Release.from_json)

    def releases(self, limit: int, before: int | None) -> Steps[tuple[PastCharge, ...]]:
        """List what was asked and paid for, page by page."""
        limit, found = numbers.integer(limit, "limit", 1, 1000), list[PastCharge]()
        while True:
            count = min(_PAGE, limit - len(found))
            which = {"limit": count} | ({} if before is None else {"before": before})
            page = yield from read(self._get("releases", which), _past)
            found += page
            if len(page) < count or len(found) >= limit:
                return tuple(found)
            before = page[-1].id

    def release(self, number: int) -> Steps[Release]:
        """Give an earlier answer once more."""
        return read(self._get(f"releases/{quote(str(number), safe='')}"), Release.from_json)

    def _get(self, path: str, query: Mapping[str, str | int] | None = None) -> Steps[Any]:
        return send(Request("GET", path, query=query), retries=self.retries)


def _past(found: Any) -> list[PastCharge]:
    return [PastCharge.from_json(each) for each in found["releases"]]


def _body(sql: str, given: Options) -> dict[str, Any]:
    return {"sql": sql, **options.to_json(given)}
