"""Streams: an analyst pays for one, the owner or a feeder feeds it; the analyst, owners, and auditors read it.

Stream names are per analyst: owners, auditors, and feeders name the analyst if two analysts use the same stream name.

Tested in tests/server/test_streams.py.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hubbub.analyses.streams import purchase
from hubbub.analyses.streams.folders import StreamEntry, all_streams, streams_of_analyst
from hubbub.analyses.streams.stream import open_stream
from hubbub.curator.opening import folder_of
from hubbub.curator.streams import streams_of
from hubbub.errors import StreamError
from hubbub.noise.source import system
from hubbub.server.accounts import Principal
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.problems import not_found
from hubbub.server.roles import allowed
from hubbub.server.state import State


class StreamService:
    """Streams, whose states are kept in the folder hubbub-streams beside hubbub.yaml."""

    def __init__(self, current: CurrentCurator, state: State) -> None:
        self._current = current
        self._state = state

    @property
    def _streams(self) -> Path:
        return streams_of(self._current.config)

    @allowed("owner", "analyst", "auditor")
    def entries(self, principal: Principal) -> list[StreamEntry]:
        """List streams: an analyst's own, or all."""
        return self._visible(principal)

    @allowed("owner", "analyst", "auditor")
    def read(self, principal: Principal, name: str, analyst: str | None = None) -> dict[str, Any]:
        """Return the current answers of a stream; no noise is sampled."""
        entry = self._find(principal, name, analyst)
        self._refuse_hidden(principal, entry)
        with open_stream(entry.folder, name) as stream:
            return stream.to_json()

    @allowed("analyst")
    def begin(self, principal: Principal, number: int) -> dict[str, Any]:
        """Start the stream that one of the analyst's charges paid for; repeating the call returns the same stream."""
        with self._current.using() as curator:
            release = curator.release(number, analyst=principal.name)
            if release.receipt.get("analysis") != "stream":
                raise StreamError(
                    "HB531", f"Release {number} did not pay for a stream.", "Buy one with CALL stream(…)."
                )
            if release.receipt["ledger"][0]["dataset"] not in curator.datasets(principal.name):
                raise not_found(f"release {number}")
            ledger = folder_of(curator.config)
            stream = purchase.begin_paid(self._streams, ledger, release, analyst=principal.name, source=system())
        return self.read(principal, stream.terms.name)

    @allowed("owner", "feeder")
    def feed(
        self,
        principal: Principal,
        name: str,
        lines: Sequence[str],
        *,
        feeder: str,
        before: int | None,
        analyst: str | None = None,
    ) -> dict[str, int]:
        """Add arrivals, durable when this returns; lines that were already added are skipped.

        A feeder learns only about its own lines: it is counted under its own name, whatever name it sends.
        """
        entry = self._find(principal, name, analyst)
        if not self._has_access(entry):
            raise StreamError(
                "HB662",
                "The analyst of this stream no longer has access to its dataset. No arrivals were added.",
                "Ask the data owner to end the stream.",
            )
        counted = principal.name if principal.role == "feeder" else feeder
        with open_stream(entry.folder, name) as stream:
            taken = stream.feed(lines, feeder=counted, before=before, source=system())
            return {"taken": taken, "of_feeder": stream.lines_taken(counted)}

    @allowed("analyst")
    def answer(self, principal: Principal, name: str) -> dict[str, Any]:
        """Sample one of the answers of a density that were paid for."""
        entry = self._find(principal, name, None)
        with open_stream(entry.folder, name) as stream:
            stream.draw_answer(system())
            return stream.to_json()

    @allowed("owner", "analyst")
    def end(self, principal: Principal, name: str, analyst: str | None = None) -> None:
        """End a stream, or drop an interrupted purchase: the state is erased, the charge stays."""
        if principal.role == "analyst" and analyst in (None, principal.name):
            whose: str | None = principal.name
        else:
            whose = self._find(principal, name, analyst).analyst
        if whose is None:
            purchase.erase_stream(self._streams, name)
            return
        try:
            purchase.end(self._streams, whose, name)
        except StreamError as error:
            if error.code != "HB531":
                raise
            raise not_found(f"stream {name!r}") from None

    def _find(self, principal: Principal, name: str, analyst: str | None) -> StreamEntry:
        """Find one stream; a stream that the principal may not see is reported as not found."""
        chosen = [entry for entry in self._visible(principal, name) if analyst in (None, entry.analyst)]
        if len(chosen) > 1:
            raise StreamError(
                "HB663", f"{len(chosen)} analysts have a stream named {name}.", "Add ?analyst=NAME to choose one."
            )
        if not chosen:
            raise not_found(f"stream {name!r}")
        return chosen[0]

    def _visible(self, principal: Principal, name: str = "*") -> list[StreamEntry]:
        """List the streams that a principal may name; an analyst needs current access to the dataset."""
        if principal.role == "analyst":
            entries = streams_of_analyst(self._streams, principal.name, name)
            return [entry for entry in entries if self._has_access(entry)]
        if principal.role == "feeder":
            feeds = self._state.feeds.of(principal.token or "")
            return [entry for entry in all_streams(self._streams, name) if (entry.analyst, entry.name) in feeds]
        return all_streams(self._streams, name)

    def _has_access(self, entry: StreamEntry) -> bool:
        """Return whether a stream's analyst still has access to its dataset; without it nothing goes in or out."""
        if entry.analyst is None:
            return True
        with self._current.using() as curator:
            known = entry.analyst in curator.config.policy.analysts
            return known and entry.dataset in curator.datasets(entry.analyst)

    def _refuse_hidden(self, principal: Principal, entry: StreamEntry) -> None:
        """Refuse a count if the number of arrivals, which its answers reveal, is not public."""
        if entry.terms.kind == "density" or principal.role == "owner" or entry.dataset is None:
            return
        with self._current.using() as curator:
            table = curator.tables.get(entry.dataset)
            if table is None or not table.arrivals:
                raise StreamError(
                    "HB664",
                    f"This stream reveals the number of arrivals, which is not public for {entry.dataset}.",
                    "Ask the data owner to declare `arrivals: public` for this dataset.",
                )
