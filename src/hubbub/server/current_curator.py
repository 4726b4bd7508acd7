"""The curator in force: hubbub.yaml can change while queries run, and each query sees one state of it.

The ledger stays open through every change; it is told the new policy, and what was decided under the old one stands.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path

from hubbub.accounting.declarations import problems
from hubbub.config import Config, load
from hubbub.curator import Curator
from hubbub.curator.opening import open_curator, renewed
from hubbub.errors import ConfigError, HubbubError
from hubbub.server import editing
from hubbub.server.editing import Change, Checked
from hubbub.server.query_pool import clock

_log = logging.getLogger("hubbub.server")

#: Seconds between two looks at the file: another process, or the owner's editor, may have changed it.
_LOOK = 1.0


class _Held:
    """A curator with the number of those who use it; its engine is closed by the last one, once it is replaced."""

    def __init__(self, curator: Curator) -> None:
        self.curator = curator
        self.users = 0
        self.replaced = False


class Current:
    """Opens a hubbub.yaml, hands out its curator, and goes on with another when the file changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mutex = threading.Lock()
        self._changing = threading.RLock()
        self._held = _Held(open_curator(load(path), exclusive=True))
        self._seen = self._signature()
        self._looked = clock()
        #: Told which analysts a new file no longer names, before it is in force.
        self.withdraw: Callable[[Set[str]], None] = lambda _: None
        #: What is wrong with the file as it is now, if the curator in force is of an earlier one.
        self.trouble: HubbubError | None = None

    @property
    def curator(self) -> Curator:
        """The curator in force, for what does not touch data."""
        return self._held.curator

    @property
    def config(self) -> Config:
        """The hubbub.yaml in force."""
        return self._held.curator.config

    def analysts(self) -> Mapping[str, object]:
        """Name the analysts of hubbub.yaml as it is now: whoever was removed must not come in any longer."""
        self._look()
        return self.config.policy.analysts

    @contextmanager
    def using(self) -> Iterator[Curator]:
        """Use one curator from beginning to end, whatever changes meanwhile."""
        self._look()
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

    def check(self, text: str) -> Checked:
        """Say what would come of a text; the ledger must stay where it is."""
        found = editing.check(self.path, text, confined=True)
        if found.config is not None and found.config.places != self.config.places:
            return Checked(None, (_moved(),), found.diff)
        if found.config is not None and (broken := self._broken(found.config)):
            return Checked(None, tuple(broken), found.diff)
        return found

    def _broken(self, config: Config) -> list[ConfigError]:
        """Say which promises of earlier charges another hubbub.yaml would break."""
        with self.curator.ledger.snapshot() as snapshot:
            return problems(snapshot, config.policy)

    def apply(self, text: str, *, expected: str) -> str:
        """Go on under another text, if the file has still the `expected` hash; or change nothing. Give the new hash."""
        return self._rewrite(lambda _: text, expected=expected)

    def edit(self, change: Change, before: Callable[[], None] | None = None) -> str:
        """Make one change to the file and go on under it, or change nothing; give the new hash.

        `before` is done when all is checked, and what it raises keeps the change from being made.
        """
        return self._rewrite(lambda text: editing.changed(text, change), before=before)

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
            editing.rewrite(self.path, make, expected=expected, accept=accept, confined=True)
            self.reload()
            return self.config.hash

    def reload(self) -> bool:
        """Go on under the file as it is now; say whether that is a change. A file that does not check is not used."""
        with self._changing:
            self._seen, self._looked = self._signature(), clock()
            config = load(self.path)
            if config.hash == self.config.hash and config.policy.hash == self.curator.ledger.policy.hash:
                return False
            if config.places != self.config.places:
                raise _moved()
            gone = self.config.policy.analysts.keys() - config.policy.analysts.keys()
            if gone:
                try:
                    self.withdraw(gone)
                except HubbubError:
                    self._seen = ()  # look again soon: whoever is removed must not keep a token
                    raise
            new = _Held(renewed(self.curator, config))
            with self._mutex:
                old, self._held = self._held, new
                old.replaced = True
                idle = not old.users
            if idle:
                old.curator.engine.close()
            self.trouble = None
            _log.info("hubbub.yaml was read again")
            return True

    def close(self) -> None:
        """Let go of data and ledger."""
        self._held.curator.close()

    def _look(self) -> None:
        """Look at the file now and then, and read it again where it was changed."""
        if clock() - self._looked < _LOOK or not self._changing.acquire(blocking=False):
            return
        try:
            self._looked = clock()
            if self._signature() != self._seen:
                self.reload()
        except HubbubError as error:
            # the curator in force goes on: half a file in an editor must not stop the service
            self.trouble = error
            _log.warning("hubbub.yaml was changed and is not used: %s", error.code)
        finally:
            self._changing.release()

    def _signature(self) -> tuple[int, ...]:
        try:
            found = self.path.stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino


def _moved() -> ConfigError:
    return ConfigError(
        "HB427",
        "the place of the ledger cannot be changed while the server runs.",
        "Stop the server, move ledger and anchor, change `ledger:`, and start it again.",
    )
