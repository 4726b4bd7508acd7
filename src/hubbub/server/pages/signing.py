"""Signing in and out, and light or dark."""

from starlette.responses import Response

from hubbub.errors import AccessError
from hubbub.server.limits import address
from hubbub.server.pages.frame import THEME, Visit
from hubbub.server.problems import status_of

#: Refusals of somebody whom nobody knows. Those whose token has expired are known, and are not slowed down.
_GUESSES = ("HB701", "HB704")


def show(visit: Visit) -> Response:
    """Show the form."""
    response = visit.render("sign-in.html", next=_inside(visit.request.query_params.get("next", "/")), problem=None)
    visit.keep(response, visit.cookie)
    return response


def sign_in(visit: Visit) -> Response:
    """Exchange a token for a session; those who guess must wait."""
    service, next_page = visit.service, _inside(visit.form.get("next", "/"))
    where = address(visit.request.client.host if visit.request.client else None)
    wait = service.attempts_limit.wait(where)
    try:
        if wait:
            raise AccessError("HB721", "too many attempts with tokens that are not valid.", f"Wait {wait} s.", wait)
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
    response.headers["Clear-Site-Data"] = '"cache"'  # whoever comes to this screen next cannot go back to it
    response.delete_cookie(
        visit.sessions.cookie, path="/", httponly=True, samesite="strict", secure=visit.sessions.secure
    )
    return response


def theme(visit: Visit) -> Response:
    """Choose light or dark."""
    response = visit.go(_inside(visit.form.get("next", "/")))
    wanted = "dark" if visit.form.get("theme") == "dark" else "light"
    response.set_cookie(
        THEME, wanted, max_age=31_536_000, path="/", httponly=True, samesite="strict", secure=visit.sessions.secure
    )
    return response


def _inside(path: str) -> str:
    r"""Give a path on this server: what leads elsewhere leads home.

    >>> _inside("/ask"), _inside("//evil.example"), _inside("https://evil.example"), _inside("/\\evil.example")
    ('/ask', '/', '/', '/')
    """
    plain = path.startswith("/") and not path.startswith("//") and path.isascii() and path.isprintable()
    return path if plain and "\\" not in path and len(path) < 300 else "/"
