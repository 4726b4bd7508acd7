"""Answers that somebody must approve before their analyst can read them: see `hubbub.accounting.reviews`.

Tested in tests/server/test_reviews.py.
"""

from hubbub.accounting.reviews import Reviewed
from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.server.accounts import Principal
from hubbub.server.catalog_service import MAX_PAGE
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.problems import not_found
from hubbub.server.roles import allowed


class ReviewService:
    """Owners and stewards read and decide; auditors read who decided what."""

    def __init__(self, current: CurrentCurator) -> None:
        self._current = current

    @allowed("owner", "steward", "auditor")
    def entries(
        self, principal: Principal, *, limit: int = 50, before: int | None = None, waiting: bool = False
    ) -> tuple[Reviewed, ...]:
        """List answers that need or needed review, newest first; or only those that are `waiting`."""
        limit = numbers.integer(limit, "limit", 1, MAX_PAGE)
        with self._current.using() as curator:
            found = [each for each in curator.reviews() if before is None or each.number < before]
        found = [each for each in found if each.state == "waiting"] if waiting else found
        return tuple(found[:limit])

    @allowed("owner", "steward")
    def show(self, principal: Principal, number: int) -> tuple[Reviewed, Release | None]:
        """Return an answer and what was decided about it; None if the query has no answer yet."""
        with self._current.using() as curator:
            review = next((each for each in curator.reviews() if each.number == number), None)
            if review is None:
                raise not_found("answer with this number that needs review")
            answered = curator.releases(None, limit=1, before=number + 1)[0].released
            return review, curator.release(number, analyst=None) if answered else None

    @allowed("owner", "steward")
    def decide(self, principal: Principal, number: int, *, approve: bool, reason: str) -> Reviewed:
        """Approve or decline an answer, in the name of the principal; the decision is final."""
        with self._current.using() as curator:
            return curator.decide(number, approve=approve, by=principal.name, reason=reason)
