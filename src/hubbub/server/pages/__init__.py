"""The web pages: rendered by the server, usable without JavaScript, with a strict content security policy."""

from typing import Any

from fastapi import FastAPI
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from hubbub.server.pages import (
    api_docs,
    ask,
    crowd,
    curate,
    dataset,
    explain,
    home,
    lab,
    oversight,
    published,
    releases,
    reviews,
    saved,
    schedules,
    screens,
    sign_in,
)
from hubbub.server.pages.frame import HERE, Frame, Visit
from hubbub.server.problems import not_found
from hubbub.server.service import Service


def mount(app: FastAPI, service: Service) -> None:
    """Add the pages to an application, after all other routes."""
    page = Frame(service).route
    routes: list[BaseRoute] = [
        page("/sign-in", sign_in.show, signed_in=False),
        page("/sign-in", sign_in.sign_in, method="POST", signed_in=False),
        page("/sign-out", sign_in.sign_out, method="POST"),
        page("/theme", sign_in.theme, method="POST", signed_in=False),
        page("/", home.show),
        page("/requests", home.request, method="POST"),
        page("/ask", ask.show),
        page("/ask/estimate", ask.estimate, method="POST"),
        page("/ask/sandbox", ask.sandbox, method="POST"),
        page("/ask/spend", ask.spend, method="POST"),
        page("/ask/refine", ask.refine, method="POST"),
        page("/datasets/{name}", dataset.show),
        page("/docs", api_docs.show),
        page("/releases", releases.index),
        page("/releases/{numbers}.{form:str}", releases.export),
        page("/releases/{number:int}/publish", published.publish, method="POST"),
        page("/releases/{number:int}/withdraw", published.withdraw, method="POST"),
        page("/releases/{number:int}/comments", releases.comment, method="POST"),
        page("/releases/{number:int}/uncomment", releases.remove_comment, method="POST"),
        page("/releases/{numbers}", releases.show),
        page("/saved", saved.index),
        page("/saved", saved.save, method="POST"),
        page("/saved/{number:int}/remove", saved.remove, method="POST"),
        page("/dashboards/{id}", saved.dashboard),
        page("/dashboards/{id}/share", saved.share, method="POST"),
        page("/dashboards/{id}/remove", saved.remove_dashboard, method="POST"),
        page("/schedules", schedules.index),
        page("/schedules", schedules.add, method="POST"),
        page("/schedules/{analyst}/{name}", schedules.show),
        page("/schedules/{analyst}/{name}/answers.csv", schedules.export),
        page("/schedules/{analyst}/{name}/remove", schedules.remove, method="POST"),
        page("/reviews", reviews.index),
        page("/reviews/publications/{number:int}", reviews.show_publication),
        page("/reviews/publications/{number:int}", reviews.decide_publication, method="POST"),
        page("/reviews/{number:int}", reviews.show),
        page("/reviews/{number:int}", reviews.decide, method="POST"),
        page("/published/{page}.{form:str}", published.export, signed_in=False),
        page("/published/{page}", published.show, signed_in=False),
        page("/curate", curate.show),
        page("/curate/requests/{number:int}", curate.decide, method="POST"),
        page("/curate/analysts", curate.add_analyst, method="POST"),
        page("/curate/analysts/remove", curate.remove_analyst, method="POST"),
        page("/curate/analysts/restore", curate.restore_analyst, method="POST"),
        page("/curate/tokens", curate.issue, method="POST"),
        page("/curate/tokens/revoke", curate.revoke, method="POST"),
        page("/curate/config/check", curate.check, method="POST"),
        page("/curate/config/apply", curate.apply, method="POST"),
        page("/oversight", oversight.show),
        page("/explain", explain.show),
        page("/explain/verify", explain.verify, method="POST"),
        page("/explain/report", explain.report),
        page("/explain/lab", lab.show),
        page("/explain/lab", lab.begin, method="POST", files=1),
        page("/explain/lab/{number}.{form:str}", lab.export),
        page("/explain/lab/{number}/state", lab.state),
        page("/explain/lab/{number}/cancel", lab.cancel, method="POST"),
        page("/explain/lab/{number}", lab.run),
        page("/explain/crowd", crowd.show),
        page("/explain/crowd", crowd.begin, method="POST"),
        page("/explain/crowd/{number}.svg", crowd.export),
        page("/explain/crowd/{number}/state", crowd.state),
        page("/explain/crowd/{number}/cancel", crowd.cancel, method="POST"),
        page("/explain/crowd/{number}", crowd.run),
        page("/explain/{name}", screens.show),
        Mount("/static", Assets(directory=HERE / "static")),
    ]

    app.router.routes.extend([*routes, _Rest(page("/{rest:path}", _nothing, signed_in=False))])


def _nothing(_: Visit) -> Response:
    raise not_found("page at this address")


class Assets(StaticFiles):
    """Style and script, which browsers may cache and revalidate."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        """Allow caching; nothing else on this server may be cached."""
        response = super().file_response(*args, **options)
        response.headers["Cache-Control"] = "no-cache"
        return response


class _Rest(Route):
    """All other addresses, except those of the API, which reports its own errors."""

    def __init__(self, route: Route) -> None:
        super().__init__(route.path, route.endpoint, methods=["GET"], name=route.name)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match everything outside the API."""
        return (Match.NONE, {}) if scope.get("path", "").startswith("/api/") else super().matches(scope)


__all__ = ["Assets", "mount"]
