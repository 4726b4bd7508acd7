"""Saved questions, dashboards, and when each analyst last opened the pages. None of it is data, and none is an answer.

Tested in tests/server/test_saved.py.
"""

import secrets
from dataclasses import dataclass

from hubbub.server.database import Database

#: Most saved questions and dashboards of one analyst.
MAX_QUESTIONS, MAX_DASHBOARDS = 200, 50

_QUESTION = "id, analyst, dashboard, title, sql, epsilon, max_groups, max_rows, created"
_DASHBOARD = "id, analyst, title, created, shared"


@dataclass(frozen=True, slots=True)
class SavedQuestion:
    """A question with the form's options; `dashboard` is empty if it is on none."""

    id: int
    analyst: str
    dashboard: str
    title: str
    sql: str
    epsilon: str
    groups: int | None
    rows: int | None
    created: int


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A titled list of saved questions. `shared` is when other analysts were allowed to open its address."""

    id: str
    analyst: str
    title: str
    created: int
    shared: int | None


@dataclass(frozen=True, slots=True)
class LastVisit:
    """When an analyst last opened the home page, and what their caps were then.

    since, before  the end of the visit before this one, and the caps at that time; None during the first visit
    """

    seen: int
    caps: str
    since: int | None
    before: str | None


class QuestionTable:
    """Saved questions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, question: SavedQuestion) -> SavedQuestion | None:
        """Store a question under the next number; None if its analyst has too many."""
        # PostgreSQL needs the types of selected parameters; the count keeps an analyst from filling the table
        types = ("TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "BIGINT", "BIGINT", "BIGINT")
        casts = ", ".join(f"CAST(? AS {kind})" for kind in types)
        values = (question.analyst, question.dashboard, question.title, question.sql, question.epsilon)
        rows = self._database.write(
            f"INSERT INTO questions ({_QUESTION[4:]}) SELECT {casts} WHERE (SELECT count(*) FROM questions"  # noqa: S608
            f" WHERE analyst = ?) < {MAX_QUESTIONS} RETURNING {_QUESTION}",
            (*values, question.groups, question.rows, question.created, question.analyst),
        )
        return SavedQuestion(*rows[0]) if rows else None

    def find(self, id_: int) -> SavedQuestion | None:
        """Return a question by its number."""
        rows = self._database.read(f"SELECT {_QUESTION} FROM questions WHERE id = ?", (id_,))  # noqa: S608
        return SavedQuestion(*rows[0]) if rows else None

    def list(self, analyst: str, dashboard: str | None = None) -> list[SavedQuestion]:
        """Return the questions of an analyst, or those on one dashboard, in the order in which they were saved."""
        rows = self._database.read(
            f"SELECT {_QUESTION} FROM questions WHERE analyst = ? AND dashboard = COALESCE(?, dashboard) ORDER BY id",  # noqa: S608
            (analyst, dashboard),
        )
        return [SavedQuestion(*row) for row in rows]

    def remove(self, analyst: str, id_: int) -> bool:
        """Remove a question of an analyst; return whether there was one."""
        return bool(
            self._database.write("DELETE FROM questions WHERE analyst = ? AND id = ? RETURNING id", (analyst, id_))
        )

    def take_off(self, analyst: str, dashboard: str) -> None:
        """Take the questions off a dashboard, and keep them."""
        self._database.write(
            "UPDATE questions SET dashboard = '' WHERE analyst = ? AND dashboard = ?", (analyst, dashboard)
        )


class DashboardTable:
    """Dashboards, by an address that cannot be guessed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, analyst: str, title: str, at: int) -> Dashboard | None:
        """Store a dashboard; None if its analyst has too many."""
        rows = self._database.write(
            f"INSERT INTO dashboards ({_DASHBOARD}) SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),"  # noqa: S608
            " CAST(? AS BIGINT), NULL WHERE (SELECT count(*) FROM dashboards WHERE analyst = ?)"
            f" < {MAX_DASHBOARDS} RETURNING {_DASHBOARD}",
            (secrets.token_urlsafe(12), analyst, title, at, analyst),
        )
        return Dashboard(*rows[0]) if rows else None

    def find(self, id_: str) -> Dashboard | None:
        """Return a dashboard by its address."""
        rows = self._database.read(f"SELECT {_DASHBOARD} FROM dashboards WHERE id = ?", (id_,))  # noqa: S608
        return Dashboard(*rows[0]) if rows else None

    def list(self, analyst: str) -> list[Dashboard]:
        """Return the dashboards of an analyst by title."""
        rows = self._database.read(
            f"SELECT {_DASHBOARD} FROM dashboards WHERE analyst = ? ORDER BY title, id",  # noqa: S608
            (analyst,),
        )
        return [Dashboard(*row) for row in rows]

    def share(self, analyst: str, id_: str, at: int | None) -> bool:
        """Let other analysts open a dashboard, or no longer; return whether the analyst has one at this address."""
        return bool(
            self._database.write(
                "UPDATE dashboards SET shared = ? WHERE analyst = ? AND id = ? RETURNING id", (at, analyst, id_)
            )
        )

    def remove(self, analyst: str, id_: str) -> bool:
        """Remove a dashboard of an analyst; return whether there was one."""
        return bool(
            self._database.write("DELETE FROM dashboards WHERE analyst = ? AND id = ? RETURNING id", (analyst, id_))
        )


class VisitTable:
    """The last visit of each analyst."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, analyst: str) -> LastVisit | None:
        """Return the last visit of an analyst."""
        rows = self._database.read("SELECT seen, caps, since, before FROM visits WHERE analyst = ?", (analyst,))
        return LastVisit(*rows[0]) if rows else None

    def put(self, analyst: str, visit: LastVisit) -> None:
        """Record a visit."""
        self._database.write(
            "INSERT INTO visits (analyst, seen, caps, since, before) VALUES (?, ?, ?, ?, ?) ON CONFLICT (analyst) DO"
            " UPDATE SET seen = excluded.seen, caps = excluded.caps, since = excluded.since, before = excluded.before",
            (analyst, visit.seen, visit.caps, visit.since, visit.before),
        )
