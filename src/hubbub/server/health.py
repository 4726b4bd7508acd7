"""Whether the service is alive, and whether it can answer."""

from threading import Lock

from hubbub.errors import HubbubError
from hubbub.server.service import Service
from hubbub.server.work import clock

#: Seconds for which a finding holds: looking costs a turn of the ledger, and nobody needs a token to ask.
_HOLDS = 1.0


class Readiness:
    """Says whether queries can be answered: ledger sound and writable, sources reachable, hubbub.yaml in order."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._mutex = Lock()
        self._at = float("-inf")
        self._found: dict[str, bool] = {}

    def look(self) -> dict[str, bool]:
        """Look, or say what was found a moment ago."""
        with self._mutex:
            if clock() - self._at >= _HOLDS:
                parts = {"ledger": self._ledger(), "state": self._state(), "sources": self._sources()}
                parts["config"] = self._service.current.trouble is None
                self._found = {"ready": all(parts.values()), **parts}
                self._at = clock()
            return dict(self._found)

    def _ledger(self) -> bool:
        """Take a writer's turn: a ledger was verified when it was opened, and one that stopped since refuses."""
        try:
            with self._service.current.using() as curator:
                curator.ledger.recall("", "readiness")
        except HubbubError:
            return False
        return True

    def _state(self) -> bool:
        try:
            self._service.state.writable()
        except HubbubError:
            return False
        return True

    def _sources(self) -> bool:
        try:
            with self._service.current.using() as curator:
                for name in curator.tables:
                    curator.engine.fingerprint(name)
        except (OSError, HubbubError):
            return False
        return True
