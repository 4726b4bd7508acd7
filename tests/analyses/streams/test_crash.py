"""Kills at every step and at any time: nothing is lost, nothing is taken twice, nothing is drawn again."""

import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.stream import create_stream, open_stream
from hubbub.analyses.streams.terms import Terms
from hubbub.noise.source import system

STEPS = ("drawn", "written", "synced", "renamed", "durable")
KINDS = {
    "tree": Terms(name="s", kind="count", epsilon=Fraction(1), horizon=4096),
    "root": Terms(name="s", kind="count", epsilon=Fraction(1), delta=Fraction(1, 10**6), horizon=4096, method="root"),
    "look": Terms(name="s", kind="count", epsilon=Fraction(1), horizon=4096, private_state=True),
    "window": Terms(name="s", kind="count", epsilon=Fraction(1), window=64),
    "density": Terms(name="s", kind="density", epsilon=Fraction(1), universe=(0, 999)),
}


class Killed(BaseException):
    """What stands for a kill: no handler for errors may see it."""


def published(folder: Path) -> dict[str, list[float]]:
    """All draws that could have been seen, and how many arrivals there were: what the file holds."""
    found = states.load(folder / "s.stream")
    arrays = {name: each.astype(np.float64).ravel().tolist() for name, each in found.arrays.items()}
    return {**arrays, "arrivals": [float(found.facts["arrivals"])]}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_at_any_step_loses_nothing_and_draws_nothing_again(kind: str, step: str, tmp_path: Path) -> None:
    lines = [str(i % 2) for i in range(40)]
    with create_stream(tmp_path, KINDS[kind], system()) as stream:
        stream.feed(lines[:20], feeder="f", before=0, source=system())
    before, file = published(tmp_path), (tmp_path / "s.stream").stat().st_ino

    def kill(name: str) -> None:
        if name == step:
            raise Killed

    with pytest.raises(Killed), open_stream(tmp_path, "s", kill) as stream:
        stream.feed(lines[20:30], feeder="f", before=20, source=system())
    after = published(tmp_path)
    done = step in ("renamed", "durable")
    assert ((tmp_path / "s.stream").stat().st_ino == file) is not done
    # a density's bits may fall as they fell before
    assert (after == before) is not done or (done and kind == "density")
    with open_stream(tmp_path, "s") as stream:
        if kind == "density":
            assert (stream.lines_taken("f"), stream.arrivals) == (0, None), "it keeps no count of lines"
            assert stream.feed(lines[20:], feeder="f", before=20, source=system()) == 20
        else:
            assert stream.lines_taken("f") == (30 if done else 20)
            # whoever feeds sends again what it does not know to be taken
            assert stream.feed(lines[20:], feeder="f", before=20, source=system()) == (10 if done else 20)
            assert stream.arrivals == 40
    end = published(tmp_path)
    for name in ("answers", "measured", "arrived"):
        if name in after:
            kept = len(after[name])
            assert end[name][:kept] == after[name]  # what was drawn stays as it was drawn
    if kind == "root":
        assert end["arrived"] == [float(line) for line in lines]
    assert not list(tmp_path.glob("*.new"))


def test_a_kill_while_a_stream_is_made_leaves_none_or_one(tmp_path: Path) -> None:
    from hubbub.analyses.streams.stream import Stream

    for step in ("written", "synced", "renamed", "durable"):
        folder = tmp_path / step
        folder.mkdir()

        def kill(name: str, at: str = step) -> None:
            if name == at:
                raise Killed

        with pytest.raises(Killed):
            Stream.make(folder / "s.stream", KINDS["tree"], system(), on_step=kill)
        assert (folder / "s.stream").exists() is (step in ("renamed", "durable"))


def test_a_pipe_that_begins_anew_is_taken_once(tmp_path: Path) -> None:
    """Without --resume the same lines would be new ones; with it only those that an earlier run did not take are."""
    with create_stream(tmp_path, KINDS["root"], system()):
        pass
    command = [sys.executable, "-m", "hubbub", "stream", "feed", "s", "--folder", str(tmp_path)]
    for words, taken in ((["--resume"], b"3 events"), (["--resume"], b"1 events read, 3"), ([], b"4 events")):
        lines = b"1\n0\n1\n" if taken == b"3 events" else b"1\n0\n1\n1\n"
        done = subprocess.run([*command, *words], input=lines, check=True, capture_output=True)
        assert taken in done.stdout
    assert published(tmp_path)["arrived"] == [1, 0, 1, 1, 1, 0, 1, 1]


@pytest.mark.parametrize("kind", ["root", "look"])
def test_a_feeder_that_is_killed_again_and_again_comes_to_the_same_count(kind: str, tmp_path: Path) -> None:
    """A real process tails a file that grows, and is killed at random moments; all lines are taken, each once."""
    folder, log = tmp_path / "streams", tmp_path / "log.txt"
    with create_stream(folder, KINDS[kind], system()):
        pass
    random = np.random.default_rng(5)
    bits: list[int] = []
    command = [sys.executable, "-m", "hubbub", "stream", "feed", "s", "--tail", str(log), "--follow"]
    command += ["--folder", str(folder)]
    log.touch()
    seen: list[float] = []
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        grown = time.monotonic() + 0.8 + random.random() * 0.7
        while time.monotonic() < grown:
            more = random.integers(0, 2, int(random.integers(1, 20))).tolist()
            bits += more
            with log.open("a") as writer:
                writer.write("".join(f"{bit}\n" for bit in more))
            time.sleep(0.03)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        now = published(folder)["answers" if kind == "look" else "measured"]
        assert now[: len(seen)] == seen  # no answer that could have been read has changed
        seen = now
    last = subprocess.run([*command[:-3], "--folder", str(folder)], check=True, capture_output=True)
    assert b"events read" in last.stdout
    with open_stream(folder, "s") as stream:
        assert stream.arrivals == len(bits)
        newest = stream.values()[0]
        deviation = (newest.high - newest.low) / 4
        assert newest.value == pytest.approx(sum(bits), abs=7 * deviation)
    if kind == "root":
        assert published(folder)["arrived"] == [float(bit) for bit in bits]
