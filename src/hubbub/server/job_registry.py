"""Registry of jobs for servers or workers that share a ledger, so that a client can poll any of them.

A job is registered when it is queued, and again when its end becomes visible on the time quantum. The release is not
copied: the registry holds its key in the ledger. If a server stops sending heartbeats, its jobs fail; the same request
under the same Idempotency-Key then continues from the charge.

Tested in tests/server/test_several.py.
"""

import json
import logging
import secrets
import threading
from collections.abc import Callable

from hubbub.errors import HubbubError
from hubbub.server.query_pool import Job, clock, release_time
from hubbub.server.state import JobRecord, JobState, State

#: Seconds between two heartbeats, and seconds without one after which a server counts as gone.
_BEAT = 5.0
_GONE = 30

_LOST = json.dumps(
    {
        "error": [
            "HB324",
            "The server that ran this job has stopped.",
            "Send the same request with the same Idempotency-Key: if it was charged, it continues from that charge.",
        ]
    }
)

_log = logging.getLogger("hubbub.server")


class JobRegistry:
    """Registers this server's jobs and looks up those of the others."""

    def __init__(
        self, state: State, now: Callable[[], int], *, name: str | None = None, former: str | None = None
    ) -> None:
        """Register jobs under a name; those of the `former` server, which has ended, fail at once."""
        self._state = state
        self._now = now
        self._server = name or secrets.token_hex(8)
        if former is not None:
            state.jobs.abandon_all(former, now(), _LOST)
        self._stopped = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="hubbub-registry", daemon=True)
        self._beating.start()

    def begin(self, job: Job) -> None:
        """Register a job of this server, and update it when it ends."""
        self._put(job, "queued", None)
        job.future.add_done_callback(lambda _: self._end(job))

    def find(self, analyst: str, number: str) -> tuple[JobState, str | None, HubbubError | None] | None:
        """Return a job of any server: its state, and the key of its release or its error."""
        record = self._state.jobs.get(analyst, number)
        if record is None:
            return None
        result = json.loads(record.result or "{}")
        error = HubbubError(*result["error"]) if "error" in result else None
        return record.state, result.get("key"), error

    def cancel(self, analyst: str, number: str) -> None:
        """Cancel a job of another server: it shows as cancelled, although it may run to its end."""
        self._state.jobs.put(JobRecord(number, analyst, self._server, "cancelled", self._now(), self._now()))

    def close(self) -> None:
        """Stop the heartbeat."""
        self._stopped.set()
        self._beating.join()

    def _end(self, job: Job) -> None:
        """Register the end of a job when it becomes visible."""
        wait = release_time(job.arrived, job.ended or clock(), job.quantum) - clock()
        timer = threading.Timer(max(0.0, wait), self._register_end, args=[job])
        timer.daemon = True
        timer.start()

    def _register_end(self, job: Job) -> None:
        error = job.problem()
        if job.cancelled:
            self._put(job, "cancelled", None)
        elif error is None:
            self._put(job, "done", json.dumps({"key": job.ledger_key}))
        else:
            self._put(job, "failed", json.dumps({"error": [error.code, error.message, error.remedy]}))

    def _put(self, job: Job, state: JobState, result: str | None) -> None:
        try:
            now = self._now()
            self._state.jobs.put(JobRecord(job.id, job.owner, self._server, state, now, now, result))
        except HubbubError as error:  # the job continues, and this server still knows it
            _log.warning("a job could not be registered: %s", error.code)

    def beat(self) -> None:
        """Send a heartbeat, and fail the jobs of servers that have sent none for long."""
        now = self._now()
        self._state.jobs.touch(self._server, now)
        self._state.jobs.abandon(now - _GONE, now, _LOST)

    def _beat(self) -> None:
        while not self._stopped.wait(_BEAT):
            try:
                self.beat()
            except HubbubError as error:
                _log.warning("the job registry is unreachable: %s", error.code)
