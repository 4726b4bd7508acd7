"""A real PostgreSQL server that the tests and campaigns start for themselves, on a Unix socket, and stop again.

It listens on no network. It runs as the user `postgres` when the tests run as root (initdb refuses root), and dies with
the process that started it. Its files are in memory where there is room: a crash of the server loses nothing there that
the kernel was given, as on a disk. Whoever measures asks for a disk.
"""

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import psycopg
import pytest

MEMORY = Path("/dev/shm")

_PREFIX = "hubbub-pg-"
_numbers = itertools.count(1)


def programs() -> Path:
    """The folder with initdb and postgres: the newest that Debian installed, or the one on the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    if on_path is None:
        raise FileNotFoundError("PostgreSQL is not installed: apt-get install postgresql (make test does it)")
    return Path(on_path).resolve().parent


def _sweep(base: Path) -> None:
    """Remove what was left behind, more than an hour ago, by processes that were killed."""
    for home in base.glob(f"{_PREFIX}*-*"):
        owner = home.name.removeprefix(_PREFIX).split("-")[0]
        if not Path("/proc", owner).exists() and time.time() - home.stat().st_mtime > 3600:
            shutil.rmtree(home, ignore_errors=True)


class Server:
    """One PostgreSQL cluster in a temporary folder."""

    def __init__(self, *, on_disk: bool = False, **settings: str) -> None:
        roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2**31
        base = MEMORY if roomy and not on_disk else Path(tempfile.gettempdir())
        _sweep(base)
        self.home = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=base))
        self._data = self.home / "data"
        self._settings = {"max_connections": "200", "shared_buffers": "64MB"} | settings
        self._process: subprocess.Popen[bytes] | None = None
        self._as_user: list[str] = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.home, user.pw_uid, user.pw_gid)
            self._as_user = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        subprocess.run(
            [
                "setpriv",
                *self._as_user,
                programs() / "initdb",
                "--pgdata",
                self._data,
                "--username",
                "hubbub",
                "--auth",
                "trust",
                "--encoding",
                "UTF8",
                "--locale",
                "C",
                "--no-sync",
                "--no-instructions",
            ],
            check=True,
            capture_output=True,
            cwd=self.home,
        )

    def start(self) -> None:
        """Start, and wait until it answers."""
        options = itertools.chain.from_iterable(("-c", f"{name}={value}") for name, value in self._settings.items())
        with (self.home / "log").open("ab") as log:
            # SIGINT is PostgreSQL's fast shutdown; setpriv has the kernel send it when the thread that starts it dies,
            # however it dies: so start it from a thread that lasts.
            self._process = subprocess.Popen(
                [
                    "setpriv",
                    *self._as_user,
                    "--pdeathsig=INT",
                    programs() / "postgres",
                    "-D",
                    self._data,
                    "-c",
                    "listen_addresses=",
                    "-k",
                    self.home,
                    *options,
                ],
                stdout=log,
                stderr=log,
                cwd=self.home,
                start_new_session=True,
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.dsn("postgres")).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.home / "log").read_text()[-2000:]) from None
                time.sleep(0.05)

    def stop(self, *, crash: bool = False) -> None:
        """Stop fast; with `crash` at once and without a checkpoint, so that the next start recovers from the log."""
        if self._process is not None:
            # SIGQUIT makes the postmaster drop everything; a SIGKILL would leave orphans that hold shared memory
            self._process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
            self._process.wait(60)
            self._process = None

    def dsn(self, database: str) -> str:
        """The connection string of a database."""
        return f"host={self.home} user=hubbub dbname={database} connect_timeout=10"

    def run(self, statement: str, database: str = "postgres") -> None:
        """Run one statement as the superuser, outside a transaction."""
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    @contextmanager
    def database(self) -> Iterator[str]:
        """A new empty database, dropped at the end; yields its connection string."""
        name = f"ledger_{next(_numbers)}"
        self.run(f"CREATE DATABASE {name}")
        try:
            yield self.dsn(name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.home)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One server for all tests of a worker; each test takes a database of its own."""
    with Server() as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres_server: Server) -> Iterator[str]:
    """A new empty database."""
    with postgres_server.database() as dsn:
        yield dsn
