"""Words are never given twice: not after a fork, in threads, in a signal handler, or by a copy."""

import copy
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from hashlib import sha256
from multiprocessing.pool import Pool

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hubbub.errors import MechanismError
from hubbub.noise import source as source_module
from hubbub.noise.source import Keystream, ReplaySource, SeededSource, system

pytestmark = pytest.mark.usefixtures("system_randomness")


def in_child(work: Callable[[], bytes], fork: Callable[[], int] = os.fork) -> bytes:
    """Run something in a forked child and give what it returned; a child that hangs is ended by its own alarm."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # later Pythons warn of a fork beside threads: our very case
        child = fork()
    if child == 0:
        signal.alarm(20)
        os.write(write, work())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    assert status == 0
    return answer


def drawn_next(source: Keystream) -> list[int]:
    """Give what a child that goes on with the same stream would give: words of the buffer and words made at once."""
    return [*source.words(100).tolist(), *source.words(1000).tolist()]


def draw_in_worker(count: int) -> list[int]:
    return [int(word) for word in system().words(count)]


def test_the_words_are_the_keystream_of_aes_in_counter_mode_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes] = []

    def urandom(size: int) -> bytes:
        keys.append(bytes([len(keys) + 1]) * size)
        return keys[-1]

    monkeypatch.setattr(os, "urandom", urandom)
    monkeypatch.setattr(source_module, "_KEY_LIFETIME", 1 << 17)
    source = Keystream()
    taken = np.concatenate([source.words(count) for count in (5, 100, 128, 0, 1, 128)])  # from the buffer
    large = source.words(40_000)  # past the lifetime of the first key, in blocks of 64 KiB
    zeros = bytes(1 << 20)
    first, second, third = (
        np.frombuffer(
            Cipher(algorithms.AES(bytes([k]) * 32), modes.CTR(bytes(16))).encryptor().update(zeros), np.uint64
        )
        for k in (1, 2, 3)
    )
    assert taken.tolist() == first[: len(taken)].tolist()
    blocks = [first[512 : 512 + 8192], second[:8192], second[8192:16384], third[:8192], third[8192:]]
    assert large.tolist() == np.concatenate(blocks)[:40_000].tolist()
    assert len(keys) == 3
    assert all(len(key) == 32 for key in keys)


def test_no_word_comes_twice_from_calls_of_any_size() -> None:
    """Two of 3 million words agree by chance with probability below 3e-7."""
    source = Keystream()
    words = np.concatenate(
        [source.words(count) for count in [*range(300), 10**6, *range(300), 2 * 10**6, 129, 512, 513]]
    )
    assert len(np.unique(words)) == len(words)


def test_bits_are_balanced() -> None:
    """Each of 64 bit places over 1 M words: a deviation of 6 standard deviations has probability 1.3e-7 in all."""
    words = Keystream().words(10**6)
    ones = [(words >> np.uint64(bit) & np.uint64(1)).sum() for bit in range(64)]
    assert all(abs(int(count) - 500_000) < 6 * 500 for count in ones)


def test_words_are_wiped_when_they_are_handed_out() -> None:
    source = Keystream()
    source.words(10)
    ready = source._local.stream._ready
    assert not ready[:10].any()
    assert ready[10:].all()
    taken = source.words(3)
    taken[:] = 7
    assert not ready[:13].any()


@pytest.mark.parametrize("size", [1, 100, 1000])
def test_a_forked_child_draws_other_words(size: int) -> None:
    source = Keystream()
    source.words(1)
    child = in_child(lambda: source.words(size).tobytes())
    assert len(child) == 8 * size
    assert not set(np.frombuffer(child, np.uint64).tolist()) & set(drawn_next(source))


def test_numpy_repeats_itself_after_a_fork_which_is_why_it_is_not_used() -> None:
    generator = np.random.default_rng()
    child = in_child(lambda: generator.integers(0, 2**63, 5).tobytes())
    assert child == generator.integers(0, 2**63, 5).tobytes()


def test_a_child_forked_behind_pythons_back_draws_other_words() -> None:
    source = Keystream()
    source.words(1)
    forks = source_module._forks
    behind = ctypes.PyDLL(None).fork

    def work() -> bytes:
        assert source_module._forks == forks  # no handler has run
        return source.words(100).tobytes()

    child = in_child(work, behind)
    assert len(child) == 800
    assert not set(np.frombuffer(child, np.uint64).tolist()) & set(drawn_next(source))


def test_a_child_that_has_the_process_id_of_its_forebear_draws_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 4711)  # numbers come round again
    source = Keystream()
    source.words(1)
    child = in_child(lambda: source.words(100).tobytes())
    assert not set(np.frombuffer(child, np.uint64).tolist()) & set(drawn_next(source))


def test_a_fork_in_the_midst_of_a_call_gives_the_child_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Keystream()
    source.words(1)
    read, write = os.pipe()
    child = -1
    real = source_module._Stream.take

    def take_and_fork(stream: source_module._Stream, count: int) -> source_module.Words:
        nonlocal child
        taken = real(stream, count)
        if child == -1:
            child = os.fork()
        return taken

    monkeypatch.setattr(source_module._Stream, "take", take_and_fork)
    words = source.words(50)
    if child == 0:
        os.write(write, words.tobytes())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        theirs = np.frombuffer(pipe.read(), np.uint64)
    assert os.waitpid(child, 0)[1] == 0
    assert len(theirs) == 50
    assert not set(theirs.tolist()) & set(words.tolist())


def test_a_child_forked_while_threads_draw_neither_hangs_nor_repeats() -> None:
    source, stop = Keystream(), threading.Event()

    def draw() -> None:
        while not stop.is_set():
            source.words(200_000)

    threads = [threading.Thread(target=draw) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        answers = [np.frombuffer(in_child(lambda: source.words(100).tobytes()), np.uint64) for _ in range(5)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    words = np.concatenate([*answers, np.array(drawn_next(source), dtype=np.uint64)])
    assert len(np.unique(words)) == 5 * 100 + 1100


def test_workers_of_a_forked_pool_draw_different_words() -> None:
    system().words(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context = multiprocessing.get_context("fork")
        with Pool(3, context=context) as pool:
            drawn = pool.map(draw_in_worker, [50] * 30, chunksize=1)
    words = [word for part in drawn for word in part] + draw_in_worker(50)
    assert len(set(words)) == 31 * 50


def test_threads_never_share_a_word_nor_a_key() -> None:
    source, parts, streams = Keystream(), list[np.ndarray[tuple[int], np.dtype[np.uint64]]](), list[object]()

    def draw() -> None:
        mine = [source.words(n % 200) for n in range(2000)]
        parts.append(np.concatenate(mine))
        streams.append(source._local.stream)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=draw) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    words = np.concatenate(parts)
    assert len(words) == 8 * sum(n % 200 for n in range(2000))
    assert len(np.unique(words)) == len(words)
    assert len({id(stream) for stream in streams}) == 8


def test_a_signal_handler_that_interrupts_a_draw_gets_words_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    source, inner = Keystream(), list[int]()
    real = source_module._Stream.take

    def interrupted(stream: source_module._Stream, count: int) -> source_module.Words:
        inner.extend(source.words(20).tolist())  # as a handler would, between two steps of the same thread
        taken = real(stream, count)
        inner.extend(source.words(20).tolist())
        return taken

    monkeypatch.setattr(source_module._Stream, "take", interrupted)
    outer = [word for _ in range(30) for word in source.words(20).tolist()]
    assert len(inner) == 30 * 40
    assert len(set(outer) | set(inner)) == len(outer) + len(inner)


def test_an_interrupted_draw_loses_words_and_never_repeats_them(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Keystream()
    before = source.words(5)

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(source_module._Stream, "take", broken)
        with pytest.raises(KeyboardInterrupt):
            source.words(5)
    assert not set(source.words(5).tolist()) & set(before.tolist())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps, lambda s: pickle.dumps(s, protocol=0)])
def test_a_source_cannot_be_copied_or_pickled(copied: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="copied or pickled"):
        copied(system())


@pytest.mark.parametrize("bad", [-1, -5, -1000])
def test_a_negative_count_does_not_wind_the_stream_back(bad: int) -> None:
    for source in (Keystream(), ReplaySource(range(100))):
        before = source.words(50).tolist()
        with pytest.raises(ValueError, match="negative"):
            source.words(bad)
        with pytest.raises(TypeError):
            source.words(2.0)  # type: ignore[arg-type]
        after = source.words(50).tolist()
        assert not set(before) & set(after)


def test_the_process_has_one_source() -> None:
    assert system() is system()


def test_a_replay_gives_its_words_once_and_then_refuses() -> None:
    replay = ReplaySource([5, 2**64 - 1, 7])
    assert replay.words(2).tolist() == [5, 2**64 - 1]
    assert replay.left == 1
    with pytest.raises(MechanismError) as refusal:
        replay.words(2)
    assert refusal.value.code == "HB601"
    assert replay.words(1).tolist() == [7]
    with pytest.raises(MechanismError):
        replay.words(1)
    assert replay.words(0).tolist() == []


def test_a_seeded_stream_is_the_keystream_of_the_hash_of_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written out by hand: AES-256-CTR from 0 under SHA-256 of the seed and the key's number, key after key."""
    monkeypatch.setattr(source_module, "_KEY_LIFETIME", 512 * 8)  # so that a key serves one buffer
    seed = bytes(range(32))
    drawn = [
        word for count in (1, 100, 28, 128, 128, 128, 100) for word in SeededSource(seed).words(count).tolist()[:1]
    ]
    stream = SeededSource(seed)
    words = np.concatenate([stream.words(128) for _ in range(8)])
    expected = []
    for number in range(2):
        key = sha256(b"hubbub seed\0" + seed + number.to_bytes(8, "big")).digest()
        text = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(512 * 8))
        expected += np.frombuffer(text, dtype=np.uint64).tolist()
    assert words.tolist() == expected
    assert set(drawn) == {expected[0]}


def test_the_same_calls_of_one_seed_give_the_same_words_and_another_seed_gives_others() -> None:
    counts = (1, 5, 500, 0, 128, 129, 70_000, 3)
    streams = [SeededSource(letter * 32) for letter in (b"a", b"a", b"b")]
    first, second, other = ([stream.words(count).tobytes() for count in counts] for stream in streams)
    assert first == second
    assert [one == two for one, two in zip(first, other, strict=True)] == [count == 0 for count in counts]


def test_a_seeded_stream_serves_one_thread_of_one_process() -> None:
    stream = SeededSource(b"s" * 32)
    stream.words(3)
    refused: list[str] = []

    def draw() -> bytes:
        try:
            return stream.words(1).tobytes()
        except RuntimeError as error:
            refused.append(str(error))
            return b"refused"

    thread = threading.Thread(target=draw)
    thread.start()
    thread.join()
    assert len(refused) == 1
    assert in_child(draw) == b"refused"
    for spoiled in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied or pickled"):
            spoiled(stream)
    assert len(stream.words(1)) == 1


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_seed_has_thirty_two_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        SeededSource(bytes(length))


def test_a_seeded_stream_refuses_a_call_in_the_midst_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SeededSource(b"s" * 32)
    real = source_module._Stream.take

    def interrupted(own: source_module._Stream, count: int) -> source_module.Words:
        with pytest.raises(RuntimeError, match="one call at a time"):
            stream.words(1)
        return real(own, count)

    monkeypatch.setattr(source_module._Stream, "take", interrupted)
    assert len(stream.words(2)) == 2
