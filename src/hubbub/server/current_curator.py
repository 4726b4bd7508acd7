"""The current curator: hubbub.yaml may change while queries run, but each query uses one version of it.

The ledger stays open through every change and receives the new policy; earlier decisions stay valid.

Tested in tests/server/test_administration.py.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hubbub.accounting.declarations import problems
from hubbub.config import Config, load
from hubbub.curator import Curator
from hubbub.curator.opening import open_curator, reconfigure
from hubbub.errors import ConfigError, HubbubError
from hubbub.server import config_editor
from hubbub.server.config_editor import Change, CheckResult
from hubbub.server.query_pool import clock
from hubbub.server.worker import Worker

_log = logging.getLogger("hubbub.server")

#: Seconds between two checks whether another process or an editor changed the file.
_CHECK_SECONDS = 1.0


class _Held:
    """A curator with its number of users; after it is replaced, the last user closes its engine."""

    def __init__(self, curator: Curator) -> None:
        self.curator = curator
        self.users = 0
        self.replaced = False


class CurrentCurator:
    """Opens a hubbub.yaml, provides its curator, and replaces it when the file changes."""

    def __init__(self, path: Path, worker: Worker | None = None) -> None:
        """Open the file alone, or as one of several workers."""
        self.path = path
        self._worker = worker
        self._mutex = threading.Lock()
        self._changing = threading.RLock()
        self._rewriting = False
        # with other workers, a removed analyst loses access at the next request, whichever worker gets it
        self._check_seconds = _CHECK_SECONDS if worker is None else 0.0
        guard = None if worker is None else worker.guard
        with self._in_turn():
            self._seen = self._signature()  # before the file is read, so that no change is missed
            self._held = _Held(open_curator(self._load(), exclusive=True, guard=guard))
        self._checked = clock()
        #: Called with the analysts that a new file removes, before it takes effect.
        self.withdraw: Callable[[Set[str]], None] = lambda _: None
        #: The problem with the current file, if an earlier version is still in use.
        self.trouble: HubbubError | None = None

    @property
    def curator(self) -> Curator:
        """The current curator, for calls that do not touch data."""
        return self._held.curator

    @property
    def config(self) -> Config:
        """The current configuration."""
        return self._held.curator.config

    def analysts(self) -> Mapping[str, object]:
        """Return the analysts in hubbub.yaml as it is now, so that a removed analyst loses access at once."""
        self._reload_if_changed()
        return self.config.policy.analysts

    def analysts_at_once(self) -> Mapping[str, object] | None:
        """Return what `analysts` returns, or None if hubbub.yaml has to be read again for it."""
        if clock() - self._checked >= self._check_seconds and self._signature() != self._seen:
            return None
        return self.config.policy.analysts

    @contextmanager
    def using(self) -> Iterator[Curator]:
        """Use one curator throughout, even if the file changes meanwhile."""
        self._reload_if_changed()
        with self._mutex:
            held = self._held
            held.users += 1
        try:
            yield held.curator
        finally:
            with self._mutex:
                held.users -= 1
                last = held.replaced and not held.users
            if last:
                held.curator.engine.close()

    def check(self, text: str) -> CheckResult:
        """Check a new text; the location of the ledger must not change."""
        result = config_editor.check(self.path, text, confined=True)
        if result.config is not None and result.config.places != self.config.places:
            return CheckResult(None, (_moved(),), result.diff)
        if result.config is not None and (broken := self._broken(result.config)):
            return CheckResult(None, tuple(broken), result.diff)
        return result

    def _broken(self, config: Config) -> list[ConfigError]:
        """Return the guarantees of earlier charges that a new hubbub.yaml would break."""
        with self.curator.ledger.snapshot() as snapshot:
            return problems(snapshot, config.policy)

    def apply(self, text: str, *, expected: str) -> str:
        """Apply a new text if the file still has the `expected` hash; return the new hash."""
        return self._rewrite(lambda _: text, expected=expected)

    def edit(self, change: Change, before: Callable[[], None] | None = None) -> str:
        """Make one change to the file and apply it; return the new hash.

        `before` runs when everything is checked; if it raises, nothing is changed.
        """
        return self._rewrite(lambda text: config_editor.changed(text, change), before=before)

    def _rewrite(
        self, make: Callable[[str], str], *, expected: str | None = None, before: Callable[[], None] | None = None
    ) -> str:
        def accept(config: Config) -> None:
            if config.places != self.config.places:
                raise _moved()
            for broken in self._broken(config):
                raise broken
            if before is not None:
                before()

        with self._changing:
            self._rewriting = True
            try:
                config_editor.rewrite(self.path, make, expected=expected, accept=accept, confined=True)
            finally:
                self._rewriting = False
            self.reload()
            return self.config.hash

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Read the file and tell the ledger about it in one turn with other processes.

        Otherwise one that read the file before another changed it could put the older policy in force after the newer.
        """
        with ExitStack() as stack:
            with suppress(ConfigError):  # in a folder that cannot be written, nobody edits the file from here
                stack.enter_context(config_editor.locked(self.path))
            yield

    def _load(self) -> Config:
        config = load(self.path)
        return config if self._worker is None else self._worker.divide(config)

    def reload(self) -> bool:
        """Load the current file; return whether it changed. An invalid file is not used."""
        with self._changing, self._in_turn():
            self._seen, self._checked = self._signature(), clock()
            config = self._load()
            if config.hash == self.config.hash and config.policy.hash == self.curator.ledger.policy.hash:
                return False
            if config.places != self.config.places:
                raise _moved()
            gone = self.config.policy.analysts.keys() - config.policy.analysts.keys()
            if gone:
                try:
                    self.withdraw(gone)
                except HubbubError:
                    self._seen = ()  # check again soon: a removed analyst must not keep a token
                    raise
            new = _Held(reconfigure(self.curator, config))
            with self._mutex:
                old, self._held = self._held, new
                old.replaced = True
                idle = not old.users
            if idle:
                old.curator.engine.close()
            self.trouble = None
            _log.info("hubbub.yaml reloaded")
            return True

    def close(self) -> None:
        """Close the data sources and the ledger."""
        self._held.curator.close()

    def _reload_if_changed(self) -> None:
        """Reload the file if it changed since the last check."""
        if clock() - self._checked < self._check_seconds or not self._changing.acquire(blocking=False):
            return
        try:
            if self._rewriting:  # by this thread, which has the lock of the file
                return
            self._checked = clock()
            if self._signature() != self._seen:
                self.reload()
        except HubbubError as error:
            # keep the current curator: a half-saved file must not stop the service
            self.trouble = error
            _log.warning("hubbub.yaml changed but is invalid and not used: %s", error.code)
        finally:
            self._changing.release()

    def _signature(self) -> tuple[int, ...]:
        try:
            facts = self.path.stat()
        except OSError:
            return ()
        return facts.st_mtime_ns, facts.st_size, facts.st_ino


def _moved() -> ConfigError:
    return ConfigError(
        "HB427",
        "The location of the ledger cannot be changed while the server is running.",
        "Stop the server, move the ledger and its anchor, update `ledger:`, and start the server again.",
    )
