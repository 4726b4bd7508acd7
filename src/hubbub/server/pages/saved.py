"""Saved questions and dashboards: lists, forms, and tiles that are answered free of charge.

Tested in tests/server/test_saved.py.
"""

import asyncio
import secrets
from dataclasses import dataclass

from starlette.responses import Response

from hubbub.answers.release import Release
from hubbub.curator.question import Question
from hubbub.errors import HubbubError
from hubbub.server.pages import ask
from hubbub.server.pages.frame import Visit, require_role
from hubbub.server.problems import redacted
from hubbub.server.saved import SavedQuestion

#: Questions of one dashboard that are asked at the same time.
_AT_ONCE = 2
#: The code of a question whose answer would have to be charged.
_NOT_FREE = "HB167"


@dataclass(frozen=True, slots=True)
class Tile:
    """A question with its answer, or with what stands in the way; `key` makes its form one request."""

    question: SavedQuestion
    release: Release | None
    problem: HubbubError | None
    key: str

    @property
    def must_be_paid(self) -> bool:
        """Whether the question can be answered, but not for free."""
        return self.problem is not None and self.problem.code == _NOT_FREE


def index(visit: Visit) -> Response:
    """List saved questions and dashboards."""
    require_role(visit, "analyst")
    saved, principal = visit.service.saved, visit.principal
    dashboards = saved.dashboards(principal)
    titles = {each.id: each.title for each in dashboards}
    return visit.render("saved.html", questions=saved.questions(principal), dashboards=dashboards, titles=titles)


def save(visit: Visit) -> Response:
    """Save the question of the form, and return to the list or to its dashboard."""
    require_role(visit, "analyst")
    try:
        question = ask.read_form(visit)
        title, dashboard = visit.form.get("title", ""), visit.form.get("dashboard_title", "")
        saved = visit.service.saved.save(visit.principal, question, title, dashboard)
    except HubbubError as error:
        return ask.refused(visit, error)
    return visit.go(f"/dashboards/{saved.dashboard}" if saved.dashboard else "/saved", "saved")


def remove(visit: Visit) -> Response:
    """Remove a saved question."""
    visit.service.saved.remove(visit.principal, visit.request.path_params["number"])
    return visit.go("/saved", "forgotten")


async def dashboard(visit: Visit) -> Response:
    """Show a dashboard: every question is asked for free, as whoever opens it."""
    await visit.run_free(require_role, visit, "analyst")
    found, questions = await visit.run_free(
        visit.service.saved.dashboard, visit.principal, visit.request.path_params["id"]
    )
    turns = asyncio.Semaphore(_AT_ONCE)
    tiles = await asyncio.gather(*(_tile(visit, each, turns) for each in questions))
    return await visit.run_free(
        visit.render,
        "dashboard.html",
        dashboard=found,
        tiles=tiles,
        mine=found.analyst == visit.principal.name,
        address=str(visit.request.url.replace(query="")),
    )


async def _tile(visit: Visit, saved: SavedQuestion, turns: asyncio.Semaphore) -> Tile:
    question = Question(saved.sql, epsilon=saved.epsilon or None, groups=saved.groups, rows=saved.rows)
    release, problem = None, None
    async with turns:
        try:
            release = await visit.service.queries.ask(visit.principal, question, key=None, header=None, free=True)
        except HubbubError as error:
            problem = redacted(error, str(visit.request.state.request_id))
    return Tile(saved, release, problem, secrets.token_urlsafe(24))


def share(visit: Visit) -> Response:
    """Let other analysts open a dashboard by its address, or no longer."""
    id_, shared = visit.request.path_params["id"], visit.form.get("shared") == "yes"
    visit.service.saved.share(visit.principal, id_, shared=shared)
    return visit.go(f"/dashboards/{id_}", "shared" if shared else "unshared")


def remove_dashboard(visit: Visit) -> Response:
    """Remove a dashboard; its questions stay saved."""
    visit.service.saved.remove_dashboard(visit.principal, visit.request.path_params["id"])
    return visit.go("/saved", "dashboard-removed")
