"""Sign-in page, sign-out, and the choice of light or dark theme.

Tested in tests/server/test_pages.py.
"""

from starlette.responses import Response

from hubbub.errors import AccessError
from hubbub.server.limits import address
from hubbub.server.pages.frame import THEME, Visit
from hubbub.server.problems import status_of

#: Errors that count as guesses; an expired token does not.
_GUESSES = ("HB701", "HB704")


async def show(visit: Visit) -> Response:
    """Show the sign-in form; it reads nothing, so it needs no thread."""
    response = visit.render("sign-in.html", next=_local_path(visit.request.query_params.get("next", "/")), problem=None)
    visit.keep(response, visit.cookie)
    return response


def sign_in(visit: Visit) -> Response:
    """Exchange a token for a session; the number of guesses is limited."""
    service, next_page = visit.service, _local_path(visit.form.get("next", "/"))
    where = address(visit.request.client.host if visit.request.client else None)
    wait = service.attempts_limit.wait(where)
    try:
        if wait:
            raise AccessError("HB721", "Too many attempts with invalid tokens.", f"Wait {wait} s and try again.", wait)
        cookie = visit.sessions.sign(service.accounts.identify(visit.form.get("token", "").strip()))
    except AccessError as error:
        if error.code in _GUESSES:
            service.attempts_limit.take(where)
        response: Response = visit.render("sign-in.html", status=status_of(error), next=next_page, problem=error)
        visit.keep(response, visit.cookie)
        return response
    response = visit.go(next_page)
    visit.keep(response, cookie)
    return response


def sign_out(visit: Visit) -> Response:
    """End the session."""
    visit.sessions.end(visit.cookie)
    response = visit.go("/sign-in")
    response.headers["Clear-Site-Data"] = '"cache"'  # the next user of this browser cannot go back to a page
    response.delete_cookie(
        visit.sessions.cookie, path="/", httponly=True, samesite="strict", secure=visit.sessions.secure
    )
    return response


def theme(visit: Visit) -> Response:
    """Set the light or dark theme."""
    response = visit.go(_local_path(visit.form.get("next", "/")))
    chosen = "dark" if visit.form.get("theme") == "dark" else "light"
    response.set_cookie(
        THEME, chosen, max_age=31_536_000, path="/", httponly=True, samesite="strict", secure=visit.sessions.secure
    )
    return response


def _local_path(path: str) -> str:
    r"""Return a path on this server, or / for anything that leads elsewhere.

    >>> [_local_path(path) for path in ("/ask", "//evil.example", "https://evil.example", "/\\evil.example")]
    ['/ask', '/', '/', '/']
    """
    plain = path.startswith("/") and not path.startswith("//") and path.isascii() and path.isprintable()
    return path if plain and "\\" not in path and len(path) < 300 else "/"
