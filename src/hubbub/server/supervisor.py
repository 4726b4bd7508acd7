"""Several server processes on one address: start them, replace one that ends, and stop them in order.

The supervisor opens no ledger, no data and no thread. It holds the lock of a SQLite ledger, the listening sockets, and
the folder that the workers share, and forks the workers, which inherit them. Each worker has a socket of its own on the
same address (SO_REUSEPORT), among which the kernel divides new connections; connections to a worker that is being
replaced wait in its socket, which the supervisor keeps open.

Tested in tests/cli/test_serve_workers.py.
"""

import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from hubbub.config import load
from hubbub.curator.opening import reserve_ledger
from hubbub.errors import ConfigError, HubbubError
from hubbub.server.app import Beside, log_to_stderr, serve
from hubbub.server.board import Board
from hubbub.server.middleware import code_locations
from hubbub.server.service import PATIENCE, Service
from hubbub.server.settings import Settings
from hubbub.server.worker import Worker

#: Seconds between two starts of a worker that keeps ending: doubled each time, up to the second number.
_PAUSE, _LONGEST = 0.5, 30.0
#: Seconds after which a worker that runs counts as started well.
_STEADY = 10.0
_BACKLOG = 2048
#: Seconds between two updates of the shared figures.
_PERIOD = 1.0
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder in there is made for this user only

_log = logging.getLogger("hubbub.server")


@dataclass(frozen=True)
class Port:
    """One more port that all workers share: how its sockets are opened, and what serves them in a worker."""

    listen: Callable[..., list[socket.socket]]
    beside: Callable[[Service, list[socket.socket]], Beside]


class _Place:
    """One worker's place: its sockets, which stay open, and the process that has it now."""

    def __init__(self, number: int, sockets: list[socket.socket], more: list[socket.socket]) -> None:
        self.number, self.sockets, self.more = number, sockets, more
        self.process: int | None = None
        self.name = ""
        self.former: str | None = None
        self.began = 0.0
        self.pause = 0.0
        self.due = 0.0


class Supervisor:
    """Runs `count` workers until SIGTERM or SIGINT. Use it once, in a process with one thread."""

    def __init__(self, path: Path, settings: Settings, count: int, more: Port | None = None) -> None:
        """Take the lock and the address, or raise an error; `more` is another port of all workers."""
        self._path, self._settings, self._more = path, settings, more
        self._stopping = False
        self._guard = reserve_ledger(load(path))
        self._folder = Path(
            tempfile.mkdtemp(prefix="hubbub-workers-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
        )
        self._secret = secrets.token_hex(32)
        self._alive, self._held = os.pipe()  # reads end when the supervisor has ended, however that came
        try:
            opened = self._listen(count)
            others = self._listen_to_more(count)
            self._places = [_Place(place, *each) for place, each in enumerate(zip(opened, others, strict=True))]
            Board(self._folder / "board.db").close()
        except BaseException:
            self._clean()
            raise

    @property
    def port(self) -> int:
        """The port that the workers listen on."""
        port: int = self._places[0].sockets[0].getsockname()[1]
        return port

    @property
    def more_port(self) -> int | None:
        """The other port that the workers listen on, if there is one."""
        more = self._places[0].more
        return int(more[0].getsockname()[1]) if more else None

    def _listen_to_more(self, count: int) -> list[list[socket.socket]]:
        """Open the sockets of the other port, one for each worker on the same address."""
        if self._more is None or self._settings.postgres is None:
            return [[] for _ in range(count)]
        first = self._more.listen(self._settings, share=True)
        chosen = replace(self._settings.postgres, port=first[0].getsockname()[1])
        same = replace(self._settings, postgres=chosen)
        return [first, *(self._more.listen(same, share=True) for _ in range(count - 1))]

    def run(self, ready: Callable[[], None]) -> int:
        """Run the workers; return the exit code. `ready` is called when the first one can answer."""
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, self._stop)
        log_to_stderr()
        try:
            # the first one creates what is missing, and tells whether a start is possible at all
            if not self._start(self._places[0], wait=True):
                return 0 if self._stopping else 1
            ready()
            for place in self._places[1:]:
                self._start(place)
            while not self._stopping:
                self._replace()
                time.sleep(0.05)
        finally:
            self._end()
            self._clean()
        return 0

    def _stop(self, _: int, __: FrameType | None) -> None:
        self._stopping = True

    def _listen(self, count: int) -> list[list[socket.socket]]:
        """Open a TCP socket on the address and a Unix socket for each worker."""
        settings = self._settings
        try:
            family, kind, protocol, _, where = socket.getaddrinfo(
                settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            with socket.socket(family, kind, protocol) as probe:  # another server may share its port as well
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(where)
            opened = []
            for number in range(count):
                shared = socket.socket(family, kind, protocol)
                shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                shared.bind(where)
                where = shared.getsockname()  # if the system chose the port, it is the same for all
                shared.listen(_BACKLOG)
                own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                own.bind(self._worker(number, "").socket_path(number))
                own.listen(_BACKLOG)
                opened.append([shared, own])
        except OSError as error:
            raise ConfigError(
                "HB420",
                f"The address {settings.host}:{settings.port} cannot be used ({error.strerror}).",
                "Choose another --port, or stop the server that uses it.",
            ) from error
        return opened

    def _worker(self, number: int, name: str, former: str | None = None, count: int = 0) -> Worker:
        return Worker(number, count, name, self._folder, self._secret, self._guard, former)

    def _start(self, place: _Place, *, wait: bool = False) -> bool:
        """Fork a worker; with `wait`, return whether it can answer."""
        place.former, place.name = place.name or None, f"{place.number}-{secrets.token_hex(8)}"
        place.began = time.monotonic()
        worker = self._worker(place.number, place.name, place.former, len(self._places))
        heard, ready = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if not process:
            code = 1
            try:
                os.close(heard)
                code = self._work(worker, place, ready)
            except Exception as error:  # noqa: BLE001 - its text may hold data
                _log.error(
                    "worker failed", extra={"fields": {"error": type(error).__name__, "at": code_locations(error)}}
                )
            finally:
                os._exit(code)
        os.close(ready)
        place.process = process
        _log.info("worker %d started as process %d", place.number, process)
        try:
            return bool(os.read(heard, 1)) if wait else True
        finally:
            os.close(heard)

    def _work(self, worker: Worker, place: _Place, ready: int) -> int:
        """Be a worker: serve until a signal, or until the supervisor has ended."""
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)
        os.setpgid(0, 0)  # a Ctrl-C in the terminal is for the supervisor, which then stops the workers
        os.close(self._held)
        for other in self._places:
            for opened in (*other.sockets, *other.more) if other is not place else ():
                opened.close()
        try:
            service = Service(self._path, self._settings, worker)
        except HubbubError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        ended = threading.Event()

        def tell() -> None:
            with suppress(BrokenPipeError):  # nobody waits for it
                os.write(ready, b"1")
            os.close(ready)
            threading.Thread(target=_watch, args=[service, self._alive, ended], daemon=True).start()

        try:
            beside = nullcontext if self._more is None else self._more.beside(service, place.more)
            serve(service, place.sockets, tell, beside)
        finally:
            ended.set()
            service.close()
        return 0

    def _replace(self) -> None:
        """Start workers that have ended again, each time later if they keep ending."""
        now = time.monotonic()
        for place in self._places:
            if place.process is not None and os.waitpid(place.process, os.WNOHANG)[0]:
                steady = now - place.began > _STEADY
                place.pause = 0.0 if steady else min(_LONGEST, max(_PAUSE, 2 * place.pause))
                place.process, place.due = None, now + place.pause
                _log.warning("worker %d ended, and is started again in %g s", place.number, place.pause)
            if place.process is None and now >= place.due:
                self._start(place)

    def _end(self) -> None:
        """Let all workers finish; kill those that do not."""
        running = {place.process for place in self._places if place.process is not None}
        for process in running:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        until = time.monotonic() + PATIENCE + 20
        while running:
            running = {process for process in running if not _ended(process)}
            if running and time.monotonic() > until:
                for process in running:
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.02)

    def _clean(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        for file in (self._alive, self._held, self._guard):
            if file is not None:
                os.close(file)


def _ended(process: int) -> bool:
    try:
        return bool(os.waitpid(process, os.WNOHANG)[0])
    except ChildProcessError:
        return True


def _watch(service: Service, alive: int, ended: threading.Event) -> None:
    """Share the figures of a worker; stop it when the supervisor has ended, or when its ledger has stopped.

    A ledger stops when it does not know what is on the disk. The next worker in this place verifies it first.
    """
    os.set_blocking(alive, False)
    while not ended.wait(_PERIOD):
        try:
            orphaned = os.read(alive, 1) == b""
        except BlockingIOError:
            orphaned = False
        if orphaned or service.current.curator.ledger.stopped:
            os.kill(os.getpid(), signal.SIGTERM)
            return
        with suppress(HubbubError):
            service.audit.share_figures()
