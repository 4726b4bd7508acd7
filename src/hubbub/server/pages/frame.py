"""The frame of every page: who is there, the form's token, the template, and what an error looks like.

Pages are Starlette routes of an application of their own, mounted at the root. A page is a function from a `Visit` to a
response; it runs in a thread, so it may wait for the ledger.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
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

from hubbub.answers.bars import bars
from hubbub.answers.release import Release
from hubbub.core.numbers import brief, down
from hubbub.errors import AccessError, HubbubError, ParameterError
from hubbub.server.accounts import Principal
from hubbub.server.problems import shown, status_of
from hubbub.server.service import Service
from hubbub.server.sessions import Sessions

HERE = Path(__file__).parents[1]
VERSION = version("hubbub")

#: The pages in the bar at the top, for each role.
_ALWAYS = (("/", "Home"),)
PLACES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "analyst": (*_ALWAYS, ("/ask", "Ask"), ("/releases", "Releases"), ("/explain", "Explain")),
    "owner": (*_ALWAYS, ("/releases", "Releases"), ("/curate", "Curate"), ("/explain", "Explain & audit")),
    "auditor": (*_ALWAYS, ("/releases", "Releases"), ("/curate", "Curate"), ("/explain", "Explain & audit")),
}
THEME = "hubbub-theme"
_NOTICE = "hubbub-notice"
#: What a page may say after a redirect. The cookie holds the name alone: nobody can put words into our mouth.
NOTICES = {
    "requested": "Your request was sent to the owner.",
    "granted": "Granted: the cap in hubbub.yaml was raised.",
    "refused": "Refused. The analyst sees your words.",
    "removed": "The analyst was removed, and their tokens are closed.",
    "revoked": "The token is closed.",
    "applied": "hubbub.yaml was changed; the text before is kept beside it.",
}

T = TypeVar("T")
Handler = Callable[["Visit"], Response | Awaitable[Response]]


class Visit:
    """One request for a page, by somebody who signed in (or, on the page to sign in, by nobody yet)."""

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
        """Who is there."""
        if self._principal is None:
            raise AccessError("HB700", "you have not signed in.", "Sign in with your token.")
        return self._principal

    async def away(self, call: Callable[..., T], /, *args: Any, **options: Any) -> T:
        """Run what blocks at the desk, in the principal's turn."""
        return await self.service.desk.run(self.principal, self.request.receive, call, *args, **options)

    def render(self, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Fill a template."""
        csrf = self.sessions.csrf(self.cookie)
        if isinstance(error := values.get("problem"), HubbubError):
            values["problem"] = shown(error, str(self.request.state.request_id))
        notice = NOTICES.get(self.request.cookies.get(_NOTICE, ""))
        theme = self.request.cookies.get(THEME, "")
        path = self.request.url.path
        response = HTMLResponse(
            self._environment.get_template(name).render(
                principal=self._principal,
                places=PLACES[self._principal.role] if self._principal else (),
                here="/" if path.startswith("/datasets") else f"/{path.split('/')[1]}",
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
        """Go on to a page with GET, so that a reload does not send the form again."""
        response = RedirectResponse(path, status_code=303)
        if notice is not None:
            response.set_cookie(
                _NOTICE, notice, max_age=60, path="/", httponly=True, samesite="strict", secure=self.sessions.secure
            )
        return response

    def keep(self, response: Response, cookie: str) -> None:
        """Put a session's cookie on a response."""
        response.set_cookie(
            self.sessions.cookie, cookie, path="/", httponly=True, samesite="strict", secure=self.sessions.secure
        )


class Frame:
    """Makes routes of pages."""

    def __init__(self, service: Service) -> None:
        self.service = service
        settings = service.settings
        self.sessions = Sessions(settings.secret, service.accounts, secure=settings.secure)
        self.environment = _environment()

    def route(
        self, path: str, handler: Handler, *, method: str = "GET", signed_in: bool = True, files: int = 0
    ) -> Route:
        """Make the route of one page; a form may bring so many files."""

        async def endpoint(request: Request) -> Response:
            request.scope["route"] = route  # for the log and the metrics
            visit = Visit(self, request, "", None)
            try:
                visit = await self.service.doors.sign_in(self._enter, request, signed_in=signed_in)
                request.state.principal = visit._principal  # noqa: SLF001 - for the log
                if method == "POST":
                    visit.form, visit.files = await _fields(request, files)
                    self.sessions.check(visit.cookie, visit.form.get("csrf"))
                if inspect.iscoroutinefunction(handler):
                    found: Response = await handler(visit)
                elif visit._principal is None:  # noqa: SLF001
                    found = await self.service.doors.sign_in(handler, visit)  # type: ignore[arg-type]
                else:
                    found = await visit.away(handler, visit)  # type: ignore[arg-type]
            except HubbubError as error:
                found = self.refusal(visit, error)
            return found

        route = Route(path, endpoint, methods=[method], name=f"page {method} {path}")
        return route

    def _enter(self, request: Request, *, signed_in: bool) -> Visit:
        """Say who is there; a stranger gets a cookie of their own, so that the form to sign in is protected too."""
        cookie = request.cookies.get(self.sessions.cookie, "")
        try:
            principal = self.sessions.open(cookie)
        except AccessError:
            if signed_in:
                raise
            try:
                self.sessions.check(cookie, self.sessions.csrf(cookie))
            except AccessError:
                cookie = self.sessions.stranger()
            return Visit(self, request, cookie, None)
        wait = self.service.requests_limit.take(f"{principal.role} {principal.name}")
        if wait:
            raise AccessError("HB720", "too many requests.", f"Wait {wait} s.", wait)
        return Visit(self, request, cookie, principal)

    def refusal(self, visit: Visit, error: HubbubError) -> Response:
        """Show an error; somebody who is not signed in is asked to."""
        status = status_of(error)
        if status == 401:
            path = visit.request.url.path if visit.request.method == "GET" else "/"
            return RedirectResponse(f"/sign-in?next={quote(path)}", status_code=303)
        if not visit.cookie:
            visit = Visit(self, visit.request, self.sessions.stranger(), None)
        heading = {403: "Not for you", 404: "Not found", 409: "Not now", 429: "Too fast"}.get(
            status, "That did not work"
        )
        response = visit.render("error.html", status=status, heading=heading, problem=error)
        if isinstance(error, AccessError) and error.wait:
            response.headers["Retry-After"] = str(error.wait)
        return response


async def _fields(request: Request, files: int) -> tuple[dict[str, str], dict[str, bytes]]:
    """Read a form; what is no form of ours is refused.

    A file that comes with it stays in memory: the border lets no body through that is long enough to be laid on a disk.
    """
    try:
        async with request.form(max_files=files, max_fields=50) as given:
            sent = {name: await value.read() for name, value in given.items() if isinstance(value, UploadFile)}
            return {name: value for name, value in given.items() if isinstance(value, str)}, sent
    except (HTTPException, ClientDisconnect):
        raise ParameterError("HB160", "this form cannot be read.", "Load the page again, then send it.") from None


def _environment() -> Environment:
    made = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = True
    made.filters |= {
        "brief": brief,
        "down": down,
        "fraction": lambda text: brief(Fraction(text)),
        "minute": lambda moment: f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}",
        "day": lambda seconds: f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}",
        # an attribute's value: the template escapes it as any text
        "tojson_text": lambda value: json.dumps(value, ensure_ascii=False),
    }
    made.globals |= {"bars": lambda release, column: Markup(bars(release, column)), "noise": noise, "paid": paid}  # noqa: S704 - ours
    return made


def paid(release: Release) -> str:
    """Say what an answer cost, whenever it was: on a page it is always looked at once more."""
    return replace(release, replayed=False).price()


def noise(release: Release) -> str:
    """Say how large the noise is beside the error that sampling leaves anyhow."""
    known = [ratio for ratio in release.ratio if ratio is not None]
    if not known:
        return "there is no count to compare it with"
    largest = max(known)
    if 0.75 < largest < 1.5:
        return "about as large as the sampling error of a count of that size"
    if largest <= 1:
        return f"at most {largest:.2g} of the sampling error of a count of that size"
    return f"up to {largest:.2g} times the sampling error of a count of that size: small groups say little at this ε"


def drawing(svg: str) -> Markup:
    """Let a drawing of ours through: its texts are escaped where it is made."""
    return Markup(svg)  # noqa: S704


def only(visit: Visit, *roles: str) -> None:
    """Refuse a page to other roles before anything of it is made; what it calls is guarded by the service itself."""
    if visit.principal.role not in roles:
        raise AccessError(
            "HB710", f"this page is not for the role {visit.principal.role}.", f"It is for: {', '.join(roles)}."
        )
