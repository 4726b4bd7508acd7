"""Answers that wait for review: a list, and a page for each with the question, the noisy answer and the decision.

Tested in tests/server/test_reviews.py.
"""

from starlette.responses import Response

from hubbub.accounting.publications import text_hash
from hubbub.errors import HubbubError
from hubbub.server.catalog_service import MAX_PAGE
from hubbub.server.pages.frame import Visit, require_role
from hubbub.server.problems import status_of

#: The newest answers that are listed besides all that wait.
_NEWEST = 100


def index(visit: Visit) -> Response:
    """List the answers, those that wait first."""
    require_role(visit, "owner", "steward", "auditor")
    reviews = visit.service.reviews
    # the oldest first: its analyst has waited longest
    waiting = reviews.entries(visit.principal, limit=MAX_PAGE, waiting=True)[::-1]
    decided = [each for each in reviews.entries(visit.principal, limit=_NEWEST) if each.state != "waiting"]
    rules = visit.service.current.config.policy.reviews
    publications = visit.service.publications.waiting(visit.principal)
    return visit.render("reviews.html", reviews=[*waiting, *decided], rules=rules, publications=publications)


def show(visit: Visit) -> Response:
    """Show one answer to those who decide."""
    return _show(visit)


def _show(visit: Visit, problem: HubbubError | None = None) -> Response:
    require_role(visit, "owner", "steward")
    review, release = visit.service.reviews.show(visit.principal, visit.request.path_params["number"])
    return visit.render(
        "review.html",
        status=200 if problem is None else status_of(problem),
        review=review,
        release=release,
        problem=problem,
        reason=visit.form.get("reason", ""),
    )


def decide(visit: Visit) -> Response:
    """Approve or decline an answer."""
    approve = visit.form.get("decision") == "approve"
    number = visit.request.path_params["number"]
    try:
        visit.service.reviews.decide(visit.principal, number, approve=approve, reason=visit.form.get("reason", ""))
    except HubbubError as error:
        return _show(visit, error)
    return visit.go("/reviews", "approved" if approve else "declined")


def show_publication(visit: Visit) -> Response:
    """Show a publication that waits to those who decide."""
    return _show_publication(visit)


def _show_publication(visit: Visit, problem: HubbubError | None = None) -> Response:
    require_role(visit, "owner", "steward")
    number = visit.request.path_params["number"]
    asked, found, people, release = visit.service.publications.show(visit.principal, number)
    return visit.render(
        "publication.html",
        status=200 if problem is None else status_of(problem),
        asked=asked,
        found=found,
        people=people,
        text=text_hash(asked.title, asked.notes),
        release=release,
        problem=problem,
        reason=visit.form.get("reason", ""),
    )


def decide_publication(visit: Visit) -> Response:
    """Approve or decline a publication."""
    approve, reason = visit.form.get("decision") == "approve", visit.form.get("reason", "")
    number = visit.request.path_params["number"]
    try:
        text = visit.form.get("text", "")
        visit.service.publications.decide(visit.principal, number, approve=approve, text=text, reason=reason)
    except HubbubError as error:
        return _show_publication(visit, error)
    return visit.go("/reviews", "decided")
