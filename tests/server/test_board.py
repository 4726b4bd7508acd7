"""What workers share while they run, seen from two of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.errors import LedgerError
from hubbub.server.board import Board, SharedFigures, SharedQueries
from hubbub.server.limits import RateLimit


@pytest.fixture
def boards(tmp_path: Path) -> Iterator[tuple[Board, Board]]:
    both = Board(tmp_path / "board.db"), Board(tmp_path / "board.db")
    yield both
    for board in both:
        board.close()


def test_a_limit_holds_for_all_workers_together(boards: tuple[Board, Board]) -> None:
    now = 1000.0
    limits = [RateLimit(60, burst=5, clock=lambda: now, board=board, kind="requests") for board in boards]
    assert [limits[call % 2].take("ana") for call in range(5)] == [0] * 5
    assert [limit.take("ana") for limit in limits] == [1, 1]
    assert [limit.take("ben") for limit in limits] == [0, 0]
    now = 1002.0  # two more, at one a second
    assert [limits[call % 2].take("ana") for call in range(3)] == [0, 0, 1]
    assert limits[1].wait("ana") == 1


def test_limits_of_two_kinds_are_apart(boards: tuple[Board, Board]) -> None:
    first, second = (RateLimit(60, burst=1, clock=lambda: 0.0, board=boards[0], kind=kind) for kind in ("a", "b"))
    assert (first.take("ana"), first.take("ana"), second.take("ana")) == (0, 1, 0)


def test_buckets_that_are_full_again_are_dropped(boards: tuple[Board, Board]) -> None:
    now = 0.0
    limit = RateLimit(60, burst=10, clock=lambda: now, board=boards[0], kind="k")
    for name in range(999):
        limit.take(str(name))
    now = 100.0
    limit.take("last")  # the thousandth call cleans up
    assert boards[1].do("SELECT name FROM buckets") == [("k last",)]


def test_a_release_is_hidden_by_all_workers_until_its_time(boards: tuple[Board, Board]) -> None:
    here, there = (SharedQueries(board, name) for board, name in zip(boards, "ab", strict=True))
    number = here.begin("ana", 1.0)
    assert there.unseen(1.0) == frozenset()  # nothing is charged yet
    here.claim(number, "key visits", draws=True)
    assert there.unseen(1.1) == {("ana", "key visits")}
    here.end(number, 2.0, failed=False)
    assert there.unseen(1.99) == {("ana", "key visits")}
    assert there.unseen(2.0) == frozenset()


def test_a_release_that_one_try_has_shown_is_not_hidden_by_another(boards: tuple[Board, Board]) -> None:
    here, there = (SharedQueries(board, name) for board, name in zip(boards, "ab", strict=True))
    first, second = here.begin("ana", 1.0), there.begin("ana", 1.0)
    for queries, number in ((here, first), (there, second)):
        queries.claim(number, "k", draws=True)
    here.end(first, 2.0, failed=True)
    assert here.unseen(3.0) == {("ana", "k")}  # a failure has shown nothing
    here.end(first, 2.0, failed=False)
    assert here.unseen(1.5) == {("ana", "k")}
    assert here.unseen(3.0) == frozenset()


def test_a_try_knows_an_earlier_one_of_another_worker_that_did_not_show_yet(boards: tuple[Board, Board]) -> None:
    here, there = (SharedQueries(board, name) for board, name in zip(boards, "ab", strict=True))
    first, second = here.begin("ana", 1.0), there.begin("ana", 1.2)
    for queries, number in ((here, first), (there, second)):
        queries.claim(number, "k", draws=True)
    here.end(first, 2.0, failed=False)
    assert there.twin(second, "ana", "k", 1.2)
    assert not there.twin(second, "ana", "k", 2.5)  # it had shown when this one began
    assert not there.twin(second, "ben", "k", 1.2)
    assert not here.twin(first, "ana", "k", 1.0)  # the other came later


def test_queries_of_a_worker_that_has_ended_hide_nothing_and_its_counts_stay(boards: tuple[Board, Board]) -> None:
    gone = SharedQueries(boards[0], "gone")
    gone.claim(gone.begin("ana", 1.0), "k", draws=True)
    SharedFigures(boards[0], "gone").put([[["/", "GET", "2xx", 3]], [], []], {"running": 1})
    boards[1].retire("gone")
    assert SharedQueries(boards[1], "next").unseen(1.0) == frozenset()
    assert SharedFigures(boards[1], "next").others() == [([[["/", "GET", "2xx", 3]], [], []], {})]


def test_a_board_that_cannot_be_used_is_an_error_of_ours(boards: tuple[Board, Board]) -> None:
    boards[0].close()
    with pytest.raises(LedgerError, match="HB323"):
        boards[0].do("SELECT 1")


def test_what_is_taken_at_once_is_taken_from_the_same_bucket(boards: tuple[Board, Board]) -> None:
    limits = [RateLimit(60, burst=3, clock=lambda: 0.0, board=board, kind="k") for board in boards]
    assert [limit.has_at_once("ana") for limit in limits] == [True, True]
    assert [limits[call % 2].take_at_once("ana") for call in range(4)] == [True, True, True, False]
    assert [limit.has_at_once("ana") for limit in limits] == [False, False]
    assert [limit.take("ana") for limit in limits] == [1, 1]


def test_nothing_is_taken_at_once_while_another_process_writes(boards: tuple[Board, Board]) -> None:
    limit = RateLimit(60, burst=3, clock=lambda: 0.0, board=boards[0], kind="k")
    assert limit.take_at_once("ana")
    boards[1].do("BEGIN IMMEDIATE")
    assert not limit.take_at_once("ana")
    boards[1].do("ROLLBACK")
    assert [limit.take_at_once("ana") for _ in range(3)] == [True, True, False]


def test_the_usual_way_cleans_up_however_many_calls_are_taken_at_once(boards: tuple[Board, Board]) -> None:
    now = 0.0
    limit = RateLimit(60, burst=10, clock=lambda: now, board=boards[0], kind="k")
    for name in range(999):
        assert limit.take_at_once(str(name))
    now = 100.0
    assert not limit.take_at_once("last")
    assert limit.take("last") == 0
    assert boards[1].do("SELECT name FROM buckets") == [("k last",)]
