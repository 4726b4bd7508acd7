"""A session with a server: the methods of the embedded one, and the same answers and errors."""

import time
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx

from hubbub.answers.budget import BudgetOverview, PastCharge
from hubbub.answers.combine import repeat_query, refine
from hubbub.answers.estimate import Estimate
from hubbub.answers.methods import Analyses, Estimates
from hubbub.answers.options import Options
from hubbub.answers.publish import Publisher
from hubbub.answers.release import Release
from hubbub.answers.scope import Scope
from hubbub.client import address, problems
from hubbub.client.calls import Calls
from hubbub.client.protocol import Pause, Request, Steps
from hubbub.core.numbers import Number
from hubbub.core.schema import Table

T = TypeVar("T")

#: Seconds for one answer of the server. A query that takes longer is waited for by asking again.
TIMEOUT = 30.0
RETRIES = 4


class RemoteSession(Analyses[Release], Publisher):
    """One analyst's view of a curator on a server. Close it, or use it in a `with` block."""

    def __init__(self, client: httpx.Client, *, retries: int) -> None:
        """Use `hubbub.connect`."""
        self._client = client
        self._calls = Calls(retries)
        self.analyst = ""
        self.analyst = self._run(self._calls.me())

    def datasets(self) -> tuple[str, ...]:
        """List the datasets that may be asked about."""
        return self._run(self._calls.datasets())

    def describe(self, dataset: str) -> Table:
        """Show what is declared about a dataset: who is protected, its columns with their facts."""
        return self._run(self._calls.describe(dataset))

    def budget(self) -> tuple[BudgetOverview, ...]:
        """Say what is spent and what is left, for each dataset."""
        return self._run(self._calls.budget())

    def estimate(self, sql: str, **options: Unpack[Options]) -> Estimate:
        """Say what a question would cost and how exact its answer would be. Free: nothing is run or charged."""
        return self._run(self._calls.estimate(sql, options))

    def query(self, sql: str, *, key: str | None = None, **options: Unpack[Options]) -> Release:
        """Ask, for a price: `epsilon`, or `within` for the ± that is wanted.

        The same question on the same data is answered from the ledger at no cost. A `key` names one answer: the same
        key always gives the same one, a new key draws (and charges) anew. Tries that the network makes necessary are
        one request to the server, and charged once. Ctrl-C cancels the query; if its charge was made, it stands.
        """
        return self._run(self._calls.query(sql, key, options))

    @property
    def estimates(self) -> Estimates[Estimate]:
        """The analyses once more, each saying what it would cost instead of asking: h.estimates.kmeans(…). Free."""
        return Estimates(self.estimate)

    def scope(self, *, epsilon: Number, delta: Number = 0) -> Scope:
        """Give a loop of queries and analyses so much to spend, and no way to more: `with h.scope(epsilon=1) as s:`.

        See `hubbub.answers.scope.Scope`.
        """
        return Scope(self, epsilon=epsilon, delta=delta)

    def _called(self, text: str, key: str | None, options: Options) -> Release:
        return self.query(text, key=key, **options)

    def refine(self, first: Release, *, epsilon: Number, key: str | None = None) -> Release:
        """Ask the same once more and combine both: see `hubbub.curator.session.Session.refine`."""
        sql, options = repeat_query(first.receipt, epsilon=epsilon)
        return refine(first, self.query(sql, key=key or token_hex(16), **options))

    def releases(self, *, limit: int = 100, before: int | None = None) -> tuple[PastCharge, ...]:
        """List what was asked and paid for, newest first; `before` (a number of the list) goes on where one ended."""
        return self._run(self._calls.releases(limit, before))

    def release(self, number: int) -> Release:
        """Give an earlier answer once more, by the number of its charge. Free."""
        return self._run(self._calls.release(number))

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self.analyst or 'somebody'} at {self._client.base_url}>"

    def _run(self, steps: Steps[T]) -> T:
        """Carry steps out, telling them what became of each."""
        try:
            step = next(steps)
            while True:
                found, failed = None, None
                try:
                    found = self._do(step)
                except BaseException as error:  # noqa: BLE001 - a wait that is broken off is theirs to handle, too
                    failed = error
                # out here, so that what they raise does not carry a request, with its token, as its context
                step = steps.send(found) if failed is None else steps.throw(failed)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _do(self, step: Request | Pause) -> httpx.Response | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        if self._client.is_closed:
            raise problems.closed()
        return self._client.request(step.method, step.path, json=step.body, params=step.query, headers=step.headers)


def settings(url: str, token: str, *, timeout: float, ca: str | Path | None, insecure: bool) -> dict[str, Any]:
    """Give what both kinds of httpx client are made with."""
    where = address.base(url, insecure=insecure)
    return {
        "base_url": where,
        "auth": address.BearerToken(token),
        "timeout": timeout,
        "verify": address.trust(ca=ca, insecure=insecure),
        # a proxy of the environment would see what is not encrypted
        "trust_env": where.scheme == "https",
        # a redirect would carry the token elsewhere
        "follow_redirects": False,
        "headers": {"Accept": "application/json"},
    }


def connect(
    url: str,
    token: str,
    *,
    timeout: float = TIMEOUT,
    retries: int = RETRIES,
    ca: str | Path | None = None,
    insecure: bool = False,
    transport: httpx.BaseTransport | None = None,
) -> RemoteSession:
    """Open a session with a server; see `hubbub.connect`."""
    client = httpx.Client(**settings(url, token, timeout=timeout, ca=ca, insecure=insecure), transport=transport)
    try:
        return RemoteSession(client, retries=retries)
    except BaseException:
        client.close()
        raise
