"""What all pages share: session, CSRF check, template rendering, and error pages.

A page is a function from a `Visit` to a response. It runs in a thread, so it may wait for the ledger.

Tested in tests/server/test_pages.py.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from hubbub.answers.release import Release
from hubbub.answers.sampling import noise_sentences
from hubbub.core.numbers import brief, round_down
from hubbub.errors import AccessError, HubbubError, ParameterError
from hubbub.server.accounts import Principal
from hubbub.server.free_pool import presented
from hubbub.server.pages.answer_table import answer_table
from hubbub.server.problems import redacted, status_of
from hubbub.server.service import Service
from hubbub.server.sessions import Sessions

HERE = Path(__file__).parents[1]
VERSION = version("hubbub")

#: Navigation links for each role.
_ALWAYS = (("/", "Home"),)
_ANSWERS = (("/releases", "Releases"), ("/schedules", "Scheduled"))
_REVIEWS = ("/reviews", "Reviews")
_OFFICE = (("/curate", "Administration"), ("/oversight", "Oversight"), ("/explain", "Explain and audit"))
NAVIGATION: Mapping[str, tuple[tuple[str, str], ...]] = {
    "analyst": (*_ALWAYS, ("/ask", "Query"), ("/saved", "Saved"), *_ANSWERS, ("/explain", "Explain")),
    "owner": (*_ALWAYS, *_ANSWERS, _REVIEWS, *_OFFICE),
    "auditor": (*_ALWAYS, *_ANSWERS, _REVIEWS, *_OFFICE),
    "steward": (_REVIEWS,),
}
#: Pages that are below another one of the navigation.
_UNDER = {"datasets": "/", "dashboards": "/saved"}
THEME = "hubbub-theme"
_NOTICE = "hubbub-notice"
#: Messages shown after a redirect. The cookie holds only the name, so that no one can inject text.
NOTICES = {
    "requested": "Your request was sent to the data owner.",
    "granted": "Request granted. The cap in hubbub.yaml was raised.",
    "refused": "Request refused. The analyst can see your note.",
    "removed": "The analyst was removed and their tokens were revoked. You can undo this below.",
    "restored": "The analyst was restored with their caps and groups. Old tokens stay revoked: create a new one.",
    "revoked": "The token was revoked.",
    "published": "The release is public. Everyone with its address can read it.",
    "publication": "The publication waits until other people approved it.",
    "withdrawn": "The public page was withdrawn. Publishing the release again restores it at the same address.",
    "approved": "Recorded. If enough people approved it, the analyst can read the answer now.",
    "declined": "The answer was declined. The analyst can read your reason.",
    "decided": "Your decision about the publication was recorded in the ledger.",
    "scheduled": "The query was scheduled. It runs for each block after the block has ended.",
    "unscheduled": "The query was removed from the schedule. Its answers stay.",
    "saved": "The question was saved.",
    "forgotten": "The question was removed from your saved questions.",
    "shared": "Every analyst of this server who has the address can now open this dashboard.",
    "unshared": "Only you can open this dashboard now.",
    "dashboard-removed": "The dashboard was removed. Its questions are still saved.",
    "commented": "Your comment was added.",
    "uncommented": "The comment was removed.",
    "applied": "hubbub.yaml was updated. The previous version is kept as hubbub.yaml.previous.",
}

#: The letter that opens a page after g, where it is not the first one of its name.
_LETTERS = {"/schedules": "c", "/reviews": "v", "/curate": "a"}

T = TypeVar("T")
Handler = Callable[["Visit"], Response | Awaitable[Response]]


class Visit:
    """One request for a page, by a signed-in user or, on the sign-in page, by a visitor."""

    def __init__(self, frame: "Frame", request: Request, cookie: str, principal: Principal | None) -> None:
        self.request = request
        self.service = frame.service
        self.sessions = frame.sessions
        self.cookie = cookie
        self.form: Mapping[str, str] = {}
        self.files: Mapping[str, bytes] = {}
        self._principal = principal
        self._environment = frame.environment

    @property
    def principal(self) -> Principal:
        """The signed-in user."""
        if self._principal is None:
            raise AccessError("HB700", "You are not signed in.", "Sign in with your token.")
        return self._principal

    async def run_free(self, call: Callable[..., T], /, *args: Any, **options: Any) -> T:
        """Run a blocking call in the free pool."""
        return await self.service.free_pool.run(self.principal, self.request.receive, call, *args, **options)

    def render(self, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Render a template."""
        csrf = self.sessions.csrf(self.cookie)
        if isinstance(error := values.get("problem"), HubbubError):
            values["problem"] = redacted(error, str(self.request.state.request_id))
        notice = NOTICES.get(self.request.cookies.get(_NOTICE, ""))
        theme = self.request.cookies.get(THEME, "")
        path = self.request.url.path
        response = HTMLResponse(
            self._environment.get_template(name).render(
                principal=self._principal,
                places=NAVIGATION[self._principal.role] if self._principal else (),
                shortcuts=shortcuts(self._principal.role) if self._principal else (),
                here=_UNDER.get(path.split("/")[1], f"/{path.split('/')[1]}"),
                path=path if self.request.method == "GET" else "/",
                theme=theme if theme in ("dark", "light") else "",
                token=lambda: Markup('<input type="hidden" name="csrf" value="{}">').format(csrf),
                version=VERSION,
                notice=notice,
                **values,
            ),
            status_code=status,
        )
        if notice:
            response.delete_cookie(_NOTICE, path="/")
        return response

    def go(self, path: str, notice: str | None = None) -> RedirectResponse:
        """Redirect to a page with GET, so that a reload does not send the form again."""
        response = RedirectResponse(path, status_code=303)
        if notice is not None:
            response.set_cookie(
                _NOTICE, notice, max_age=60, path="/", httponly=True, samesite="strict", secure=self.sessions.secure
            )
        return response

    def keep(self, response: Response, cookie: str) -> None:
        """Set the session cookie on a response."""
        response.set_cookie(
            self.sessions.cookie, cookie, path="/", httponly=True, samesite="strict", secure=self.sessions.secure
        )


class Frame:
    """Turns page functions into routes."""

    def __init__(self, service: Service) -> None:
        self.service = service
        settings = service.settings
        self.sessions = Sessions(settings.keyring, service.accounts, secure=settings.secure)
        self.environment = environment()

    def route(
        self, path: str, handler: Handler, *, method: str = "GET", signed_in: bool = True, files: int = 0
    ) -> Route:
        """Return the route of one page; `files` is the maximum number of uploaded files."""

        async def endpoint(request: Request) -> Response:
            request.scope["route"] = route  # for the log and the metrics
            visit = Visit(self, request, "", None)
            try:
                visit = await self._identify(request, signed_in=signed_in)
                request.state.principal = visit._principal  # noqa: SLF001 - for the log
                if method == "POST":
                    visit.form, visit.files = await _fields(request, files)
                    self.sessions.check(visit.cookie, visit.form.get("csrf"))
                if inspect.iscoroutinefunction(handler):
                    response: Response = await handler(visit)
                elif visit._principal is None:  # noqa: SLF001
                    response = await self._reserved(request, handler, visit)  # type: ignore[arg-type]
                else:
                    response = await visit.run_free(handler, visit)  # type: ignore[arg-type]
            except HubbubError as error:
                response = self.error_page(visit, error)
            return response

        route = Route(path, endpoint, methods=[method], name=f"page {method} {path}")
        return route

    async def _identify(self, request: Request, *, signed_in: bool) -> Visit:
        """Identify the user. A visitor without a session needs no thread: nothing has to be read for that."""
        if not signed_in and self.sessions.cookie not in request.cookies:
            return Visit(self, request, self.sessions.anonymous(), None)
        return await self._reserved(request, self._visit, request, signed_in=signed_in)

    async def _reserved(self, request: Request, call: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a call on the reserved threads, in the turn of its session or address."""
        cookie = sha256(request.cookies.get(self.sessions.cookie, "").encode()).hexdigest()[:16]
        return await self.service.reserved.sign_in(f"{presented(request)} {cookie}", call, *args, **options)

    def _visit(self, request: Request, *, signed_in: bool) -> Visit:
        """Identify the user; an anonymous visitor gets a cookie too, so that the sign-in form has a CSRF token."""
        cookie = request.cookies.get(self.sessions.cookie, "")
        try:
            principal = self.sessions.open(cookie)
        except AccessError:
            if signed_in:
                raise
            try:
                self.sessions.check(cookie, self.sessions.csrf(cookie))
            except AccessError:
                cookie = self.sessions.anonymous()
            return Visit(self, request, cookie, None)
        wait = self.service.requests_limit.take(f"{principal.role} {principal.name}")
        if wait:
            raise AccessError("HB720", "Too many requests.", f"Wait {wait} s and try again.", wait)
        return Visit(self, request, cookie, principal)

    def error_page(self, visit: Visit, error: HubbubError) -> Response:
        """Show an error, or redirect to the sign-in page."""
        status = status_of(error)
        if status == 401:
            path = visit.request.url.path if visit.request.method == "GET" else "/"
            return RedirectResponse(f"/sign-in?next={quote(path)}", status_code=303)
        if not visit.cookie:
            visit = Visit(self, visit.request, self.sessions.anonymous(), None)
        heading = {403: "Not allowed", 404: "Not found", 409: "Not possible now", 429: "Too many requests"}.get(
            status, "Something went wrong"
        )
        response = visit.render("error.html", status=status, heading=heading, problem=error)
        if isinstance(error, AccessError) and error.wait:
            response.headers["Retry-After"] = str(error.wait)
        return response


async def _fields(request: Request, files: int) -> tuple[dict[str, str], dict[str, bytes]]:
    """Read a form and its files.

    Uploaded files stay in memory: the middleware rejects bodies that are large enough to be spooled to disk.
    """
    try:
        async with request.form(max_files=files, max_fields=50) as form:
            files_sent = {name: await value.read() for name, value in form.items() if isinstance(value, UploadFile)}
            return {name: value for name, value in form.items() if isinstance(value, str)}, files_sent
    except (HTTPException, ClientDisconnect):
        raise ParameterError(
            "HB160", "The form could not be read.", "Reload the page and send the form again."
        ) from None


def environment() -> Environment:
    """Return the templates with their filters."""
    templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined)
    templates.trim_blocks = templates.lstrip_blocks = True
    templates.filters |= {
        "brief": brief,
        "down": round_down,
        "fraction": lambda text: brief(Fraction(text)),
        "minute": lambda moment: f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}",
        "day": lambda seconds: f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}",
        # for an attribute; the template escapes it like any text
        "tojson_text": lambda value: json.dumps(value, ensure_ascii=False),
    }
    templates.globals |= {"answer_table": answer_table, "noise": noise, "paid": paid}
    return templates


def paid(release: Release) -> str:
    """Return what an answer cost when it was first released."""
    return replace(release, replayed=False).cost()


def noise(release: Release) -> str:
    """Compare the noise of each column with its sampling error."""
    return ". ".join(noise_sentences(release)) or "its sampling error does not follow from what was released"


def drawing(svg: str) -> Markup:
    """Mark an SVG as safe; its texts are escaped where it is drawn."""
    return Markup(svg)  # noqa: S704


def shortcuts(role: str) -> list[tuple[str, str, str]]:
    """Return the key after g, the address, and the name of each page of the navigation."""
    return [(_LETTERS.get(address, name[0].lower()), address, name) for address, name in NAVIGATION[role]]


def require_role(visit: Visit, *roles: str) -> None:
    """Reject other roles before a page is rendered; the service checks the role again at each call."""
    if visit.principal.role not in roles:
        raise AccessError(
            "HB710", f"The role {visit.principal.role} cannot open this page.", f"It is open to: {', '.join(roles)}."
        )
