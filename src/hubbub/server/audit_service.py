"""The ledger and the metrics, for owners and auditors.

Tested in tests/server/test_explain.py.
"""

import threading
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from hubbub.accounting.failures import Failures, review
from hubbub.accounting.status import history
from hubbub.accounting.store import EntryFilter
from hubbub.audit import report
from hubbub.core import numbers
from hubbub.curator.opening import folder_of
from hubbub.errors import AccessError, AuditError
from hubbub.server.accounts import Principal
from hubbub.server.board import SharedFigures
from hubbub.server.catalog_service import MAX_PAGE
from hubbub.server.current_curator import CurrentCurator
from hubbub.server.metrics import Metrics
from hubbub.server.query_pool import QueryPool
from hubbub.server.roles import allowed
from hubbub.server.telemetry import Telemetry
from hubbub.server.unusual_behavior import Observation, unusual

#: The report of the nightly self-audit, in the folder of hubbub.yaml.
SELF_AUDIT = "audit.json"
#: Days whose queries are looked at for unusual behavior, and the most queries.
WATCHED_DAYS = 30
_WATCHED = 1000
#: Ends of the routes that answer queries for a charge.
_ASKED = ("/v1/query", "/ask/spend")


class AuditService:
    """Reads and verifies the ledger, and writes the metrics."""

    def __init__(
        self,
        current: CurrentCurator,
        pool: QueryPool,
        metrics: Metrics,
        shared: SharedFigures | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        """With `shared`, the metrics are those of all workers."""
        self._current = current
        self._shared = shared
        self._pool = pool
        self._metrics = metrics
        self._telemetry = telemetry
        self._verifying = threading.Lock()

    @allowed("owner", "auditor")
    def history(
        self, principal: Principal, *, which: EntryFilter, unreleased: bool = False, limit: int = 50
    ) -> list[dict[str, Any]]:
        """List ledger entries, newest first."""
        limit = numbers.integer(limit, "limit", 1, MAX_PAGE)
        with self._current.using() as curator, curator.ledger.snapshot() as snapshot:
            lines = history(snapshot, which, unreleased=unreleased, newest_first=True, limit=limit)
            return [asdict(line) for line in lines]

    @allowed("owner", "auditor")
    def verify(self, principal: Principal) -> dict[str, Any]:
        """Verify the whole ledger; only one verification runs at a time, because it is expensive."""
        if not self._verifying.acquire(blocking=False):
            raise AccessError("HB724", "The ledger is already being verified.", "Try again in a few seconds.", 5)
        try:
            with self._current.using() as curator:
                result = curator.ledger.verify()
        finally:
            self._verifying.release()
        return {
            "sound": result.sound,
            "entries": result.entries,
            "charges": result.charges,
            "releases": result.releases,
            "caps": result.caps,
            "head": {"sequence": result.head.sequence, "hash": result.head.hash.hex()},
            "anchor": None if result.anchor is None else result.anchor.sequence,
            "problems": [asdict(problem) for problem in result.problems],
            "report": result.report(),
        }

    @allowed("owner", "auditor")
    def unusual(self, principal: Principal) -> tuple[Observation, ...]:
        """Return what looks unusual in the newest queries and in the failures that nobody reviewed."""
        since, failures = datetime.now(UTC) - timedelta(days=WATCHED_DAYS), Failures()
        with self._current.using() as curator:
            charges = curator.releases(None, limit=_WATCHED)
            with curator.ledger.snapshot() as snapshot:
                failures.take_in(snapshot)
        return unusual([each for each in charges if each.time >= since], failures.every())

    @allowed("owner", "auditor")
    def refused(self, principal: Principal) -> tuple[int, int]:
        """Return how many queries were refused since the server started, and how many there were."""
        every = [self._metrics.counters()]
        every += [] if self._shared is None else [counters for counters, _ in self._shared.others()]
        asked = [each for requests, *_ in every for each in requests if each[0].endswith(_ASKED) and each[1] == "POST"]
        return sum(each[3] for each in asked if each[2] == "4xx"), sum(each[3] for each in asked)

    @allowed("owner", "auditor")
    def self_audit(self, principal: Principal) -> Mapping[str, Any] | None:
        """Return the newest report of the self-audit; None without one; HB637 to HB639 if it cannot be trusted."""
        with self._current.using() as curator:
            config = curator.config
        path = config.path.parent / SELF_AUDIT
        if not path.exists():
            return None
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise AuditError(
                "HB638", f"{path.name} cannot be read.", "Write it with `hubbub audit self --out audit.json`."
            ) from None
        keys = report.load_public_keys(report.public_key_path(folder_of(config) / "audit.key"))
        return report.verify_report(text, keys)

    @allowed("owner")
    def review(self, principal: Principal, analyst: str, dataset: str) -> tuple[int, ...]:
        """Record that the owner reviewed an analyst's failed queries on a dataset, and reset their count."""
        with self._current.using() as curator:
            return review(curator.ledger, analyst, dataset, by=principal.name)

    @allowed("owner", "auditor")
    def figures(self, principal: Principal) -> str:
        """Return the metrics in Prometheus' text format."""
        return self.local_figures()

    def share_figures(self) -> None:
        """Let the other workers know the metrics of this one."""
        if self._shared is not None:
            running, waiting = self._pool.counts()
            gauges: dict[str, float] = {"running": running, "waiting": waiting, "dropped": self._dropped()}
            self._shared.put(self._metrics.counters(), gauges)

    def local_figures(self) -> str:
        """Return the metrics without a principal; the caller checks that the request comes from this machine."""
        running, waiting = self._pool.counts()
        dropped = self._dropped()
        metrics = self._metrics
        if self._shared is not None:
            metrics = Metrics()
            metrics.add(self._metrics.counters())
            for counters, gauges in self._shared.others():
                metrics.add(counters)
                running += int(gauges.get("running", 0))
                waiting += int(gauges.get("waiting", 0))
                dropped += int(gauges.get("dropped", 0))
        return metrics.text(
            {
                "queries_running": ("Queries running now.", running),
                "queries_waiting": ("Queries waiting for a thread.", waiting),
                "telemetry_dropped": ("Records of the audit log and traces that could not be sent.", dropped),
            }
        )

    def _dropped(self) -> int:
        return 0 if self._telemetry is None else self._telemetry.dropped
