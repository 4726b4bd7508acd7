"""The pages of the set-up: one for each step, usable without JavaScript.

Tested in tests/server/test_setup.py and tests/server/test_setup_browser.py.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import ceil, exp
from threading import Lock
from typing import Any

from markupsafe import Markup
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from hubbub.accounting.filters import Budget
from hubbub.config.summary import guarantee
from hubbub.core import numbers
from hubbub.core.schema import Kind
from hubbub.errors import AccessError, HubbubError
from hubbub.server.accounts import Accounts
from hubbub.server.pages import Assets
from hubbub.server.pages.frame import HERE, THEME, VERSION, environment
from hubbub.server.problems import status_of
from hubbub.server.setup.access import COOKIE, Access
from hubbub.server.setup.draft import DELTA, STEPS, SetupDraft
from hubbub.server.setup.sources import choose_files, choose_tables, files_in, tables_of
from hubbub.server.state import State

#: The budgets of the slider.
EPSILONS = ("0.1", "0.25", "0.5", "1", "1.5", "2", "3", "4", "5", "6", "8", "10")
#: Days until the tokens of the last page expire.
TOKEN_DAYS = 90
USES = {
    "auto": "sum and average; bounds found privately",
    "bounds": "sum and average; bounds declared here",
    "values": "group by the values listed here",
    "filter": "filter only",
    "hidden": "nothing: hide this column",
}
_FIELDS = 4000


@dataclass
class SetupPages:
    """The set-up of one hubbub.yaml; `url` is where hubbub will serve, and `finished` is called when it is written."""

    draft: SetupDraft
    url: str
    finished: Callable[[], Awaitable[None]]
    access: Access = field(default_factory=Access)
    written: bool = False
    _lock: Lock = field(default_factory=Lock)

    def routes(self) -> list[BaseRoute]:
        """Return all routes."""
        return [
            Route("/", self._home),
            Route("/setup", self._welcome),
            Route("/setup", self._begin, methods=["POST"]),
            Route("/theme", self._theme, methods=["POST"]),
            Route("/setup/write", self._guarded(self._write), methods=["POST"]),
            Route("/setup/restart", self._guarded(self._restart), methods=["POST"]),
            Route("/setup/{step}", self._guarded(self._show)),
            Route("/setup/{step}", self._guarded(self._take), methods=["POST"]),
            Mount("/static", Assets(directory=HERE / "static")),
        ]

    async def _home(self, _: Request) -> Response:
        return RedirectResponse(f"/setup/{self.draft.next}", 303)

    async def _welcome(self, request: Request) -> Response:
        """Show what will happen. A page that is only looked at, by a preview of the link, does not use it up."""
        with suppress(AccessError):
            self.access.check(request.cookies.get(COOKIE))
            return RedirectResponse(f"/setup/{self.draft.next}", 303)
        given = request.query_params.get("token", "")
        try:
            self.access.check_link(given)
        except AccessError as error:
            return self._error(request, error)
        return self._render(request, "setup-welcome.html", link_token=given, folder=self.draft.path.resolve().parent)

    async def _begin(self, request: Request) -> Response:
        form = await _form(request)
        try:
            session = self.access.begin(form.get("link_token", ""))
        except AccessError as error:
            return self._error(request, error)
        response = RedirectResponse("/setup/data", 303)
        response.set_cookie(COOKIE, session, path="/", httponly=True, samesite="strict")
        return response

    async def _theme(self, request: Request) -> Response:
        form = await _form(request)
        response = RedirectResponse("/", 303)
        response.set_cookie(THEME, "dark" if form.get("theme") == "dark" else "light", path="/", httponly=True)
        return response

    def _guarded(self, page: Callable[[Request, dict[str, str]], Response]) -> Callable[[Request], Any]:
        """Check who sends a request, then run the page in a thread, one at a time."""

        async def endpoint(request: Request) -> Response:
            try:
                self.access.check(request.cookies.get(COOKIE))
                form = await _form(request) if request.method == "POST" else {}
                if request.method == "POST":
                    self.access.check_form(form.get("csrf"))
            except AccessError as error:
                return self._error(request, error)

            def run() -> Response:
                with self._lock:
                    return page(request, form)

            return await run_in_threadpool(run)

        return endpoint

    def _show(self, request: Request, _: dict[str, str]) -> Response:
        step = request.path_params["step"]
        if step not in STEPS or not self.draft.reachable(step):
            return RedirectResponse(f"/setup/{self.draft.next}", 303)
        return self._step(request, step)

    def _take(self, request: Request, form: dict[str, str]) -> Response:
        """Take a step, or show what is wrong with it."""
        step, draft = request.path_params["step"], self.draft
        takers: dict[str, Callable[[dict[str, str]], None]] = {
            "data": self._take_data,
            "people": draft.take_people,
            "columns": draft.take_columns,
            "budget": draft.take_budget,
            "analyst": draft.take_analyst,
        }
        if step not in takers or not draft.reachable(step):
            return RedirectResponse(f"/setup/{draft.next}", 303)
        try:
            takers[step](form)
        except HubbubError as error:
            return self._step(request, step, problem=error, form=form)
        if step == "data" and "look" in form:
            return RedirectResponse("/setup/data", 303)
        return RedirectResponse(f"/setup/{list(STEPS)[list(STEPS).index(step) + 1]}", 303)

    def _take_data(self, form: dict[str, str]) -> None:
        chosen = [value for name, value in form.items() if name.startswith("table-")]
        if "look" in form:
            self.draft.offered = tables_of(form.get("address", ""))
            self.draft.address = form.get("address", "").strip()
        elif any("://" in value for value in chosen):
            self.draft.take_tables(choose_tables(self.draft.offered, chosen))
        else:
            self.draft.take_tables(choose_files(self.draft.path.resolve().parent, chosen))

    def _restart(self, _: Request, __: dict[str, str]) -> Response:
        """Forget everything that was chosen."""
        self.draft = SetupDraft(self.draft.path)
        return RedirectResponse("/setup/data", 303)

    def _write(self, request: Request, _: dict[str, str]) -> Response:
        """Write hubbub.yaml, create the tokens, and let the server start."""
        draft = self.draft
        if draft.next != "review" or self.written:
            return RedirectResponse(f"/setup/{draft.next}", 303)
        try:
            config = draft.write()
            self.written = True
            state = State.open(config)
            try:
                accounts = Accounts(state, analysts=lambda: config.policy.analysts)
                owner = accounts.issue("owner", "owner", TOKEN_DAYS).text
                analyst = accounts.issue(draft.analyst, "analyst", TOKEN_DAYS).text
            finally:
                state.close()
        except HubbubError as error:
            response = self._step(request, "review", problem=error)
            # if only the tokens are missing, the server can start, and `hubbub analyst token` creates them
            response.background = BackgroundTask(self.finished) if self.written else None
            return response
        response = self._render(
            request, "setup-done.html", owner=owner, analyst=analyst, draft=draft, url=self.url, days=TOKEN_DAYS
        )
        response.delete_cookie(COOKIE, path="/")
        response.headers["Connection"] = "close"
        response.background = BackgroundTask(self.finished)
        return response

    def _step(
        self, request: Request, step: str, *, problem: HubbubError | None = None, form: dict[str, str] | None = None
    ) -> Response:
        draft = self.draft
        values: dict[str, Any] = {"draft": draft, "step": step, "steps": STEPS, "problem": problem, "form": form or {}}
        if step == "data":
            values["files"] = files_in(draft.path.resolve().parent)
            values["chosen"] = {table.source for table in draft.tables}
        elif step == "columns":
            values |= {"uses": USES, "kinds": list(Kind), "allowed": allowed}
        elif step == "budget":
            values |= {"meanings": meanings(), "delta": DELTA, "nearest": nearest, "sentence": sentence}
        elif step == "review":
            values |= {"text": draft.text(), "sentence": sentence}
        status = 200 if problem is None else 422
        return self._render(request, f"setup-{step}.html", status=status, **values)

    def _error(self, request: Request, error: HubbubError) -> Response:
        return self._render(request, "setup-error.html", status=status_of(error), problem=error)

    def _render(self, request: Request, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        theme = request.cookies.get(THEME, "")
        csrf = self.access.csrf()
        text = _TEMPLATES.get_template(name).render(
            principal=None,
            places=(),
            here="",
            path="/",
            notice=None,
            version=VERSION,
            theme=theme if theme in ("dark", "light") else "",
            token=lambda: Markup('<input type="hidden" name="csrf" value="{}">').format(csrf),
            **values,
        )
        return HTMLResponse(text, status)


_TEMPLATES = environment()


def allowed(kind: Kind) -> list[str]:
    """Return what analysts can do with a column of this kind."""
    if kind.numeric:
        return list(USES)
    dated = kind in (Kind.DATE, Kind.TIMESTAMP)
    return ["filter", *(["bounds"] if dated else ["values"]), "hidden"]


def sentence(epsilon: str) -> str:
    """Say what a budget means; odds are rounded up.

    >>> sentence("1").partition(": ")[2]
    'odds of 1 to 1 become at most 2.72 to 1.'
    """
    value = numbers.epsilon(epsilon)
    sure = guarantee(Budget(value, Fraction(0)))
    return (
        f"Someone who is 50% sure of a fact about one person can end up at most {sure} sure: odds of 1 to 1 become at "
        f"most {odds(value)} to 1."
    )


def odds(epsilon: Fraction) -> str:
    """Return e^ε rounded up to three digits, for people to read.

    >>> odds(Fraction(3)), odds(Fraction(10)), odds(Fraction(1000))
    ('20.1', '22,100', 'more than a million')
    """
    if epsilon > 13:
        return "more than a million"
    value = exp(float(epsilon))
    step = 10.0 ** (len(str(int(value))) - 3)
    return f"{Decimal(repr(ceil(value / step) * step)).quantize(Decimal('0.01')).normalize():,f}"


def meanings() -> list[dict[str, str]]:
    """Return what each budget of the slider means."""
    return [
        {
            "epsilon": each,
            "sentence": sentence(each),
            "sure": guarantee(Budget(Fraction(each), Fraction(0))),
            "odds": f"{odds(Fraction(each))} to 1",
            "word": "strong" if Fraction(each) <= 1 else "medium" if Fraction(each) <= 3 else "weak",
        }
        for each in EPSILONS
    ]


def nearest(epsilon: str) -> int:
    """Return the place of the slider that is nearest to a budget."""
    value = Fraction(epsilon)
    return min(range(len(EPSILONS)), key=lambda place: abs(Fraction(EPSILONS[place]) - value))


async def _form(request: Request) -> dict[str, str]:
    async with request.form(max_files=0, max_fields=_FIELDS) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}
