"""Hostile functions, each with what it tries: none of them gets out, and all of them take the same time."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.analyses.functions import sandbox as boxes
from hubbub.analyses.functions.sandbox import Code, Sandbox
from hubbub.errors import ParameterError

SECONDS = 0.2
PLENTY = 1.5  #: for what must succeed, also on a busy machine
MEAN = "def f(rows): return rows['x'].mean()"

#: What a function does, and what comes of it: None is a failure, which the caller replaces by a default.
HOSTILE: dict[str, tuple[str, tuple[float, ...] | None]] = {
    "sleeps": ("import time\ndef f(rows): time.sleep(30); return 1", None),
    "never ends": ("def f(rows):\n    while True: pass", None),
    "raises": ("def f(rows): raise ValueError(str(rows))", None),
    "raises what nobody catches": ("def f(rows): raise BaseException", None),
    "recurses": ("def f(rows): return f(rows)", None),
    "returns NaN": ("def f(rows): return float('nan')", None),
    "returns infinity": ("def f(rows): return float('inf')", None),
    "returns nothing": ("def f(rows): pass", None),
    "returns a text": ("def f(rows): return 'all of ' + str(rows)", None),
    "returns too many": ("def f(rows): return list(range(1000))", None),
    "returns its own class": (
        "class Mine:\n    def __float__(self): raise SystemExit(7)\ndef f(rows): return Mine()",
        None,
    ),
    "exits with a code": ("import os\ndef f(rows): os._exit(int(rows['x'][0]) + 40)", None),
    "exits politely": ("def f(rows): raise SystemExit(3)", None),
    "kills itself": ("import ctypes\ndef f(rows): ctypes.string_at(0)", None),
    "forks": ("import os\ndef f(rows):\n    while True: os.fork()", None),
    "starts threads": (
        "import threading\ndef f(rows):\n    t = threading.Thread(target=print); t.start(); return 1",
        None,
    ),
    "starts a program": ("import subprocess\ndef f(rows): subprocess.run(['true']); return 1", None),
    "takes all memory": ("def f(rows):\n    a = []\n    while True: a.append(bytearray(1 << 28))", None),
    "takes memory at once": ("def f(rows): return len(bytearray(1 << 36))", None),
    "opens a file": ("def f(rows): return float(len(open('/etc/passwd').read()))", None),
    "reads itself": ("def f(rows): return float(len(open('/proc/self/maps').read()))", None),
    "opens a socket": ("import socket\ndef f(rows): socket.socket(); return 1", None),
    "imports what is not loaded": ("def f(rows):\n    import sqlite3\n    return 1", None),
    "kills its parent": ("import os\ndef f(rows): os.kill(os.getppid(), 9); return 1", None),
    "traces its parent": (
        "import ctypes, os\ndef f(rows):\n    r = ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0); return r or 1 / 0",
        (-1.0,),
    ),
    "undoes its limits": (
        "import resource\ndef f(rows): resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99)); return 1",
        None,
    ),
    "prints": ("import sys\ndef f(rows): print(rows); print('x' * 10**6, file=sys.stderr); return 5", (5.0,)),
    "answers twice": (
        "import os, struct\ndef f(rows):\n    for n in range(3, 64):\n        try: os.write(n, struct.pack('d', 8.0))\n"
        "        except OSError: pass\n    return 5",
        (8.0,),
    ),
    "floods its answer": (
        "import os\ndef f(rows):\n    for n in range(3, 64):\n        try:\n"
        "            while True: os.write(n, b'\\0' * 4096)\n        except OSError: pass",
        (0.0,),
    ),
    "answers by halves": (
        "import os\ndef f(rows):\n    for n in range(3, 64):\n        try: os.write(n, b'\\0\\0\\0')\n"
        "        except OSError: pass\n    os._exit(0)",
        None,
    ),
    "is no text of Python that runs": ("1 / 0\ndef f(rows): return 1", None),
    "is honest": (MEAN, (2.0,)),
    "uses what libraries load late": (
        "def f(rows):\n    x = rows['x']\n    np.random.normal(size=3); np.fft.fft(x); np.polyfit(x, x, 1)\n"
        "    np.linalg.svd(x[:, None]); np.percentile(x, 10); np.histogram(x); np.random.default_rng().normal()\n"
        "    return np.nanmedian(x)",
        (2.0,),
    ),
}


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[list[str]]:
    """Listen on a port of this machine, and say who calls."""
    calls: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        done = threading.Event()

        def listen() -> None:
            while not done.is_set():
                try:
                    server.accept()[0].close()
                    calls.append("called")
                except TimeoutError:
                    continue

        thread = threading.Thread(target=listen)
        thread.start()
        calls.append(str(server.getsockname()[1]))
        try:
            yield calls
        finally:
            done.set()
            thread.join()


def given() -> dict[str, Any]:
    return {"x": np.array([1.0, 2.0, 3.0]), "word": np.array(["a", None, "b"], dtype=object)}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_function_gives_nothing_and_reaches_nothing(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    text, expected = HOSTILE[name]
    seconds = SECONDS if expected is None else PLENTY
    with Sandbox(
        Code.of(text), outputs=1, seconds=seconds, imports=("socket", "subprocess", "threading", "ctypes")
    ) as box:
        start = time.monotonic()
        found = box.run(given())
        took = time.monotonic() - start
        again = box.run(given()) if expected is None else found
    assert found == again == expected
    assert seconds <= took < seconds + 2
    assert capfd.readouterr() == ("", "")


def test_files_and_sockets_stay_as_they_were(tmp_path: Path, watched: list[str]) -> None:
    mark = tmp_path / "mark"
    text = f"""
import os, socket
def f(rows):
    done = 0
    for attempt in (
        lambda: open({str(mark)!r}, "w").write("here"),
        lambda: os.open({str(mark)!r}, os.O_CREAT | os.O_WRONLY),
        lambda: os.mkdir({str(mark)!r}),
        lambda: os.symlink("/etc/passwd", {str(mark)!r}),
        lambda: socket.create_connection(("127.0.0.1", {watched[0]})),
        lambda: os.memfd_create("x"),
        lambda: os.pipe(),
    ):
        try:
            attempt()
            done += 1
        except Exception:
            pass
    return done
"""
    with Sandbox(Code.of(text), outputs=1, seconds=PLENTY, imports=("socket",)) as box:
        assert box.run(given()) == (0.0,)
    assert not mark.exists()
    assert watched[1:] == []


def test_the_lock_is_what_denies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error: with a cell that does not lock itself, the trial at the start refuses to go on."""
    cell = tmp_path / "cell.py"
    cell.write_text(boxes._WORKER.read_text().replace("    _lock(libc)\n", ""))
    monkeypatch.setattr(boxes, "_WORKER", cell)
    with pytest.raises(ParameterError, match="HB192"):
        Sandbox(Code.of(MEAN), outputs=1, seconds=SECONDS)


def test_where_there_is_no_lock_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes.platform, "machine", lambda: "vax")  # type: ignore[attr-defined]
    with pytest.raises(ParameterError, match="HB192"):
        Sandbox(Code.of(MEAN), outputs=1, seconds=SECONDS)
    monkeypatch.undo()
    monkeypatch.setattr(boxes.sys, "executable", "/nonexistent")  # type: ignore[attr-defined]
    with pytest.raises(ParameterError, match="HB192"):
        Sandbox(Code.of(MEAN), outputs=1, seconds=SECONDS)


def test_no_block_finds_another_blocks_rows_in_memory() -> None:
    """It looks through everything that Python has, and through the memory around it, for the first block's word."""
    text = """
import ctypes, gc
def f(rows):
    heap = id(rows)
    near = ctypes.string_at(heap - (heap % 4096), 65536)
    # in the negative: the word itself would stand on the heap if it were written down before the look
    negative = bytes([172, 186, 188, 173, 186, 171, 210, 203, 205])
    seen = negative in bytes(255 - byte for byte in near)
    word = bytes(255 - byte for byte in negative)
    mine = any(word.decode() == x for x in rows["word"])
    objects = sum(isinstance(o, str) and word.decode() in o for o in gc.get_objects())
    return [float(mine), float(objects), float(seen)]
"""
    secret = {"x": np.array([1.0]), "word": np.array(["SECRET-42"] * 1000, dtype=object)}
    with Sandbox(Code.of(text), outputs=3, seconds=PLENTY, imports=("ctypes",)) as box:
        first = box.run(secret)
        assert first is not None
        assert first[0] == 1.0, "the block itself is seen"
        second = box.run(given())
    assert second == (0.0, 0.0, 0.0)


def test_nothing_that_a_block_leaves_behind_is_there_for_the_next() -> None:
    text = """
import builtins, math, sys
def f(rows):
    seen = getattr(math, "mark", 0) + getattr(builtins, "mark", 0) + len([m for m in sys.modules if m == "mark"])
    math.mark = builtins.mark = 7
    sys.modules["mark"] = math
    return seen
"""
    with Sandbox(Code.of(text), outputs=1, seconds=PLENTY) as box:
        assert box.run(given()) == (0.0,)
        assert box.run(given()) == (0.0,)


def test_each_block_draws_random_numbers_of_its_own() -> None:
    text = "import random\ndef f(rows): return [random.random(), np.random.random()]"
    with Sandbox(Code.of(text), outputs=2, seconds=PLENTY) as box:
        first, second = box.run(given()), box.run(given())
    assert first is not None
    assert second is not None
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_a_run_takes_the_same_time_whatever_the_function_does() -> None:
    """What decides is that no run ends before its time, and that each ends soon after it."""
    took = []
    for text in (MEAN, "def f(rows):\n    while True: pass", "def f(rows): raise ValueError"):
        with Sandbox(Code.of(text), outputs=1, seconds=SECONDS) as box:
            start = time.monotonic()
            box.run(given())
            took.append(time.monotonic() - start)
    assert min(took) >= SECONDS + 0.1
    assert max(took) < SECONDS + 1


def test_the_process_is_gone_when_the_box_is_closed() -> None:
    box = Sandbox(Code.of("def f(rows):\n    while True: pass"), outputs=1, seconds=SECONDS)
    box.run(given())
    process = box._worker._process
    box.close()
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_function_travels_as_its_text() -> None:
    def mean(rows: dict[str, Any]) -> float:
        import statistics

        return float(statistics.mean(rows["x"].tolist()))

    code = Code.of(mean)
    assert code.name == "mean"
    assert len(code.hash) == 64
    with Sandbox(code, outputs=1, seconds=PLENTY) as box:
        assert box.run(given()) == (2.0,)


def test_a_function_that_cannot_travel_is_refused() -> None:
    inside = 4

    def closes(rows: dict[str, Any]) -> float:
        return float(inside)

    for function in (closes, len, abs, "def g(rows): return 1", "no python", "x = 1", "#" * 200_000):
        with pytest.raises(ParameterError, match="HB191"):
            Code.of(function)
