"""Server addresses and bearer tokens, handled so that tokens do not leak.

Tested in tests/client/test_safety.py.
"""

import re
import ssl
from collections.abc import Generator
from ipaddress import ip_address
from pathlib import Path

import httpx2

from hubbub.errors import ParameterError

PREFIX = "/api/v1/"

_TOKEN = re.compile(r"[\x21-\x7e]{1,8192}", re.ASCII)


class BearerToken(httpx2.Auth):
    """A bearer token that never appears in logs, tracebacks or pickles."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not _TOKEN.fullmatch(text):
            raise ParameterError("HB182", "The token is malformed.", "Pass the token exactly as issued, on one line.")
        self._text = text

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the token to the request."""
        request.headers["Authorization"] = f"Bearer {self._text}"
        yield request

    def __repr__(self) -> str:
        return "Token(…)"

    def __reduce__(self) -> str:
        raise TypeError("a token cannot be pickled")


def base(url: str, *, insecure: bool) -> httpx2.URL:
    """Return the base address of the API; allow http:// only for this machine unless `insecure` is set.

    >>> base("https://data.example.org/curator", insecure=False)
    URL('https://data.example.org/curator/api/v1/')
    """
    try:
        given = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError):
        given = httpx2.URL("")
    if given.scheme not in ("http", "https") or not given.host:
        raise ParameterError(
            "HB180", "This is not the address of a server.", "Use an address such as https://data.example.org."
        )
    if given.userinfo or given.query or given.fragment:
        raise ParameterError(
            "HB180",
            "The address contains a user name, a password or a query.",
            "Pass only the address, and the token as token=.",
        )
    if given.scheme == "http" and not (insecure or local(given.host)):
        raise ParameterError(
            "HB181",
            f"http:// to {given.host} would send the token and the answers unencrypted.",
            "Use https://, or pass insecure=True if the network is trusted.",
        )
    return given.copy_with(path=given.path.removesuffix("/") + PREFIX)


def local(host: str) -> bool:
    """Return whether a host is this machine.

    >>> local("127.0.0.1"), local("localhost"), local("localhost.example.org"), local("10.0.0.1")
    (True, True, False, False)
    """
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def trust(*, ca: str | Path | None, insecure: bool) -> ssl.SSLContext:
    """Return the TLS context: trust the system's certificates or those of a file, or any if `insecure` is set."""
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError):
        raise ParameterError(
            "HB183", f"There are no certificates in {str(ca)!r}.", "Pass ca= the path of a PEM file with certificates."
        ) from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
