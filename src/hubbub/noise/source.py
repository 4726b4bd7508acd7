"""Where randomness comes from: a keyed stream of 64-bit words.

`system()` is the process's stream, `Seeded` that of one charge, `Replay` gives chosen words to a test. A fork must not
repeat noise (numpy's generators do: parent and child go on with one state), nor may a thread, a signal handler or a
copied object.
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

_BUFFER = 512  # words kept ready, so that a single draw does not pay for a call of the cipher
_ZEROS = memoryview(bytes(1 << 16))
_KEY_LIFETIME = 1 << 30  # bytes under one key

#: Bytes of a seed.
SEED = 32

_forks = 0


def _count_a_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_a_fork)


class Source(Protocol):
    """Independent uniform 64-bit words, never the same twice."""

    def words(self, count: int) -> Words:
        """Give the next `count` words."""
        ...


class _Stream:
    """One thread's cipher: AES-256 in counter mode, each key that `keys` gives used from counter 0."""

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
        self._used += count  # before the copy: an interrupted call may lose words, and never repeats them
        taken = self._ready[start : start + count].copy()
        self._ready[start : start + count] = 0
        return taken


def _fresh_key() -> bytes:
    return os.urandom(32)


def _process() -> tuple[int, int]:
    return os.getpid(), _forks


def _whole(count: int) -> int:
    # a negative count would wind the buffer back, to words that were given and wiped
    if not index(count) >= 0:
        raise ValueError("a count of words cannot be negative")
    return index(count)


class Keystream:
    """Words of AES-256-CTR, keyed by the operating system, for each thread its own key.

    Never the same twice: within a thread the counter only goes up and a key serves 2³⁰ bytes (2²⁶ blocks, at which
    the absence of repeated blocks tells the stream from true randomness with advantage below 2⁻⁷⁶); threads share no
    state, so none can be forked away while it holds a lock. A forked child finds that it is another process (by a
    handler of `os.fork` and, where a library forks behind Python's back, by its process id) and starts a new key;
    the look comes after the words are made, so that a fork in the midst of a call is seen as well. A signal handler
    that interrupts this very method is served from the operating system. Words are wiped when handed out.

    Tested   tests/noise/test_source.py::test_the_words_are_the_keystream_of_aes_in_counter_mode_in_order
             tests/noise/test_source.py::test_a_child_forked_while_threads_draw_neither_hangs_nor_repeats
             tests/noise/test_source.py::test_threads_never_share_a_word_nor_a_key
    """

    def __init__(self) -> None:
        self._local = threading.local()

    def words(self, count: int) -> Words:
        """Give the next `count` words."""
        count = _whole(count)
        while True:
            stream: _Stream | None = getattr(self._local, "stream", None)
            if stream is None:
                stream = self._local.stream = _Stream(_fresh_key)
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
        """Refuse to be pickled or copied: a copy would give the same noise again."""
        raise TypeError("a source of randomness cannot be copied or pickled; each process calls system()")


class Seeded:
    """Words of AES-256-CTR under keys that follow from a seed of 32 random bytes: the same calls give the same words.

    The n-th key is SHA-256 of the seed and n, and serves as long as a key of `Keystream` does. The words repeat only if
    they are asked for in the same order. So this stream serves one thread of one process, and refuses every other
    thread, a forked child, a signal handler in the midst of a call, and to be copied.

    Tested   tests/noise/test_source.py::test_a_seeded_stream_is_the_keystream_of_the_hash_of_its_seed
             tests/noise/test_source.py::test_a_seeded_stream_serves_one_thread_of_one_process
    """

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED:
            raise ValueError("a seed has 32 bytes")
        self._number = 0
        self._seed = bytes(seed)
        self._thread = threading.get_ident()
        self._stream = _Stream(self._next_key)

    def _next_key(self) -> bytes:
        number, self._number = self._number, self._number + 1
        return sha256(b"hubbub seed\0" + self._seed + number.to_bytes(8, "big")).digest()

    def words(self, count: int) -> Words:
        """Give the next `count` words."""
        count, stream = _whole(count), self._stream
        if stream.busy or stream.birth != _process() or self._thread != threading.get_ident():
            raise RuntimeError("the words of a charge are drawn by one thread of one process, one call at a time")
        stream.busy = True
        try:
            return stream.take(count)
        finally:
            stream.busy = False

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied, as `Keystream` does."""
        raise TypeError("a source of randomness cannot be copied or pickled")


class Replay:
    """Give chosen words, in order, to a test; ask for more than there are and it refuses.

    >>> Replay([1, 2**64 - 1]).words(2).tolist()
    [1, 18446744073709551615]
    """

    def __init__(self, words: Iterable[int]) -> None:
        self._words = np.array(list(words), dtype=np.uint64)
        self._used = 0

    def words(self, count: int) -> Words:
        """Give the next `count` of the chosen words."""
        if _whole(count) > self.left:
            raise MechanismError("HB601", "the words to replay are used up.", "Replay is for tests only: use system().")
        start, self._used = self._used, self._used + count
        return self._words[start : self._used].copy()

    @property
    def left(self) -> int:
        """How many words were not yet given."""
        return len(self._words) - self._used


_SYSTEM = Keystream()


def system() -> Keystream:
    """Give the process's source of randomness."""
    return _SYSTEM
