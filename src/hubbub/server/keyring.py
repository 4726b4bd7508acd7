"""The keys that sign sessions: the newest signs, and those that it replaced are accepted while a session can last.

A secret is one key, or a list of keys that `hubbub admin rotate-key` wrote:

    hubbub keys 1
    2026-11-19T21:00:00Z 9dfK…      the newest; the time is when it was added
    - kX2p…                         an older one, of unknown age; `base64:` stands before one with spaces

A server with a key file looks at the file again when it has changed, so a rotation needs no restart. A key that was
replaced longer ago than a session lasts is ignored, whether or not it is still in the file.

No noise and no contribution bound depends on these keys: bounds are drawn with the identity of the ledger, and noise
with the randomness of the system.

Tested in tests/server/test_keyring.py.
"""

import base64
import os
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from hubbub.errors import DeploymentError
from hubbub.private_files import replace_text
from hubbub.server.accounts import SESSION_SECONDS

MIN_KEY = 32  # characters
_MAX_FILE = 65536
_HEADER = "hubbub keys 1"
_LINE = re.compile(r"(?P<at>-|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (?P<key>[!-~]{32,})")
_PLAIN = re.compile(rb"(?!base64:)[!-~]{32,}")
_FORM = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class SigningKey:
    """One key, and when it was added, in seconds since 1970; None if that is not known."""

    secret: bytes
    since: int | None


def parse(content: bytes) -> list[SigningKey]:
    """Read a secret: one key, or a list of keys with the newest first; refuse a broken list (HB890)."""
    text = content.strip()
    if not text.startswith(_HEADER.encode()):
        return [SigningKey(text, None)]
    lines = text.decode("ascii", errors="replace").splitlines()[1:]
    matches = [_LINE.fullmatch(line.strip()) for line in lines]
    if not matches or None in matches:
        raise _broken()
    try:
        return [SigningKey(_decoded(match["key"]), _seconds(match["at"])) for match in matches if match is not None]
    except (ValueError, OverflowError):  # no such day, or no base64
        raise _broken() from None


def _broken() -> DeploymentError:
    return DeploymentError(
        "HB890",
        "The list of the server's keys cannot be read.",
        f"Each line below `{_HEADER}` is a time or -, a space, and a key of at least {MIN_KEY} characters. Restore "
        "the file, or replace it by one new key: everybody signs in again.",
    )


def valid(keys: list[SigningKey], now: int) -> tuple[bytes, ...]:
    """Give the keys that are accepted now, the signing one first.

    An older key is accepted until a session that it signed last can have ended: that long after its successor's time.
    """
    accepted = [keys[0].secret]
    for newer, older in pairwise(keys):
        if newer.since is None or now > newer.since + SESSION_SECONDS:
            break
        accepted.append(older.secret)
    return tuple(accepted)


class Keyring:
    """The keys of a server. Safe to use from many threads."""

    def __init__(self, content: bytes, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """Use this content, or what the file at `path` has from now on."""
        self.path = path
        self._clock = clock
        self._keys = parse(content)
        self._mutex = threading.Lock()
        self._seen = self._state()

    def accepted(self) -> tuple[bytes, ...]:
        """Give the keys that are accepted now; the first one signs."""
        if self.path is not None and (state := self._state()) != self._seen:
            self._reload(state)
        return valid(self._keys, int(self._clock()))

    def _reload(self, state: tuple[int, int, int] | None) -> None:
        """Read the file again; while it is missing or broken, the keys stay as they are."""
        with self._mutex:
            try:
                content = _read(self.path) if self.path is not None and state is not None else b""
                keys = parse(content)
                if all(len(key.secret) >= MIN_KEY for key in keys):
                    self._keys = keys
            except (OSError, DeploymentError):
                pass
            self._seen = state

    def _state(self) -> tuple[int, int, int] | None:
        try:
            facts = os.stat(self.path) if self.path is not None else None  # noqa: PTH116
        except OSError:
            return None
        return None if facts is None else (facts.st_ino, facts.st_mtime_ns, facts.st_size)


def rotate(path: Path, *, leaked: bool = False, clock: Callable[[], float] = time.time) -> None:
    """Put a new key first in a file, durably, and remove the keys that nobody needs any more.

    Theorem (Nobody is signed out). A session that was valid before a rotation is accepted after it until its own end,
    by every server that reads the file, unless the old keys were said to have leaked.
    Proof    A session lasts SESSION_SECONDS at most, and was signed with the first key before the rotation or with one
             accepted then. `valid` accepts each older key until that time has passed since its successor was added, and
             all sessions that it signed began before that. The file is replaced at once, so a reader sees the old list
             or the new one.
    Assumes  the clocks of the servers agree to within the time that a session has left.
    Charges  nothing.
    Tested   tests/server/test_keyring.py::test_a_session_outlives_a_rotation_and_ends_at_its_own_time
             tests/server/test_keyring.py::test_a_leaked_key_is_accepted_no_more
    """
    now = int(clock())
    try:
        keys = parse(_read(path))
        kept = [] if leaked else keys[: len(valid(keys, now))]
        new = SigningKey(secrets.token_urlsafe(MIN_KEY).encode(), now)
        lines = [_HEADER, *(f"{_text(key.since)} {_encoded(key.secret)}" for key in (new, *kept))]
        replace_text(path, "\n".join(lines) + "\n")
    except OSError as error:
        raise DeploymentError(
            "HB893",
            f"The key in {path} cannot be rotated ({error.strerror}). Nothing was changed.",
            "Run this as the user who may write the file. A key from a systemd credential is rotated in the file that "
            "LoadCredential names (--file), and used after a restart of the service.",
        ) from None


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_FILE)


def _encoded(key: bytes) -> str:
    return key.decode() if _PLAIN.fullmatch(key) else f"base64:{base64.b64encode(key).decode()}"


def _decoded(text: str) -> bytes:
    return (
        base64.b64decode(text.removeprefix("base64:"), validate=True) if text.startswith("base64:") else text.encode()
    )


def _seconds(text: str) -> int | None:
    return None if text == "-" else int(datetime.strptime(text, _FORM).replace(tzinfo=UTC).timestamp())


def _text(since: int | None) -> str:
    return "-" if since is None else datetime.fromtimestamp(since, UTC).strftime(_FORM)
