"""Comments on releases: for whoever may read the release. They are texts of people, and no part of the answer.

Tested in tests/server/test_comments.py.
"""

from dataclasses import dataclass

from hubbub.server.database import Database

#: Most comments on one release.
MAX_COMMENTS = 200
_FIELDS = "id, release, author, role, text, at"


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on the release with this number."""

    id: int
    release: int
    author: str
    role: str
    text: str
    at: int


class CommentTable:
    """The comments of all releases."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, comment: Comment) -> Comment | None:
        """Store a comment under the next number; None if the release has too many."""
        rows = self._database.write(
            "INSERT INTO comments (release, author, role, text, at) SELECT CAST(? AS BIGINT), CAST(? AS TEXT),"  # noqa: S608
            " CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT) WHERE"
            f" (SELECT count(*) FROM comments WHERE release = ?) < {MAX_COMMENTS} RETURNING {_FIELDS}",
            (comment.release, comment.author, comment.role, comment.text, comment.at, comment.release),
        )
        return Comment(*rows[0]) if rows else None

    def list(self, release: int) -> list[Comment]:
        """Return the comments on a release, the oldest first."""
        rows = self._database.read(f"SELECT {_FIELDS} FROM comments WHERE release = ? ORDER BY id", (release,))  # noqa: S608
        return [Comment(*row) for row in rows]

    def find(self, id_: int) -> Comment | None:
        """Return a comment by its number."""
        rows = self._database.read(f"SELECT {_FIELDS} FROM comments WHERE id = ?", (id_,))  # noqa: S608
        return Comment(*rows[0]) if rows else None

    def remove(self, id_: int) -> None:
        """Delete a comment."""
        self._database.write("DELETE FROM comments WHERE id = ?", (id_,))
