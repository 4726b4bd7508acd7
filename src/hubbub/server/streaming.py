"""Streams of the service: begun by who paid, fed by the owner, read by both and the auditor."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hubbub.curator.opening import folder_of
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.server.accounts import Principal
from hubbub.server.governing import Governing
from hubbub.server.problems import missing
from hubbub.server.roles import allowed
from hubbub.streams.buying import begin
from hubbub.streams.stream import names, opened

#: Streams that one service keeps.
MOST = 1000


class Streaming(Governing):
    """What the service does with streams. Their states lie in the folder hubbub-streams beside hubbub.yaml."""

    @property
    def _streams(self) -> Path:
        return self.current.path.parent / "hubbub-streams"

    @allowed
    def streams(self, principal: Principal) -> list[str]:
        """Name the streams: an analyst's own, or all."""
        return [name for name in names(self._streams) if self._sees(principal, name)]

    @allowed
    def stream(self, principal: Principal, name: str) -> dict[str, Any]:
        """Say what a stream says now; nothing is drawn."""
        self._look(principal, name)
        with opened(self._streams, name) as held:
            return held.form()

    @allowed
    def begin_stream(self, principal: Principal, number: int) -> dict[str, Any]:
        """Begin the stream that a charge of the analyst's paid for, once; again, it is the same stream."""
        with self.current.using() as curator:
            release = curator.release(number, analyst=principal.name)
            if release.receipt.get("analysis") != "stream":
                raise QueryError("HB531", f"release {number} paid for no stream.", "Ask for one: CALL stream(…).")
            if len(names(self._streams)) >= MOST:
                raise QueryError("HB531", f"there are {MOST} streams already.", "The owner can remove old ones.")
            ledger = folder_of(curator.config)
            return begin(self._streams, ledger, release, analyst=principal.name, source=system()).form()

    @allowed
    def feed_stream(
        self, principal: Principal, name: str, lines: Sequence[str], *, feeder: str, before: int | None
    ) -> dict[str, int]:
        """Let arrivals in; they are on the disk when this returns, and lines that come again are passed over."""
        self._look(principal, name)
        with opened(self._streams, name) as held:
            taken = held.feed(lines, feeder=feeder, before=before, source=system())
            return {"taken": taken, "of_feeder": held.taken(feeder), "arrivals": held.arrivals}

    @allowed
    def answer_stream(self, principal: Principal, name: str) -> dict[str, Any]:
        """Draw one of the answers of a density that were paid for."""
        self._look(principal, name)
        with opened(self._streams, name) as held:
            held.tell(system())
            return held.form()

    def _look(self, principal: Principal, name: str) -> None:
        """Refuse what is not there, or not for who asks, in the same words."""
        if name not in names(self._streams) or not self._sees(principal, name):
            raise missing(f"stream called {name!r}")

    def _sees(self, principal: Principal, name: str) -> bool:
        if principal.role != "analyst":
            return True
        with opened(self._streams, name) as held:
            return held.paid is not None and held.paid["analyst"] == principal.name
