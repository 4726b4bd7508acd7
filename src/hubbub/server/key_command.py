"""Ask a command for the server's key: the client of a key management service, started without a shell.

It gets ten seconds, no input, and no more than a key's room for its output; it is killed with its children otherwise.
What it writes to standard error is dropped, because it may hold a secret.

Tested in tests/server/test_key_command.py.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from hubbub.errors import DeploymentError

SECONDS = 10.0
MAX_OUTPUT = 65536


def ask(command: Sequence[str], environment: Mapping[str, str], *, seconds: float = SECONDS) -> bytes:
    """Run a command and return its output, stripped; refuse one that fails, hangs or floods (HB891)."""
    if not command or not Path(command[0]).is_absolute():
        _fail("its program is not an absolute path")
    given = {name: value for name, value in environment.items() if not name.startswith("HUBBUB_")}
    try:
        process = subprocess.Popen(  # noqa: S603 - a command of hubbub.yaml, which only the machine's owner can write
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=given,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        _fail(f"it cannot be started ({type(error).__name__})")
    try:
        output = _output(process, time.monotonic() + seconds)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if output is None:
        _fail(f"it did not end within {seconds:g} seconds, or wrote more than {MAX_OUTPUT} bytes")
    if code:
        _fail(f"it ended with the exit code {code}")
    return output.strip()


def _output(process: "subprocess.Popen[bytes]", until: float) -> bytes | None:
    """Read the output to its end and wait for the exit; None if there is too much of it, or it takes too long."""
    content = b""
    if process.stdout is None:
        return None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(content) <= MAX_OUTPUT:
            if not selector.select(max(0.0, until - time.monotonic())):
                return None
            block = os.read(process.stdout.fileno(), MAX_OUTPUT)
            if not block:
                break
            content += block
    if len(content) > MAX_OUTPUT:
        return None
    try:
        process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
    return content


def _fail(why: str) -> NoReturn:
    raise DeploymentError(
        "HB891",
        f"The command of server.key_command gave no key: {why}.",
        "Run it by hand as the user of the service. It must print one key of at least 32 characters, or a list of keys "
        "as docs/deploy.md shows.",
    )
