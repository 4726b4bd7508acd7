"""The settings under `server.telemetry`: where the audit log and traces go.

Tested in tests/server/test_telemetry.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hubbub.config.document import expect_mapping, reject
from hubbub.server.postgres_settings import loopback

_HEADER = re.compile(r"([A-Za-z0-9-]{1,64}): ([!-~ ]{1,4096})")


@dataclass(frozen=True)
class TelemetrySettings:
    """The collector's address, the file with headers for it, and the socket or address of syslog."""

    otlp: str | None = None
    headers_file: Path | None = None
    syslog: str | None = None

    def __post_init__(self) -> None:
        if self.otlp is not None:
            parts = urlsplit(self.otlp)
            safe = parts.scheme == "https" or (parts.scheme == "http" and loopback(parts.hostname or ""))
            if not (safe and parts.hostname) or parts.query or parts.username:
                reject(
                    "HB895",
                    "server.telemetry.otlp",
                    "is neither an https:// address nor one of this machine",
                    "Names of people are sent there. Write http://127.0.0.1:4318 for a collector on this machine, or "
                    "https://collector.example; put a token for it into headers_file.",
                )
        if self.syslog is not None and not (self.syslog.startswith("/") or _is_udp(self.syslog)):
            reject(
                "HB895",
                "server.telemetry.syslog",
                "is neither the path of a socket nor udp:// with an address of this machine",
                "Write /dev/log, and let the syslog daemon of this machine pass it on over TLS.",
            )
        self.headers()

    def headers(self) -> dict[str, str]:
        """Read the headers for the collector; the file is read for each batch, so that a token can be replaced."""
        if self.headers_file is None:
            return {}
        try:
            lines = self.headers_file.read_text(encoding="ascii").splitlines()
            others = self.headers_file.stat().st_mode & 0o027
        except (OSError, UnicodeDecodeError):
            lines, others = ["unreadable"], 0
        matches = [_HEADER.fullmatch(line) for line in lines if line.strip()]
        if None in matches or others:
            why = "can be read by other users" if others else "cannot be read: each line is `Name: value`"
            reject("HB895", "server.telemetry.headers_file", why, "Write the headers there, and set its mode to 0600.")
        return {match[1]: match[2] for match in matches if match is not None}


def read(value: object, base: Path) -> TelemetrySettings | None:
    """Read the section; its keys were checked before."""
    if value is None:
        return None
    given = expect_mapping(value, "server.telemetry")
    for name, each in given.items():
        if not isinstance(each, str) or not each:
            reject("HB895", f"server.telemetry.{name}", "is not a string", "Put the value in quotes.")
    texts: Mapping[str, str] = {str(name): str(each) for name, each in given.items()}
    file = texts.get("headers_file")
    return TelemetrySettings(texts.get("otlp"), None if file is None else base / file, texts.get("syslog"))


def _is_udp(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme == "udp" and loopback(parts.hostname or "") and not parts.path
