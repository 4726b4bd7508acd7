"""Where responses end up: a file of one JSON object a line, fed by a small server for one survey."""

import json
import os
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hubbub.errors import QueryError
from hubbub.private_files import open_private
from hubbub.surveys.page import page, policy
from hubbub.surveys.respond import check
from hubbub.surveys.survey import Survey

#: Bytes of a response.
MOST = 1 << 16
_TO = "responses"
_PATIENCE = 10.0  # seconds for a request to come in


def load(survey: Survey, path: Path) -> tuple[list[dict[str, int | list[int]]], int]:
    """Read responses; give those to this survey, and how many lines are none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise QueryError("HB537", f"{path} cannot be read.", "Name the file that responses were kept in.") from None
    found, others = [], 0
    for line in lines:
        try:
            found.append(check(survey, json.loads(line)))
        except (ValueError, QueryError):
            others += 1
    return found, others


def append(survey: Survey, path: Path, response: object) -> None:
    """Keep a response, durably, if it is one."""
    check(survey, response)
    line = json.dumps(response, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
    file = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line)
        os.fsync(file)
    finally:
        os.close(file)


class Collector(ThreadingHTTPServer):
    """Serves the page and keeps what it sends. It logs nothing: not who, nor when. Close it, or use it in a `with`."""

    daemon_threads = True

    def __init__(self, survey: Survey, path: Path, *, host: str, port: int) -> None:
        self.page = page(survey, to=_TO).encode()
        self._survey, self._path, self._turn = survey, path, threading.Lock()
        super().__init__((host, port), _Handler)

    def keep(self, body: bytes) -> HTTPStatus:
        """Keep a response, if it is one."""
        try:
            response = json.loads(body)
            with self._turn:
                append(self._survey, self._path, response)
        except (ValueError, RecursionError, QueryError):
            return HTTPStatus.UNPROCESSABLE_ENTITY
        except OSError as error:
            # whoever runs this must know; the words are about the disk, not about anybody
            sys.stderr.write(f"hubbub: responses cannot be kept ({error.strerror})\n")
            return HTTPStatus.INSUFFICIENT_STORAGE
        return HTTPStatus.NO_CONTENT

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: the words of the library would hold the address of whoever broke a connection off."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE
    server_version, sys_version = "hubbub", ""
    server: Collector

    def do_GET(self) -> None:
        """Show the page."""
        if self.path == "/":
            self._answer(HTTPStatus.OK, self.server.page)
        else:
            self._answer(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Keep a response."""
        length = self.headers.get("Content-Length", "")
        if self.path != f"/{_TO}":
            self._answer(HTTPStatus.NOT_FOUND)
        elif not length.isdecimal() or self.headers.get_content_type() != "application/json":
            self._answer(HTTPStatus.BAD_REQUEST)
        elif len(length) > 9 or int(length) > MOST:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._answer(self.server.keep(self.rfile.read(int(length))))

    def _answer(self, status: HTTPStatus, body: bytes = b"") -> None:
        self.send_response(status)
        headers = {
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{policy(_TO)}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            "Connection": "close",
        }
        if body:
            headers["Content-Type"] = "text/html; charset=utf-8"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing about anybody."""
