"""A board where servers that share a PostgreSQL ledger post their jobs, so that any of them can be asked.

A job is posted when it is put in line, and again when its end may show: on the quantum, like everything that shows. The
release is not copied; the board says under which key the ledger has it. A server that no longer touches its jobs is
gone, and they have failed; the same request, sent again under its Idempotency-Key, goes on from the charge.
"""

import json
import logging
import secrets
import threading
from collections.abc import Callable

from hubbub.errors import HubbubError
from hubbub.server.query_pool import Job, clock, release_time
from hubbub.server.state import Job as Post
from hubbub.server.state import JobState, State

#: Seconds between two signs of life, and after how many without one a server is gone.
_BEAT = 5.0
_GONE = 30

_LOST = json.dumps(
    {
        "error": [
            "HB324",
            "the server that worked on this has gone.",
            "Send the same request with the same Idempotency-Key: it goes on from its charge, if that was made.",
        ]
    }
)

_log = logging.getLogger("hubbub.server")


class JobRegistry:
    """This server's view of the board."""

    def __init__(self, state: State, now: Callable[[], int]) -> None:
        self._state = state
        self._now = now
        self._server = secrets.token_hex(8)
        self._stopped = threading.Event()
        self._beating = threading.Thread(target=self._beat, name="hubbub-board", daemon=True)
        self._beating.start()

    def begin(self, job: Job) -> None:
        """Post a job of ours, and see to it that its end is posted."""
        self._put(job, "queued", None)
        job.future.add_done_callback(lambda _: self._end(job))

    def find(self, analyst: str, number: str) -> tuple[JobState, str | None, HubbubError | None] | None:
        """Read what became of a job, whoever works on it: its state, and the release's key or the error."""
        post = self._state.jobs.get(analyst, number)
        if post is None:
            return None
        said = json.loads(post.result or "{}")
        error = HubbubError(*said["error"]) if "error" in said else None
        return post.state, said.get("key"), error

    def cancel(self, analyst: str, number: str) -> None:
        """Cancel a job of another server: it shows as cancelled, though its run may go on to its end."""
        self._state.jobs.put(Post(number, analyst, self._server, "cancelled", self._now(), self._now()))

    def close(self) -> None:
        """Stop giving signs of life."""
        self._stopped.set()
        self._beating.join()

    def _end(self, job: Job) -> None:
        """Post the end when it may show."""
        wait = release_time(job.arrived, job.ended or clock(), job.quantum) - clock()
        timer = threading.Timer(max(0.0, wait), self._post_end, args=[job])
        timer.daemon = True
        timer.start()

    def _post_end(self, job: Job) -> None:
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
            self._state.jobs.put(Post(job.id, job.owner, self._server, state, now, now, result))
        except HubbubError as error:  # the job itself goes on, and this server knows of it
            _log.warning("a job could not be posted: %s", error.code)

    def beat(self) -> None:
        """Give a sign of life, and fail the jobs of those who gave none for long."""
        now = self._now()
        self._state.jobs.touch(self._server, now)
        self._state.jobs.abandon(now - _GONE, now, _LOST)

    def _beat(self) -> None:
        while not self._stopped.wait(_BEAT):
            try:
                self.beat()
            except HubbubError as error:
                _log.warning("the board cannot be reached: %s", error.code)
