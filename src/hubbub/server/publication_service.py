"""Public pages of releases: an owner publishes and withdraws them; everyone with the address can read them.

Where a dataset of the release has a review rule, the publication waits until other people approved it. Every act is an
entry of the ledger.

Tested in tests/server/test_publications.py.
"""

import re
import secrets
import threading

from hubbub.accounting import publications as chain
from hubbub.accounting.publications import Publication, people_needed, text_hash
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
    """Owners publish and withdraw, stewards approve; auditors read who did. It costs nothing: a release was charged."""

    def __init__(self, current: CurrentCurator, catalog: CatalogService, state: State, accounts: Accounts) -> None:
        self._current = current
        self._catalog = catalog
        self._state = state
        self._accounts = accounts
        self._acts = threading.Lock()  #: so that a page that is withdrawn is not published by an approval on its way

    @allowed("owner")
    def publish(self, principal: Principal, number: int, title: str, notes: str = "") -> PublicationAction:
        """Publish a release on a page of its own, or request it where others must approve."""
        title, notes = title.strip(), notes.strip()
        if not (1 <= len(title) <= MAX_TITLE and title.isprintable() and len(notes) <= MAX_NOTES):
            raise ParameterError(
                "HB677",
                f"The title must have 1 to {MAX_TITLE} characters in one line, and the notes at most {MAX_NOTES}.",
                "Change the title or the notes.",
            )
        number = numbers.integer(number, "release", 1, 2**62)
        release = self._catalog.release(principal, number)  # raises if there is no such release
        with self._acts, self._current.using() as curator:
            curator.refuse_held_release(number)
            people = people_needed(curator.config.policy, _datasets(release))
            act: PublicationKind = "requested" if people else "published"
            text = text_hash(title, notes)
            chain.note(curator.ledger, curator.charge(number), act, by=principal.name, text=text)
            earlier = self._state.publications.list(release=number, limit=1)
            # 96 random bits: a page that was never announced cannot be found by trying
            page = earlier[0].page if earlier else secrets.token_urlsafe(12)
            return self._add(principal, act, page, number, title, notes)

    @allowed("owner")
    def withdraw(self, principal: Principal, page: str) -> PublicationAction:
        """Take a page off; publishing its release again undoes this."""
        with self._acts, self._current.using() as curator:
            last = self._public(page)
            charge, text = curator.charge(last.release), text_hash(last.title, last.notes)
            chain.note(curator.ledger, charge, "withdrawn", by=principal.name, text=text)
            return self._add(principal, "withdrawn", page, last.release, last.title, last.notes)

    @allowed("owner", "steward", "auditor")
    def waiting(self, principal: Principal) -> tuple[PublicationAction, ...]:
        """List the publications that wait for approval, the longest wait first."""
        with self._current.using() as curator, curator.ledger.snapshot() as snapshot:
            numbers = chain.waiting(snapshot)
        asked = [self._asked(number) for number in numbers]
        return tuple(each for each in asked if each is not None)

    @allowed("owner", "steward")
    def show(self, principal: Principal, number: int) -> tuple[PublicationAction, Publication, int, Release]:
        """Return a publication that waits: what was asked, who approved it, how many must, and the release."""
        asked = self._asked(number)
        with self._current.using() as curator:
            release = None if asked is None else curator.release(number, analyst=None)
            with curator.ledger.snapshot() as snapshot:
                found = chain.publication(snapshot, number)
            if asked is None or release is None or found.state != "requested":
                raise not_found("publication that waits for approval")
            return asked, found, people_needed(curator.config.policy, _datasets(release)), release

    @allowed("owner", "steward")
    def decide(
        self, principal: Principal, number: int, *, approve: bool, text: str, reason: str = ""
    ) -> PublicationAction:
        """Approve or decline a publication; it is made with the last approval that it needs.

        `text` is the hash of the title and introduction that the person read.
        """
        with self._acts, self._current.using() as curator:
            asked, found, people, _ = self.show(principal, number)
            if text_hash(asked.title, asked.notes) != found.text:
                raise not_found("publication that waits for approval")
            charge, reason = curator.charge(number), reason.strip()
            enough = chain.decide(
                curator.ledger, charge, approve=approve, by=principal.name, text=text, reason=reason, people=people
            )
            if approve and not enough:
                return asked
            if enough:
                chain.note(curator.ledger, charge, "published", by=principal.name, text=text)
            done: PublicationKind = "published" if enough else "declined"
            return self._add(principal, done, asked.page, number, asked.title, asked.notes)

    def _asked(self, number: int) -> PublicationAction | None:
        """Return the newest request to publish a release, if nothing was done about it."""
        last = self._state.publications.list(release=number, limit=1)
        return last[0] if last and last[0].action == "requested" else None

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
        last = None if known is None else self._state.publications.public(known.release)
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


def _datasets(release: Release) -> list[str]:
    return [each["dataset"] for each in release.receipt["data"]]
