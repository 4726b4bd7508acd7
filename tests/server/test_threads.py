"""What a server sets for its whole process."""

import gc

from hubbub.server import threads


def test_what_exists_when_a_server_starts_is_not_searched_for_cycles_again() -> None:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # as Python begins
    try:
        threads.collect_seldom()
        assert gc.get_freeze_count() > 1000
        assert gc.isenabled()  # cycles that requests leave are found, only later
        assert gc.get_threshold()[0] > 700
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
