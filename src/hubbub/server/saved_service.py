"""Saved questions and dashboards of analysts. Opening one charges nothing: every question is asked with `free`.

Who opens a dashboard of somebody else asks its questions under their own name, so that they see what they may see
anyway; the dashboard gives away its questions, and nothing else.

Tested in tests/server/test_saved.py.
"""

import re

from hubbub.curator.question import Question
from hubbub.errors import ParameterError
from hubbub.server.accounts import Accounts, Principal
from hubbub.server.problems import not_found
from hubbub.server.roles import allowed
from hubbub.server.saved import MAX_DASHBOARDS, MAX_QUESTIONS, Dashboard, SavedQuestion
from hubbub.server.state import State

MAX_TITLE, MAX_SQL = 100, 20_000
#: Most questions on one dashboard: each is asked when it is opened.
MAX_TILES = 12
_ID = re.compile(r"[A-Za-z0-9_-]{16}", re.ASCII)


class SavedService:
    """Analysts save questions and arrange them on dashboards, which other analysts may open if they are shared."""

    def __init__(self, state: State, accounts: Accounts) -> None:
        self._state = state
        self._accounts = accounts

    @allowed("analyst")
    def questions(self, principal: Principal) -> list[SavedQuestion]:
        """List the principal's saved questions."""
        return self._state.questions.list(principal.name)

    @allowed("analyst")
    def dashboards(self, principal: Principal) -> list[Dashboard]:
        """List the principal's dashboards."""
        return self._state.dashboards.list(principal.name)

    @allowed("analyst")
    def save(self, principal: Principal, question: Question, title: str, dashboard: str = "") -> SavedQuestion:
        """Save a question, on the dashboard with this title if one is given; a new one is made if there is none."""
        sql, dashboard = question.sql.strip(), _title(dashboard) if dashboard.strip() else ""
        if not 1 <= len(sql) <= MAX_SQL:
            raise ParameterError(
                "HB127", f"A saved query has 1 to {MAX_SQL:,} characters.", "Write a query, or a shorter one."
            )
        title = _title(title or " ".join(sql.split())[:60])
        place = self._place(principal, dashboard) if dashboard else ""
        saved = self._state.questions.add(
            SavedQuestion(
                0,
                principal.name,
                place,
                title,
                sql,
                str(question.epsilon or ""),
                question.groups,
                question.rows,
                self._accounts.clock(),
            )
        )
        if saved is None:
            raise _full(f"{MAX_QUESTIONS} saved questions")
        return saved

    @allowed("analyst")
    def question(self, principal: Principal, number: int) -> SavedQuestion:
        """Return a saved question: the principal's own, or one on a shared dashboard."""
        found = self._state.questions.find(number) if 0 < number < 2**62 else None
        if found is not None and found.analyst == principal.name:
            return found
        place = None if found is None else self._state.dashboards.find(found.dashboard)
        if found is None or place is None or place.shared is None:
            raise not_found("saved question with this number")
        return found

    @allowed("analyst")
    def remove(self, principal: Principal, number: int) -> None:
        """Remove a saved question."""
        if not (0 < number < 2**62 and self._state.questions.remove(principal.name, number)):
            raise not_found("saved question with this number")

    @allowed("analyst")
    def dashboard(self, principal: Principal, id_: str) -> tuple[Dashboard, list[SavedQuestion]]:
        """Return a dashboard with its questions: the principal's own, or a shared one."""
        found = self._state.dashboards.find(id_) if _ID.fullmatch(id_) else None
        if found is None or (found.analyst != principal.name and found.shared is None):
            raise not_found("dashboard at this address")
        return found, self._state.questions.list(found.analyst, found.id)

    @allowed("analyst")
    def share(self, principal: Principal, id_: str, *, shared: bool) -> None:
        """Let all analysts of this server open a dashboard by its address, or only its own analyst."""
        at = self._accounts.clock() if shared else None
        if not (_ID.fullmatch(id_) and self._state.dashboards.share(principal.name, id_, at)):
            raise not_found("dashboard at this address")

    @allowed("analyst")
    def remove_dashboard(self, principal: Principal, id_: str) -> None:
        """Remove a dashboard; its questions stay saved."""
        if not (_ID.fullmatch(id_) and self._state.dashboards.remove(principal.name, id_)):
            raise not_found("dashboard at this address")
        self._state.questions.take_off(principal.name, id_)

    def _place(self, principal: Principal, title: str) -> str:
        """Return the address of the principal's dashboard with a title."""
        same = [each for each in self._state.dashboards.list(principal.name) if each.title == title]
        found = same[0] if same else self._state.dashboards.add(principal.name, title, self._accounts.clock())
        if found is None:
            raise _full(f"{MAX_DASHBOARDS} dashboards")
        if len(self._state.questions.list(principal.name, found.id)) >= MAX_TILES:
            raise _full(f"{MAX_TILES} questions on this dashboard")
        return found.id


def _title(text: str) -> str:
    title = text.strip()
    if not (1 <= len(title) <= MAX_TITLE and title.isprintable()):
        raise ParameterError(
            "HB127", f"A title must have 1 to {MAX_TITLE} characters in one line.", "Change the title."
        )
    return title


def _full(what: str) -> ParameterError:
    return ParameterError("HB128", f"You have {what}, the maximum.", "Remove one that you no longer need.")
