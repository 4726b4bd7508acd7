"""Sources of randomness: keyed streams of 64-bit words.

`system()` is the stream of the process, `SeededSource` that of one charge, and `ReplaySource` supplies chosen words to
a test. Noise must not repeat after a fork (with numpy's generators it does: parent and child continue from one state),
nor in a thread, a signal handler or a copied object.
"""

import os
import threading
from collections.abc import Callable, Iterable
from hashlib import sha256
from operator import index
from typing import NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from hubbub.errors import MechanismError

Words = NDArray[np.uint64]

_BUFFER = 512  # buffered words, so that a single sample needs no call of the cipher
_ZEROS = memoryview(bytes(1 << 16))
_KEY_LIFETIME = 1 << 30  # bytes under one key

#: Size of a seed in bytes.
SEED = 32

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class RandomSource(Protocol):
    """A stream of independent uniform 64-bit words that never repeats."""

    def words(self, count: int) -> Words:
        """Return the next `count` words."""
        ...


class _Stream:
    """The cipher of one thread: AES-256 in counter mode; each key from `keys` starts at counter 0."""

    def __init__(self, keys: Callable[[], bytes]) -> None:
        self.birth = _process()
        self._keys = keys
        self.busy = False
        self._ready = np.zeros(_BUFFER, dtype=np.uint64)
        self._used = _BUFFER
        self._rekey()

    def _rekey(self) -> None:
        self._cipher = Cipher(algorithms.AES256(self._keys()), modes.CTR(bytes(16))).encryptor()
        self._left = _KEY_LIFETIME

    def _fill(self, words: Words) -> None:
        target = words.data.cast("B")
        for start in range(0, len(target), len(_ZEROS)):
            part = target[start : start + len(_ZEROS)]
            if self._left < len(part):
                self._rekey()
            self._left -= len(part)
            self._cipher.update_into(_ZEROS[: len(part)], part)

    def take(self, count: int) -> Words:
        if count > _BUFFER // 4:
            fresh = np.empty(count, dtype=np.uint64)
            self._fill(fresh)
            return fresh
        if self._used + count > _BUFFER:
            self._fill(self._ready)
            self._used = 0
        start = self._used
        self._used += count  # before the copy: an interrupted call may lose words but never repeats them
        taken = self._ready[start : start + count].copy()
        self._ready[start : start + count] = 0
        return taken


def fresh_key() -> bytes:
    """Return 32 bytes of the operating system: a key of noise, or the seed of a charge. Tests replace this function."""
    return os.urandom(SEED)


def _process() -> tuple[int, int]:
    return os.getpid(), _forks


def _checked(count: int) -> int:
    # a negative count would rewind the buffer to words that were used and erased
    if not index(count) >= 0:
        raise ValueError("the count cannot be negative")
    return index(count)


class Keystream:
    """Words of AES-256-CTR with a key per thread from the operating system.

    Words never repeat: within a thread the counter only increases and a key serves 2³⁰ bytes (2²⁶ blocks, at which the
    absence of repeated blocks distinguishes the stream from true randomness with advantage below 2⁻⁷⁶); threads share
    no state, so no fork can leave a lock held. A forked child detects that it is another process (by a fork handler
    and, if a library forks without Python, by its process id) and starts a new key; it checks after the words are
    generated, so that it also detects a fork during the call. A signal handler that interrupts this method gets its
    words from the operating system. Words are erased from the buffer when they are returned.

    Tested   tests/noise/test_source.py::test_the_words_are_the_keystream_of_aes_in_counter_mode_in_order
             tests/noise/test_source.py::test_a_child_forked_while_threads_draw_neither_hangs_nor_repeats
             tests/noise/test_source.py::test_threads_never_share_a_word_nor_a_key
    """

    def __init__(self) -> None:
        self._local = threading.local()

    def words(self, count: int) -> Words:
        """Return the next `count` words."""
        count = _checked(count)
        while True:
            stream: _Stream | None = getattr(self._local, "stream", None)
            if stream is None:
                stream = self._local.stream = _Stream(lambda: fresh_key())
            if stream.busy:
                return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)
            stream.busy = True
            try:
                taken = stream.take(count)
            finally:
                stream.busy = False
            if stream.birth == _process():
                return taken
            self._local.stream = None

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Reject pickling and copying: a copy would repeat the same noise."""
        raise TypeError("a source of randomness cannot be copied or pickled; call system() in each process")


class SeededSource:
    """Words of AES-256-CTR with keys derived from a seed of 32 random bytes: the same calls return the same words.

    The n-th key is SHA-256 of the seed and n, and serves as long as a key of `Keystream` does. The words are the same
    only if they are requested in the same order. So this stream serves one thread of one process; it rejects every
    other thread, a forked child, a signal handler during a call, and copying.

    Tested   tests/noise/test_source.py::test_a_seeded_stream_is_the_keystream_of_the_hash_of_its_seed
             tests/noise/test_source.py::test_a_seeded_stream_serves_one_thread_of_one_process
    """

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED:
            raise ValueError("a seed must have 32 bytes")
        self._number = 0
        self._seed = bytes(seed)
        self._thread = threading.get_ident()
        self._stream = _Stream(self._next_key)

    def _next_key(self) -> bytes:
        number, self._number = self._number, self._number + 1
        return sha256(b"hubbub seed\0" + self._seed + number.to_bytes(8, "big")).digest()

    def words(self, count: int) -> Words:
        """Return the next `count` words."""
        count, stream = _checked(count), self._stream
        if stream.busy or stream.birth != _process() or self._thread != threading.get_ident():
            raise RuntimeError("a seeded source can be used by only one thread of one process, one call at a time")
        stream.busy = True
        try:
            return stream.take(count)
        finally:
            stream.busy = False

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Reject pickling and copying, as `Keystream` does."""
        raise TypeError("a source of randomness cannot be copied or pickled")


class ReplaySource:
    """A fixed sequence of words for tests; requesting more raises an error.

    >>> ReplaySource([1, 2**64 - 1]).words(2).tolist()
    [1, 18446744073709551615]
    """

    def __init__(self, words: Iterable[int]) -> None:
        self._words = np.array(list(words), dtype=np.uint64)
        self._used = 0

    def words(self, count: int) -> Words:
        """Return the next `count` of the chosen words."""
        if _checked(count) > self.left:
            raise MechanismError(
                "HB601", "The replayed words are used up.", "ReplaySource is for tests only; use system()."
            )
        start, self._used = self._used, self._used + count
        return self._words[start : self._used].copy()

    @property
    def left(self) -> int:
        """The number of remaining words."""
        return len(self._words) - self._used


_SYSTEM = Keystream()


def system() -> Keystream:
    """Return the source of randomness of this process."""
    return _SYSTEM
