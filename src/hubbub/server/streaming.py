"""Streams of the service: begun by who paid, fed by the owner or a feeder, read by who paid, owner and auditor.

A name belongs to its analyst, so owner, auditor and feeder say whose stream they mean where two have the same name.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hubbub.analyses.streams import buying
from hubbub.analyses.streams.places import Entry, entries, of_analyst
from hubbub.analyses.streams.stream import opened
from hubbub.curator.opening import folder_of
from hubbub.curator.streams import streams_of
from hubbub.errors import StreamError
from hubbub.noise.source import system
from hubbub.server.accounts import Principal
from hubbub.server.administration import Governing
from hubbub.server.problems import missing
from hubbub.server.roles import allowed


class Streaming(Governing):
    """What the service does with streams. Their states lie in the folder hubbub-streams beside hubbub.yaml."""

    @property
    def _streams(self) -> Path:
        return streams_of(self.current.config)

    @allowed
    def streams(self, principal: Principal) -> list[Entry]:
        """List the streams: an analyst's own, or all."""
        return self._seen(principal)

    @allowed
    def stream(self, principal: Principal, name: str, analyst: str | None = None) -> dict[str, Any]:
        """Say what a stream says now; nothing is drawn."""
        entry = self._look(principal, name, analyst)
        self._refuse_hidden(principal, entry)
        with opened(entry.folder, name) as held:
            return held.form()

    @allowed
    def begin_stream(self, principal: Principal, number: int) -> dict[str, Any]:
        """Begin the stream that a charge of the analyst's paid for, once; again, it is the same stream."""
        with self.current.using() as curator:
            release = curator.release(number, analyst=principal.name)
            if release.receipt.get("analysis") != "stream":
                raise StreamError("HB531", f"release {number} paid for no stream.", "Ask for one: CALL stream(…).")
            if release.receipt["ledger"][0]["dataset"] not in curator.datasets(principal.name):
                raise missing(f"release with the number {number}")
            ledger = folder_of(curator.config)
            begun = buying.begin_paid(self._streams, ledger, release, analyst=principal.name, source=system())
        return self.stream(principal, begun.terms.name)

    @allowed
    def feed_stream(
        self,
        principal: Principal,
        name: str,
        lines: Sequence[str],
        *,
        feeder: str,
        before: int | None,
        analyst: str | None = None,
    ) -> dict[str, int]:
        """Let arrivals in; they are on the disk when this returns, and lines that come again are passed over.

        A feeder hears about its own lines and no others: it counts under its own name, whatever it calls itself.
        """
        entry = self._look(principal, name, analyst)
        if not self._asks(entry):
            raise StreamError(
                "HB662",
                "the analyst of this stream may no longer ask about its dataset.",
                "Nothing was taken. The owner can end the stream.",
            )
        counted = principal.name if principal.role == "feeder" else feeder
        with opened(entry.folder, name) as held:
            taken = held.feed(lines, feeder=counted, before=before, source=system())
            return {"taken": taken, "of_feeder": held.taken(counted)}

    @allowed
    def answer_stream(self, principal: Principal, name: str) -> dict[str, Any]:
        """Draw one of the answers of a density that were paid for."""
        entry = self._look(principal, name, None)
        with opened(entry.folder, name) as held:
            held.tell(system())
            return held.form()

    @allowed
    def end_stream(self, principal: Principal, name: str, analyst: str | None = None) -> None:
        """End a stream, or drop a purchase of it that was interrupted: the state is erased, the charge stands."""
        if principal.role == "analyst" and analyst in (None, principal.name):
            whose: str | None = principal.name
        else:
            whose = self._look(principal, name, analyst).analyst
        if whose is None:
            buying.end_state(self._streams, name)
            return
        try:
            buying.end(self._streams, whose, name)
        except StreamError as error:
            if error.code != "HB531":
                raise
            raise missing(f"stream called {name!r}") from None

    def _look(self, principal: Principal, name: str, analyst: str | None) -> Entry:
        """Find one stream; refuse what is not there, or not for who asks, in the same words."""
        chosen = [each for each in self._seen(principal, name) if analyst in (None, each.analyst)]
        if len(chosen) > 1:
            raise StreamError(
                "HB663", f"{len(chosen)} analysts have a stream called {name}.", "Say whose: add ?analyst=NAME."
            )
        if not chosen:
            raise missing(f"stream called {name!r}")
        return chosen[0]

    def _seen(self, principal: Principal, name: str = "*") -> list[Entry]:
        """List the streams that somebody may name: an analyst those on datasets that they may still ask about."""
        if principal.role == "analyst":
            return [each for each in of_analyst(self._streams, principal.name, name) if self._asks(each)]
        if principal.role == "feeder":
            feeds = self.state.feeds.of(principal.token or "")
            return [each for each in entries(self._streams, name) if (each.analyst, each.name) in feeds]
        return entries(self._streams, name)

    def _asks(self, entry: Entry) -> bool:
        """Say whether the analyst of a stream may still ask about its dataset: else nothing more is let in or out."""
        if entry.analyst is None:
            return True
        with self.current.using() as curator:
            known = entry.analyst in curator.config.policy.analysts
            return known and entry.dataset in curator.datasets(entry.analyst)

    def _refuse_hidden(self, principal: Principal, entry: Entry) -> None:
        """Refuse a count, whose answers tell how many arrivals there were, where that is not public."""
        if entry.terms.kind == "density" or principal.role == "owner" or entry.dataset is None:
            return
        with self.current.using() as curator:
            table = curator.tables.get(entry.dataset)
            if table is None or not table.arrivals:
                raise StreamError(
                    "HB664",
                    f"how many arrivals {entry.dataset} has is not public, and this stream tells it.",
                    "Ask the owner to declare `arrivals: public` for this dataset.",
                )
