"""Query page: free estimates, charged answers, and a second sample to improve an answer.

A query is sent by POST and answered with a redirect to its release, so a reload never charges. The form carries a key:
the same form sent again with the same query is the same request and is charged once.

Tested in tests/server/test_pages.py.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from math import exp, log
from typing import Any

from starlette.responses import Response

from hubbub.answers.budget import BudgetOverview, CapState
from hubbub.answers.combine import refinable, repeat_query
from hubbub.answers.estimate import Estimate, Expected, margin, significant
from hubbub.answers.release import Release
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.curator.question import Question
from hubbub.errors import HubbubError, ParameterError
from hubbub.semantics.odds import meaning
from hubbub.server import page_plots as plots
from hubbub.server.pages import dataset as datasets
from hubbub.server.pages.frame import Visit, drawing, require_role
from hubbub.server.pages.home import spent
from hubbub.server.pages.releases import fetch, number_of
from hubbub.server.problems import status_of

_START = "0.1"
#: Steps of the slider within a power of ten.
_STEPS = tuple(map(Fraction, ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")))
_QUOTED = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")""")
_CLAUSE = re.compile(r" (FROM|WHERE|GROUP BY|HAVING|ORDER BY|LIMIT) ")
_COMMENT = re.compile(r" -- (?:\$1|groups|rows|weight of|raw)[^'\"]*$")
_LIMIT = {name: re.compile(rf" -- (?:groups = \d+, )?{name} = (\d+)") for name in ("groups", "rows")}
_MIN_COST, _MAX_COST = Fraction(1, 1000), Fraction(10)


def show(visit: Visit) -> Response:
    """Show the form, with a release if the query string names one."""
    require_role(visit, "analyst")
    query = visit.request.query_params
    form = {"sql": "", "epsilon": _START, "groups": "", "rows": "", "dataset": _scope(visit, query.get("dataset", ""))}
    shown = query.get("release")
    if "saved" in query:
        return _page(visit, form | _saved(visit, query["saved"]))
    if shown is None:
        suggested = datasets.examples(visit, [form["dataset"]]) if form["dataset"] else []
        form["sql"] = suggested[0]["sql"] if suggested else ""
        return _page(visit, form)
    release = fetch(visit, shown)
    form |= {"sql": laid_out(release.receipt["query"]), "epsilon": brief(release.epsilon)}
    form |= {name: found[1] for name in ("groups", "rows") if (found := _LIMIT[name].search(release.receipt["query"]))}
    state = _narrowest(
        [view for view in visit.service.catalog.budget(visit.principal) if view.dataset in _datasets(release)]
    )
    bar: dict[str, Any] = (
        {} if state is None else {"bar": drawing(plots.budget(state.spent, state.epsilon)), "bar_text": spent(state)}
    )
    return _page(
        visit,
        form,
        release=release,
        question=asked(release.receipt["query"]),
        numbers=shown,
        combined="combined" in release.receipt,
        refinable=refinable(release.receipt),
        refine_epsilon=brief(release.epsilon * 2),
        **bar,
    )


def _saved(visit: Visit, number: str) -> dict[str, str]:
    """Return the fields of a saved question."""
    found = visit.service.saved.question(visit.principal, number_of(number))
    limits = {"groups": found.groups, "rows": found.rows}
    fields = {"sql": found.sql, "epsilon": found.epsilon or _START, "title": found.title}
    return fields | {name: "" if limit is None else str(limit) for name, limit in limits.items()}


def _scope(visit: Visit, name: str) -> str:
    """Return the dataset that the page is limited to; empty if none was named that the analyst can query."""
    return name if name in visit.service.catalog.datasets(visit.principal) else ""


def estimate(visit: Visit) -> Response:
    """Show the form with a free estimate."""
    form = _form(visit)
    try:
        found = visit.service.queries.estimate(visit.principal, _question(form))
    except HubbubError as error:
        return _page(visit, form, problem=error)
    return _page(visit, form, found=found)


def read_form(visit: Visit) -> Question:
    """Return the question of the form, to save it."""
    return _question(_form(visit))


def refused(visit: Visit, error: HubbubError) -> Response:
    """Show the form again, with an error."""
    return _page(visit, _form(visit) | {"title": visit.form.get("title", "")}, problem=error)


def laid_out(query: str) -> str:
    """Break a query of the ledger into lines by clause; quoted text stays unchanged.

    >>> print(laid_out("SELECT a, COUNT(*) AS n FROM t WHERE b = ' FROM ' GROUP BY a -- rows = 1"))
    SELECT a, COUNT(*) AS n
    FROM t
    WHERE b = ' FROM '
    GROUP BY a
    """
    parts = _QUOTED.split(_COMMENT.sub("", query))
    return "".join(part if place % 2 else _CLAUSE.sub(r"\n\1 ", part) for place, part in enumerate(parts))


def asked(query: str) -> str:
    """Break a query of the ledger into lines, with its limits on a line of its own.

    >>> print(asked("SELECT COUNT(*) AS n FROM t -- rows = 1"))
    SELECT COUNT(*) AS n
    FROM t
    -- rows = 1
    """
    limits = _COMMENT.search(query)
    return laid_out(query) + (f"\n{limits[0].strip()}" if limits else "")


def _datasets(release: Release) -> set[str]:
    return {each["dataset"] for each in release.receipt["data"]}


async def spend(visit: Visit) -> Response:
    """Run and charge a query, once for each form and query, and redirect to the answer."""
    form = _form(visit)
    try:
        question = _question(form)
        header = _header(visit, "spend", form["sql"], form["epsilon"], form["groups"], form["rows"])
        release = await visit.service.queries.ask(visit.principal, question, key=None, header=header)
    except HubbubError as error:
        return await visit.run_free(_page, visit, form, problem=error)
    if not release.epsilon:  # public tables: there is no charge to redirect to, and a reload costs nothing
        return await visit.run_free(_page, visit, form, release=release)
    return visit.go(f"/ask?release={release.receipt['ledger'][0]['sequence']}#answer")


async def sandbox(visit: Visit) -> Response:
    """Answer a query on made-up rows; the form keeps the question, to run it for real."""
    form = _form(visit)
    try:
        release = await visit.service.sandbox.ask(visit.principal, _question(form))
    except HubbubError as error:
        return await visit.run_free(_page, visit, form, problem=error)
    return await visit.run_free(_page, visit, form, release=release)


async def refine(visit: Visit) -> Response:
    """Run the query again with fresh noise, and redirect to both releases combined."""
    first, price = visit.form.get("release", ""), visit.form.get("epsilon", "").strip()
    sql, options = repeat_query((await visit.run_free(fetch, visit, first)).receipt, epsilon=price)
    header = _header(visit, "refine", first, price)
    # name the new release after the request, so that the same form is never charged twice
    release = await visit.service.queries.ask(visit.principal, Question(sql, **options), key=header, header=header)
    return visit.go(f"/ask?release={first}-{release.receipt['ledger'][0]['sequence']}#answer")


def _form(visit: Visit) -> dict[str, str]:
    fields = {name: visit.form.get(name, "").strip() for name in ("epsilon", "groups", "rows")}
    return {"sql": visit.form.get("sql", ""), "dataset": _scope(visit, visit.form.get("dataset", "")), **fields}


def _question(form: Mapping[str, str]) -> Question:
    limits: dict[str, int | None] = {}
    for name in ("groups", "rows"):
        text = form[name]
        if text and not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise ParameterError(
                "HB103", f"{name} must be a whole number.", "Leave it empty or enter a number such as 1."
            )
        limits[name] = int(text) if text else None
    return Question(form["sql"], epsilon=form["epsilon"] or None, groups=limits["groups"], rows=limits["rows"])


def _header(visit: Visit, *fields: str) -> str:
    """Return the Idempotency-Key of a form: a hash of its hidden key and its fields."""
    key = visit.form.get("key", "")
    if not 16 <= len(key) <= 100 or not key.isascii():
        raise ParameterError("HB160", "The form is incomplete. Nothing was charged.", "Reload the page.")
    return f"page {sha256(repr((key, *fields)).encode()).hexdigest()}"


def _page(
    visit: Visit,
    form: Mapping[str, str],
    *,
    found: Estimate | None = None,
    problem: HubbubError | None = None,
    **values: Any,
) -> Response:
    principal, service = visit.principal, visit.service
    views = {view.dataset: view for view in service.catalog.budget(principal)}
    scope = [form["dataset"]] if form.get("dataset") else None
    free = found is not None and not found.epsilon
    public, found = found if free else None, None if free else found
    concerned = [view for name, view in views.items() if name in (found.datasets if found else scope or views)]
    price = found.epsilon if found else _price(form["epsilon"])
    largest = max((view.largest for view in concerned), default=Fraction(1))
    prices = ladder(largest, price)
    if found is not None:  # no prediction outside the planned range
        prices = [each for each in prices if found.scaling[0][0] <= each <= found.scaling[-1][0]]
    delta = found.delta if found else Fraction(0)
    said = meaning(epsilon=price, delta=delta)
    first = _first(found)
    filled = {
        "release": None,
        "question": form["sql"],
        "numbers": "",
        "combined": False,
        "refinable": False,
        "refine_epsilon": "",
        "likely": None,
        "likely_of": "",
        "reach": "",
        "bar": "",
        "bar_text": "",
        "coming": "",
        "expected": [],
    } | values
    if found is not None:
        filled |= {"expected": _rows(found), "coming": drawing(_bar(concerned, found.epsilon))}
        if first is not None:
            reach = 2.5 * first.plus_minus
            filled |= {
                "likely": drawing(plots.likely(found.noise, first.plus_minus, reach)),
                "likely_of": first.name,
                "reach": significant(reach),
            }
    key = visit.form.get("key", "")
    page = visit.render(
        "ask.html",
        status=status_of(problem) if problem else 200,
        form=form,
        problem=problem,
        estimate=found,
        public=public,
        free=free or (scope is not None and scope[0] not in views),
        key=key if 16 <= len(key) <= 100 else secrets.token_urlsafe(24),
        steps=[step(each, found, delta, concerned) for each in prices],
        step=prices.index(price),
        belief=said.belief,
        odds=said.odds,
        tables=datasets.schemas(visit, scope),
        examples=datasets.examples(visit, scope),
        unit=datasets.unit(visit, scope),
        dashboards=service.saved.dashboards(principal),
        saved_title=form.get("title", ""),
        **filled,
    )
    # cacheable until sign-out; otherwise the back button could not return to an estimate, which was a POST
    page.headers["Cache-Control"] = "private, no-cache"
    return page


def _price(text: str) -> Fraction:
    try:
        return numbers.epsilon(text)
    except HubbubError:
        return Fraction(_START)


def ladder(largest: Fraction, wanted: Fraction) -> list[Fraction]:
    """Return the costs that the slider offers: round values up to the maximum, and the chosen one.

    >>> [str(each) for each in ladder(Fraction(1), Fraction(1, 7))][-4:]
    ['1/2', '3/5', '4/5', '1']
    """
    most = min(max(largest, wanted), _MAX_COST)
    least = max(_MIN_COST, most / 200)
    rungs = {rung * Fraction(10) ** power for rung in _STEPS for power in range(-3, 2)}
    return sorted({rung for rung in rungs if least <= rung <= most} | {wanted})


def step(price: Fraction, found: Estimate | None, delta: Fraction, views: Sequence[BudgetOverview]) -> dict[str, Any]:
    """Return all texts that depend on the cost, so that the script only has to show them."""
    said = meaning(epsilon=price, delta=delta)
    margins, half = [], None
    if found is not None:
        scaled = [replace(each, plus_minus=scale(found, place, price)) for place, each in enumerate(found.expected)]
        planned = any(price == epsilon for epsilon, _ in found.scaling)
        margins = [margin(each) if planned else f"about {margin(each)}" for each in scaled]
        first = _first(found)
        half = None if first is None else scale(found, found.expected.index(first), price)
    return {
        "epsilon": brief(price),
        "belief": said.belief,
        "odds": said.odds,
        "margins": margins,
        "half": half,
        "share": _share(views, price),
    }


def scale(found: Estimate, place: int, price: Fraction) -> float:
    """Interpolate the expected margin of error between the planned costs, on logarithmic scales."""
    points = [(log(epsilon), log(max(each[place].plus_minus, 1e-300))) for epsilon, each in found.scaling]
    x = log(price)
    if len(points) == 1:
        return exp(points[0][1] - (x - points[0][0]))
    right = next((i for i, point in enumerate(points[1:], 1) if x <= point[0]), len(points) - 1)
    (x0, y0), (x1, y1) = points[right - 1], points[right]
    return exp(y0 + (y1 - y0) * (x - x0) / (x1 - x0))


def _first(found: Estimate | None) -> Expected | None:
    return next((each for each in found.expected if each.unit == "value"), None) if found else None


def _rows(found: Estimate) -> list[dict[str, str]]:
    wide, narrow = found.epsilon / 4, found.epsilon * 4
    return [
        {
            "name": each.name,
            "margin": margin(each),
            "less": f"±{significant(scale(found, place, wide))}",
            "more": f"±{significant(scale(found, place, narrow))}",
        }
        for place, each in enumerate(found.expected)
    ]


def _narrowest(views: Sequence[BudgetOverview]) -> CapState | None:
    caps = [state for view in views for state in view.caps if state.scope != "query"]
    return min(caps, key=lambda state: state.left, default=None)


def _bar(views: Sequence[BudgetOverview], coming: Fraction) -> str:
    state = _narrowest(views)
    return "" if state is None else plots.budget(state.spent, state.epsilon, coming=coming)


def _share(views: Sequence[BudgetOverview], price: Fraction) -> float:
    state = _narrowest(views)
    if state is None:
        return 0.0
    used = float((state.epsilon if state.spent is None else state.spent) / state.epsilon)
    return round(100 * max(0.0, min(float(price / state.epsilon), 1 - used)), 2)
