"""What every signed-in person may look up: their identity, datasets, budgets, releases, and what ε means.

Tested in tests/server/test_api.py.
"""

from datetime import datetime
from fractions import Fraction
from typing import Any

from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.release import Release
from hubbub.config.summary import hidden_fact, protected_unit
from hubbub.core import numbers
from hubbub.core.schema import Table, unknown_dataset
from hubbub.curator import Curator
from hubbub.errors import AccessError
from hubbub.semantics.odds import EVEN, Meaning, meaning
from hubbub.server.accounts import Principal
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.problems import not_found
from hubbub.server.query_pool import QueryPool
from hubbub.server.roles import allowed

#: Maximum number of entries on one page of a list.
MAX_PAGE = 500


class CatalogService:
    """Read-only views. Analysts see their own; owners and auditors see everyone's."""

    def __init__(self, current: CurrentCurator, pool: QueryPool) -> None:
        self._current = current
        self._pool = pool

    @allowed("owner", "analyst", "auditor", "steward")
    def me(self, principal: Principal) -> dict[str, Any]:
        """Return the name and role of the principal."""
        return {"name": principal.name, "role": principal.role, "expires": principal.expires}

    @allowed("owner", "analyst", "auditor")
    def meaning(
        self,
        principal: Principal,
        *,
        epsilon: numbers.Number,
        delta: numbers.Number,
        prior: numbers.Number | None,
        people: int | None,
    ) -> Meaning:
        """Explain privacy parameters."""
        pure = numbers.exact(delta, "delta") == 0
        return meaning(
            epsilon=numbers.epsilon(epsilon),
            delta=Fraction(0) if pure else numbers.delta(delta),
            prior=EVEN if prior is None else numbers.in_range(prior, "prior", Fraction(0), Fraction(1)),
            people=people,
        )

    @allowed("owner", "analyst", "auditor")
    def datasets(self, principal: Principal) -> tuple[str, ...]:
        """List datasets: those an analyst may query, or all."""
        with self._current.using() as curator:
            return _visible(curator, principal)

    @allowed("owner", "analyst", "auditor")
    def tables(self, principal: Principal) -> tuple[Table, ...]:
        """Return the declarations of all datasets that a principal may see, without looking at any data."""
        with self._current.using() as curator:
            return tuple(curator.tables[name].shown() for name in _visible(curator, principal))

    @allowed("owner", "analyst", "auditor")
    def describe(self, principal: Principal, name: str) -> dict[str, Any]:
        """Return the declarations of a dataset and its privacy unit."""
        with self._current.using() as curator:
            if name not in (visible := _visible(curator, principal)):
                raise unknown_dataset(name, visible)
            declared = curator.config.datasets[name]
            # analysts must not even learn the names of columns that the owner left out or hid
            disabled = () if principal.role == "analyst" else declared.disabled
            profile = None if declared.table.public else curator.profile(name)
            return {
                **curator.tables[name].shown().to_json(),
                "protected": protected_unit(declared),
                "neighbors": hidden_fact(declared),
                "rows": curator.public_rows(name),
                "disabled": [{"column": column, "reason": reason} for column, reason in disabled],
                "profile": None if profile is None else profile.to_json(),
            }

    @allowed("owner", "analyst", "auditor")
    def budget(self, principal: Principal, analyst: str | None = None) -> tuple[BudgetOverview, ...]:
        """Return spent and remaining budget: an analyst's own, or that of one or all analysts."""
        with self._current.using() as curator:
            if principal.role == "analyst":
                if analyst not in (None, principal.name):
                    raise AccessError(
                        "HB712", "Analysts can view only their own budget.", "Remove the `analyst` parameter."
                    )
                return curator.budget(principal.name)
            analysts = curator.config.policy.analysts
            if analyst is not None and analyst not in analysts:
                raise not_found(f"analyst {analyst!r}")
            names = [name for name in analysts if analyst in (None, name)]
            return tuple(view for name in names for view in curator.budget(name, exact=True))

    @allowed("owner", "auditor")
    def spending(self, principal: Principal, dataset: str, *, limit: int) -> dict[str, list[tuple[datetime, Fraction]]]:
        """Return how the spent ε of each analyst on a dataset grew, over its newest charges."""
        with self._current.using() as curator:
            return curator.spending(dataset, limit=limit)

    @allowed("owner", "analyst", "auditor")
    def releases(self, principal: Principal, *, limit: int = 50, before: int | None = None) -> tuple[PastCharge, ...]:
        """List charges, newest first: an analyst's own, or all."""
        with self._current.using() as curator:
            limit = numbers.integer(limit, "limit", 1, MAX_PAGE)
            return curator.releases(_own(principal), limit=limit, before=before, unseen=self._pool.unseen_charges())

    @allowed("owner", "analyst", "auditor")
    def release(self, principal: Principal, number: int) -> Release:
        """Return a recorded release at no cost: one of an analyst's own, or any."""
        with self._current.using() as curator:
            return curator.release(number, analyst=_own(principal), unseen=self._pool.unseen_charges())


def _own(principal: Principal) -> str | None:
    return principal.name if principal.role == "analyst" else None


def _visible(curator: Curator, principal: Principal) -> tuple[str, ...]:
    return curator.datasets(principal.name) if principal.role == "analyst" else tuple(curator.tables)
