"""Public pages of releases: an owner publishes and withdraws them; everyone with the address can read them.

Tested in tests/server/test_publications.py.
"""

import re
import secrets

from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.errors import ParameterError
from hubbub.server.accounts import Accounts, Principal
from hubbub.server.catalog_service import MAX_PAGE, CatalogService
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.problems import not_found
from hubbub.server.roles import allowed
from hubbub.server.state import PublicationAction, PublicationKind, State

MAX_TITLE, MAX_NOTES = 200, 5000
_PAGE = re.compile(r"[A-Za-z0-9_-]{16}", re.ASCII)


class PublicationService:
    """Owners publish and withdraw; auditors read who did. A release was charged before, so this costs nothing."""

    def __init__(self, current: CurrentCurator, catalog: CatalogService, state: State, accounts: Accounts) -> None:
        self._current = current
        self._catalog = catalog
        self._state = state
        self._accounts = accounts

    @allowed("owner")
    def publish(self, principal: Principal, number: int, title: str, notes: str = "") -> PublicationAction:
        """Publish a release on a page of its own; a release that has one is published there again."""
        title, notes = title.strip(), notes.strip()
        if not (1 <= len(title) <= MAX_TITLE and title.isprintable() and len(notes) <= MAX_NOTES):
            raise ParameterError(
                "HB677",
                f"The title must have 1 to {MAX_TITLE} characters in one line, and the notes at most {MAX_NOTES}.",
                "Change the title or the notes.",
            )
        number = numbers.integer(number, "release", 1, 2**62)
        self._catalog.release(principal, number)  # raises if there is no such release
        with self._current.using() as curator:
            curator.refuse_held_release(number)
        earlier = self._state.publications.list(release=number, limit=1)
        # 96 random bits: a page that was never announced cannot be found by trying
        page = earlier[0].page if earlier else secrets.token_urlsafe(12)
        return self._add(principal, "published", page, number, title, notes)

    @allowed("owner")
    def withdraw(self, principal: Principal, page: str) -> PublicationAction:
        """Take a page off; publishing its release again undoes this."""
        last = self._public(page)
        return self._add(principal, "withdrawn", page, last.release, last.title, last.notes)

    @allowed("owner", "auditor")
    def actions(
        self, principal: Principal, *, release: int | None = None, limit: int = 50, before: int | None = None
    ) -> list[PublicationAction]:
        """List what was published and withdrawn, by whom and when, newest first."""
        limit = numbers.integer(limit, "limit", 1, MAX_PAGE)
        return self._state.publications.list(release=release, limit=limit, before=before)

    def read(self, page: str) -> tuple[PublicationAction, Release]:
        """Return a public page and its release, for anyone; a withdrawn page is like one that never was."""
        last = self._public(page)
        with self._current.using() as curator:
            return last, curator.release(last.release, analyst=None)

    def _public(self, page: str) -> PublicationAction:
        """Return the last action on the release of a page, if it published the page.

        Two owners who publish a release at once make two pages: only the newer one is public, so that withdrawing it
        leaves none.
        """
        known = self._state.publications.last(page) if _PAGE.fullmatch(page) else None
        last = None if known is None else self._state.publications.list(release=known.release, limit=1)[0]
        if last is None or last.page != page or last.action != "published":
            raise not_found("page at this address")
        return last

    def _add(
        self, principal: Principal, action: PublicationKind, page: str, release: int, title: str, notes: str
    ) -> PublicationAction:
        at = self._accounts.clock()
        return self._state.publications.add(
            page, release=release, title=title, notes=notes, action=action, who=principal.name, at=at
        )
