"""What changed for an analyst since the last visit: budgets, decisions on requests, new answers and public pages.

Tested in tests/server/test_news.py.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.answers.budget import BudgetOverview
from hubbub.core.numbers import readable
from hubbub.errors import HubbubError
from hubbub.server.accounts import Accounts, Principal
from hubbub.server.catalog_service import CatalogService
from hubbub.server.roles import allowed
from hubbub.server.saved import LastVisit
from hubbub.server.state import State

#: Seconds without the home page that end a visit.
PAUSE = 1800
#: Seconds for which a page that was just opened is not recorded again.
_MINUTE = 60
#: Entries of each kind that are looked at.
_MOST = 50

_SCOPES = {
    "analyst": "Your budget on {dataset}",
    "project": "The budget of project {name} on {dataset}",
    "group": "The budget of group {name} on {dataset}",
    "dataset": "The budget of all analysts on {dataset}",
}


@dataclass(frozen=True, slots=True)
class NewsItem:
    """One change: a sentence, and the page that shows more."""

    text: str
    address: str


@dataclass(frozen=True, slots=True)
class SinceLastVisit:
    """What changed since `since`, in seconds since 1970; None on the first visit, when nothing can have changed."""

    since: int | None
    news: tuple[NewsItem, ...]


class NewsService:
    """Compares what an analyst sees with what they saw when they last left."""

    def __init__(self, catalog: CatalogService, state: State, accounts: Accounts) -> None:
        self._catalog = catalog
        self._state = state
        self._accounts = accounts

    @allowed("analyst")
    def changes(self, principal: Principal) -> SinceLastVisit:
        """Return what changed since the last visit, and record this one."""
        now, caps = self._accounts.clock(), self._caps(principal)
        last = self._state.visits.find(principal.name)
        if last is None:
            self._state.visits.put(principal.name, LastVisit(now, caps, None, None))
            return SinceLastVisit(None, ())
        if now - last.seen > PAUSE:
            visit = LastVisit(now, caps, last.seen, last.caps)
        else:
            visit = replace(last, seen=now, caps=caps)
        if now - last.seen > _MINUTE or visit.caps != last.caps:
            self._state.visits.put(principal.name, visit)
        if visit.since is None:
            return SinceLastVisit(None, ())
        news = (
            *_budgets(json.loads(visit.before or "{}"), json.loads(caps)),
            *self._decisions(principal, visit.since),
            *self._answers(principal, visit.since),
            *self._pages(principal, visit.since),
        )
        return SinceLastVisit(visit.since, news)

    def _caps(self, principal: Principal) -> str:
        """Write the datasets and caps of an analyst as one text."""
        found = dict.fromkeys(self._catalog.datasets(principal), "")
        for view in self._catalog.budget(principal):
            found |= dict(_listed(view))
        return json.dumps(found, sort_keys=True, ensure_ascii=False)

    def _decisions(self, principal: Principal, since: int) -> Iterator[NewsItem]:
        for request in self._state.requests.list(principal.name, limit=_MOST):
            if request.decided is not None and request.decided > since:
                note = f" Note: {request.note}" if request.note else ""
                yield NewsItem(
                    f"Your request for ε = {readable(request.epsilon)} on {request.dataset} was {request.state}.{note}",
                    "/#more",
                )

    def _answers(self, principal: Principal, since: int) -> Iterator[NewsItem]:
        charges = [
            each
            for each in self._catalog.releases(principal, limit=_MOST)
            if each.released and each.time.timestamp() > since
        ]
        if charges:
            count = f"{len(charges)}{' or more' if len(charges) == _MOST else ''}"
            datasets = ", ".join(sorted({each.dataset for each in charges}))
            plural = "answer was" if len(charges) == 1 else "answers were"
            yield NewsItem(f"{count} {plural} recorded for you on {datasets}.", "/releases")

    def _pages(self, principal: Principal, since: int) -> Iterator[NewsItem]:
        """Yield the public pages of the analyst's own releases; those of others are not announced."""
        seen = set()
        for action in self._state.publications.list(limit=_MOST):
            if action.at <= since or action.release in seen:
                continue
            seen.add(action.release)
            try:
                self._catalog.release(principal, action.release)
            except HubbubError:
                continue
            if action.action == "published":
                text = f"Your release {action.release} has a public page: {action.title}"
                yield NewsItem(text, f"/published/{action.page}")
            else:
                yield NewsItem(f"The public page of your release {action.release} was withdrawn.", "/releases")


def _listed(view: BudgetOverview) -> Iterator[tuple[str, str]]:
    for state in view.caps:
        if state.scope in _SCOPES and not state.block:
            key = json.dumps([view.dataset, state.scope, state.name, state.per or ""], ensure_ascii=False)
            yield key, str(state.epsilon)


def _budgets(before: dict[str, str], now: dict[str, str]) -> Iterator[NewsItem]:
    """Compare two texts of `_caps`."""
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if old == new:
            continue
        if not key.startswith("["):
            yield NewsItem(f"You can query {key} now." if old is None else f"You can no longer query {key}.", "/")
            continue
        dataset, scope, name, per = json.loads(key)
        if dataset not in before or dataset not in now:
            continue  # said already
        what = _SCOPES[scope].format(dataset=dataset, name=name) + (f" for each {per}" if per else "")
        if old is None:
            yield NewsItem(f"{what} is new: ε = {_amount(new)}.", "/")
        elif new is None:
            yield NewsItem(f"{what} no longer exists; it was ε = {_amount(old)}.", "/")
        else:
            yield NewsItem(f"{what} is now ε = {_amount(new)}; it was {_amount(old)}.", "/")


def _amount(text: str | None) -> str:
    return readable(Fraction(text or 0))
