"""The desk: free work in turns, with a share for each principal, a deadline, and an end when the client hangs up."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from starlette.requests import Request

from hubbub.core import deadline
from hubbub.errors import AccessError, QueryError
from hubbub.server import free_pool as desks
from hubbub.server.accounts import Principal
from hubbub.server.free_pool import FreePool, ReservedThreads, presented
from hubbub.server.state import ROLES, Role

ANA, BEN = (Principal(name, "analyst", None, 0) for name in ("ana", "ben"))


async def connected() -> Any:
    """Stand for a client that stays."""
    await asyncio.Event().wait()


async def disconnected() -> Any:
    """Stand for a client that has hung up."""
    await asyncio.sleep(0.05)
    return {"type": "http.disconnect"}


def spin(begun: threading.Event, ended: threading.Event) -> None:
    """The same, and say so."""
    begun.set()
    try:
        forever()
    finally:
        ended.set()


def forever() -> None:
    """Compute without end, but with an ear for whoever stops it."""
    while True:
        deadline.check()


def code(error: BaseException) -> str:
    assert isinstance(error, AccessError)
    return error.code


def test_one_principal_cannot_take_all_threads() -> None:
    gate = threading.Event()

    async def main() -> None:
        desk = FreePool(threads=4, seconds=30)
        hostile = [asyncio.ensure_future(desk.run(ANA, connected, gate.wait)) for _ in range(40)]
        await asyncio.sleep(0.05)
        assert desk.counts() == (1, 39)
        assert await asyncio.wait_for(desk.run(BEN, connected, lambda: "ben"), 5) == "ben"
        gate.set()
        assert all(await asyncio.gather(*hostile))
        assert desk.counts() == (0, 0)

    asyncio.run(main())


def test_whoever_has_the_fewest_running_is_served_next() -> None:
    gates = [threading.Event() for _ in range(6)]
    order: list[str] = []

    async def main() -> None:
        desk = FreePool(threads=2, seconds=30)

        def errand(name: str, gate: threading.Event) -> Callable[[], None]:
            def run() -> None:
                order.append(name)
                gate.wait()

            return run

        cleo = Principal("cleo", "analyst", None, 0)
        asked = [(ANA, "a1"), (BEN, "b1"), (ANA, "a2"), (ANA, "a3"), (cleo, "c1"), (BEN, "b2")]
        runs = []
        for (who, name), gate in zip(asked, gates, strict=True):
            runs.append(asyncio.ensure_future(desk.run(who, connected, errand(name, gate))))
            await asyncio.sleep(0.01)
        gates[0].set()  # a1 ends: ben runs one, ana none, cleo none; the oldest of those is a2
        await runs[0]
        gates[1].set()  # b1 ends: ana runs one, so cleo comes before a3
        await runs[1]
        for gate in gates:
            gate.set()
        await asyncio.gather(*runs)

    asyncio.run(main())
    assert order[:4] == ["a1", "b1", "a2", "c1"]


@pytest.mark.parametrize("role", ROLES)
def test_what_takes_too_long_is_stopped_and_gives_its_thread_back(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    """Owner, auditor and steward may take longer; the token of a front end that feeds streams had their time, too."""
    begun, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(desks, "TRUSTED_SECONDS", 0.6)
    who = Principal("somebody", role, None, 0)

    async def main() -> None:
        desk = FreePool(threads=2, seconds=0.3)
        with pytest.raises(AccessError) as refusal:
            await desk.run(who, connected, spin, begun, ended)
        assert code(refusal.value) == "HB727"
        assert f" {0.6 if role in ('owner', 'auditor', 'steward') else 0.3} s" in str(refusal.value)
        assert await asyncio.to_thread(ended.wait, 5)
        assert await desk.run(who, connected, lambda: "next") == "next"

    asyncio.run(main())


def test_a_client_that_hangs_up_stops_what_it_asked_for() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def main() -> None:
        desk, start = FreePool(threads=2, seconds=30), time.monotonic()
        running = asyncio.ensure_future(desk.run(ANA, disconnected, spin, begun, ended))
        never = asyncio.ensure_future(desk.run(ANA, disconnected, lambda: pytest.fail("nobody waits for this")))
        found = await asyncio.gather(running, never, return_exceptions=True)
        assert [code(each) for each in found if isinstance(each, BaseException)] == ["HB728", "HB728"]
        assert time.monotonic() - start < 15  # when the client hangs up, and not when its time is over
        assert await asyncio.to_thread(ended.wait, 5)

    asyncio.run(main())


def test_a_line_of_one_principal_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desks, "MAX_WAITING", 3)
    gate = threading.Event()

    async def main() -> None:
        desk = FreePool(threads=2, seconds=30)
        runs = [asyncio.ensure_future(desk.run(ANA, connected, gate.wait)) for _ in range(4)]
        await asyncio.sleep(0.05)
        with pytest.raises(AccessError) as refusal:
            await desk.run(ANA, connected, gate.wait)
        assert code(refusal.value) == "HB726"
        ben = asyncio.ensure_future(desk.run(BEN, connected, lambda: "ben"))
        gate.set()
        assert await ben == "ben"
        await asyncio.gather(*runs)

    asyncio.run(main())


def test_an_error_reaches_whoever_asked() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await FreePool(threads=2, seconds=5).run(ANA, connected, fail)

    asyncio.run(main())


def test_authentication_does_not_delay_health_checks() -> None:
    gate = threading.Event()

    async def main() -> None:
        reserved = ReservedThreads()
        waiting = [asyncio.ensure_future(reserved.authenticate("hub_1", gate.wait)) for _ in range(20)]
        assert await asyncio.wait_for(reserved.health(lambda: "well"), 5) == "well"
        gate.set()
        await asyncio.gather(*waiting)

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["authenticate", "sign_in"])
def test_requests_without_end_do_not_delay_the_authentication_of_others(kind: str) -> None:
    gate = threading.Event()

    async def main() -> None:
        run = getattr(ReservedThreads(), kind)
        hostile = [asyncio.ensure_future(run("hub_1", gate.wait)) for _ in range(60)]
        await asyncio.sleep(0.05)
        assert await asyncio.wait_for(run("hub_2", lambda: "known"), 5) == "known"
        gate.set()
        await asyncio.gather(*hostile)

    asyncio.run(main())


def asked(header: str, where: str = "203.0.113.9") -> Request:
    return Request({"type": "http", "headers": [(b"authorization", header.encode())], "client": (where, 1)})


def test_requests_are_queued_by_address_and_whole_credential() -> None:
    """Tokens of one identity provider begin alike, and anyone can send the beginning of someone else's token."""
    common = "Bearer eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9."
    requests = [asked(common + "ana"), asked(common + "ben"), asked(common + "ana", "203.0.113.10"), asked("")]
    owners = [presented(request) for request in requests]
    assert len(set(owners)) == 4
    assert owners[0] == presented(asked(common + "ana"))
    assert not any("ana" in owner for owner in owners)


def test_made_up_owners_cannot_fill_the_queue_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desks, "MAX_WAITING_TOTAL", 5)
    gate = threading.Event()

    async def main() -> None:
        reserved = ReservedThreads()
        runs = [asyncio.ensure_future(reserved.authenticate(f"owner {n}", gate.wait)) for n in range(4 + 5)]
        await asyncio.sleep(0.05)
        with pytest.raises(AccessError) as refusal:
            await reserved.authenticate("one more", gate.wait)
        assert code(refusal.value) == "HB726"
        gate.set()
        await asyncio.gather(*runs)

    asyncio.run(main())


def test_planning_is_bounded_by_its_own_time_alone() -> None:
    with deadline.limit_planning(0.05):
        time.sleep(0.1)  # the machine is busy with others: that does not count
        deadline.check()
        with pytest.raises(QueryError, match="HB549"):
            forever()
    deadline.check()  # and the limit ends with its block
