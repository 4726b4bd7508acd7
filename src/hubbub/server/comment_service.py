"""Comments on releases: who may read, write and remove them.

Tested in tests/server/test_comments.py.
"""

from hubbub.core import numbers
from hubbub.errors import ParameterError
from hubbub.server.accounts import Accounts, Principal
from hubbub.server.catalog_service import CatalogService
from hubbub.server.comments import MAX_COMMENTS, Comment
from hubbub.server.problems import not_found
from hubbub.server.roles import allowed
from hubbub.server.state import State

#: Characters of a comment.
MAX_TEXT = 2000


class CommentService:
    """Whoever may read a release may read and write its comments; only the author removes one, or an owner."""

    def __init__(self, catalog: CatalogService, state: State, accounts: Accounts) -> None:
        self._catalog = catalog
        self._comments = state.comments
        self._accounts = accounts

    @allowed("owner", "analyst", "auditor")
    def list(self, principal: Principal, release: int) -> list[Comment]:
        """List the comments on a release."""
        self._catalog.release(principal, release)  # raises if the principal may not read it
        return self._comments.list(release)

    @allowed("owner", "analyst", "auditor")
    def add(self, principal: Principal, release: int, text: str) -> Comment:
        """Comment on a release."""
        release = numbers.integer(release, "release", 1, 2**62)
        self._catalog.release(principal, release)
        text = text.replace("\r\n", "\n").strip()
        if not 1 <= len(text) <= MAX_TEXT or "\0" in text:
            raise ParameterError(
                "HB389", f"A comment has 1 to {MAX_TEXT:,} characters.", "Write something, or a shorter text."
            )
        at = self._accounts.clock()
        added = self._comments.add(Comment(0, release, principal.name, principal.role, text, at))
        if added is None:
            raise ParameterError(
                "HB390", f"This release has {MAX_COMMENTS} comments, which is the most.", "Remove one of them first."
            )
        return added

    @allowed("owner", "analyst", "auditor")
    def remove(self, principal: Principal, number: int) -> int:
        """Remove one's own comment, or any as an owner; return the number of its release."""
        comment = self._comments.find(number)
        own = comment is not None and (comment.author, comment.role) == (principal.name, principal.role)
        if comment is None or not (own or principal.role == "owner"):
            raise not_found("comment with this number that you can remove")
        self._comments.remove(number)
        return comment.release
