"""Public pages of releases: no sign-in, and nothing but what was published. All of it is free.

Tested in tests/server/test_publications.py.
"""

import json
from collections.abc import Mapping
from hashlib import sha256

from starlette.responses import Response

from hubbub.answers.release import Release
from hubbub.answers.sheet import sheet
from hubbub.errors import AccessError
from hubbub.server.limits import address
from hubbub.server.pages.frame import Visit
from hubbub.server.pages.releases import without_formulas
from hubbub.server.problems import not_found

_KINDS: Mapping[str, str] = {"json": "application/json", "csv": "text/csv; charset=utf-8"}


def show(visit: Visit) -> Response:
    """Show a published release with its data sheet."""
    _limit(visit)
    page = visit.request.path_params["page"]
    published, release = visit.service.publications.read(page)
    files = [(f"{page}.{form}", sha256(_content(release, form).encode()).hexdigest()) for form in _KINDS]
    described = sheet(release, title=published.title, files=files, notes=published.notes or None)
    return visit.render("published.html", published=published, release=release, sheet=described)


def export(visit: Visit) -> Response:
    """Download a published release: the answer as CSV, or the answer and its receipt as JSON."""
    _limit(visit)
    page, form = visit.request.path_params["page"], visit.request.path_params["form"]
    _, release = visit.service.publications.read(page)
    if form not in _KINDS:
        raise not_found("export of this format")
    headers = {"Content-Disposition": f'attachment; filename="{page}.{form}"'}
    return Response(_content(release, form), media_type=_KINDS[form], headers=headers)


def _content(release: Release, form: str) -> str:
    if form == "csv":
        return without_formulas(release).to_csv()
    return json.dumps(release.document(), ensure_ascii=False, indent=1)


def publish(visit: Visit) -> Response:
    """Publish a release from its page."""
    number = visit.request.path_params["number"]
    form = visit.form
    done = visit.service.publications.publish(visit.principal, number, form.get("title", ""), form.get("notes", ""))
    notice = "published" if done.action == "published" else "publication"
    return visit.go(f"/releases/{number}#publication", notice)


def withdraw(visit: Visit) -> Response:
    """Withdraw the public page of a release."""
    number = visit.request.path_params["number"]
    visit.service.publications.withdraw(visit.principal, visit.form.get("page", ""))
    return visit.go(f"/releases/{number}#publication", "withdrawn")


def _limit(visit: Visit) -> None:
    """Limit the requests of one address, as nobody signs in here."""
    client = visit.request.client
    wait = visit.service.requests_limit.take(f"public {address(None if client is None else client.host)}")
    if wait:
        raise AccessError("HB720", "Too many requests.", f"Wait {wait} s and try again.", wait)
