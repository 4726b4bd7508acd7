"""Collector of responses: a small HTTP server for one survey, and its file with one JSON object per line.

Tested in tests/surveys/test_collector_log.py.
"""

import json
import os
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hubbub.errors import QueryError
from hubbub.private_files import open_private
from hubbub.surveys.page import content_security_policy, render_page
from hubbub.surveys.response import check_response
from hubbub.surveys.survey import Survey

#: Maximum bytes of a response.
MAX_BODY = 1 << 16
_TO = "responses"
_TIMEOUT = 10.0  # seconds to receive a request


def load_responses(survey: Survey, path: Path) -> tuple[list[dict[str, int | list[int]]], int]:
    """Read a file of responses; return those to this survey, and the number of other lines."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise QueryError("HB537", f"Cannot read {path}.", "Pass the file of collected responses.") from None
    responses, others = [], 0
    for line in lines:
        try:
            responses.append(check_response(survey, json.loads(line)))
        except (ValueError, QueryError):
            others += 1
    return responses, others


def append_response(survey: Survey, path: Path, response: object) -> None:
    """Check a response and append it durably."""
    check_response(survey, response)
    line = json.dumps(response, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
    file = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line)
        os.fsync(file)
    finally:
        os.close(file)


class Collector(ThreadingHTTPServer):
    """HTTP server that serves the page and stores its responses. It logs nothing. Close it, or use it in a `with`."""

    daemon_threads = True

    def __init__(self, survey: Survey, path: Path, *, host: str, port: int) -> None:
        self.page = render_page(survey, to=_TO).encode()
        self._survey, self._path, self._lock = survey, path, threading.Lock()
        super().__init__((host, port), _Handler)

    def keep(self, body: bytes) -> HTTPStatus:
        """Store a valid response and return the HTTP status."""
        try:
            response = json.loads(body)
            with self._lock:
                append_response(self._survey, self._path, response)
        except (ValueError, RecursionError, QueryError):
            return HTTPStatus.UNPROCESSABLE_ENTITY
        except OSError as error:
            # the operator must know; the message is about the disk and reveals nothing about respondents
            sys.stderr.write(f"hubbub: cannot store responses ({error.strerror})\n")
            return HTTPStatus.INSUFFICIENT_STORAGE
        return HTTPStatus.NO_CONTENT

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: the library's message would contain the client's address."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _TIMEOUT
    server_version, sys_version = "hubbub", ""
    server: Collector

    def do_GET(self) -> None:
        """Serve the page."""
        if self.path == "/":
            self._answer(HTTPStatus.OK, self.server.page)
        else:
            self._answer(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Store a response."""
        length = self.headers.get("Content-Length", "")
        if self.path != f"/{_TO}":
            self._answer(HTTPStatus.NOT_FOUND)
        elif not length.isdecimal() or self.headers.get_content_type() != "application/json":
            self._answer(HTTPStatus.BAD_REQUEST)
        elif len(length) > 9 or int(length) > MAX_BODY:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._answer(self.server.keep(self.rfile.read(int(length))))

    def _answer(self, status: HTTPStatus, body: bytes = b"") -> None:
        self.send_response(status)
        headers = {
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{content_security_policy(_TO)}; frame-ancestors 'none'",
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
        """Log nothing about respondents."""
