"""Oversight page, for privacy officers: promise, spending, unusual behavior, self-audit and requests on one screen.

Tested in tests/server/test_oversight.py.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import Response

from hubbub.errors import AuditError
from hubbub.server.audit_service import SELF_AUDIT, WATCHED_DAYS
from hubbub.server.pages.curate import spending
from hubbub.server.pages.explain import guarantees
from hubbub.server.pages.frame import Visit, require_role

#: Hours after which a nightly report is late.
_LATE = 36


def show(visit: Visit) -> Response:
    """Show the page."""
    require_role(visit, "owner", "auditor")
    service, principal = visit.service, visit.principal
    views = service.catalog.budget(principal)
    return visit.render(
        "oversight.html",
        datasets=[
            {
                "name": each["dataset"],
                "hidden": each["hidden"],
                "protected": each["protected"],
                "cap": next((cap for cap in each["caps"] if cap["cumulative"]), None),
                **spending(visit, each["dataset"], views),
            }
            for each in guarantees(visit)
        ],
        unusual=service.audit.unusual(principal),
        days=WATCHED_DAYS,
        refused=service.audit.refused(principal),
        self_audit=_self_audit(visit),
        requests=[each for each in service.administration.requests(principal) if each.state == "open"],
        waiting=len(service.reviews.entries(principal, limit=200, waiting=True)),
    )


def _self_audit(visit: Visit) -> dict[str, Any]:
    """Return the state of the nightly self-audit as a tone, a heading, and lines."""
    try:
        report = visit.service.audit.self_audit(visit.principal)
    except AuditError as error:
        return {"tone": "bad", "said": f"{error.message} {error.remedy}", "problems": ()}
    if report is None:
        said = f"No report. Run `hubbub audit self --out {SELF_AUDIT}` every night, in the folder of hubbub.yaml."
        return {"tone": "warm", "said": said, "problems": ()}
    made = datetime.fromisoformat(str(report["time"]))
    problems = [f"{part['name']}: {problem}" for part in report["parts"] for problem in part["problems"]]
    cases = sum(int(part["cases"]) for part in report["parts"])
    when = f"on {made:%Y-%m-%d at %H:%M} UTC, {cases:,} cases in {len(report['parts'])} parts, signature verified"
    if problems or not report["sound"]:
        return {"tone": "bad", "said": f"FAILED {when}.", "problems": problems}
    if datetime.now(UTC) - made > timedelta(hours=_LATE):
        return {"tone": "warm", "said": f"Passed {when}. There is no newer report: does it still run?", "problems": ()}
    return {"tone": "good", "said": f"Passed {when}.", "problems": ()}
