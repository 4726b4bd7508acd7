"""Check the random source: words must not repeat within a stream, across threads, across streams, or after a fork.

Tested in tests/audit/test_nightly.py.
"""

import os
import threading
from contextlib import suppress

import numpy as np

from hubbub.noise.source import Keystream, RandomSource, Words, system

_FORKED = 40


def check_keystream(
    *, length: int = 20_000, singles: int = 100, streams: int = 50, words_each: int = 64, threads: int = 4
) -> str | None:
    """Check the process's stream and the first words of fresh streams; return the problem, or None.

    A false alarm has probability about 1e-9: 200,000 uniform words of 64 bits repeat with that probability, and their
    bits are as uneven as the limit here with probability about 1e-15.
    """
    stream = system()
    words = [stream.words(length), *(stream.words(1) for _ in range(singles))]
    words += [Keystream().words(words_each) for _ in range(streams)]
    workers = [threading.Thread(target=lambda: words.append(stream.words(64))) for _ in range(threads)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    stream.words(3)  # leaves a partly used buffer when the child is forked
    child_words = _words_of_child(stream)
    sample = np.concatenate([*words, child_words, stream.words(_FORKED)])
    if len(child_words) != _FORKED:
        return "The forked child did not send its random words, so that they were not compared."
    if len(np.unique(sample)) < len(sample):
        return "The keystream repeated a word."
    mean = np.unpackbits(sample.view(np.uint8)).mean()
    return (
        "The bits of the keystream are not uniform." if abs(mean - 0.5) > 8 * 0.5 / (64 * len(sample)) ** 0.5 else None
    )


def _words_of_child(stream: RandomSource) -> Words:
    """Read the words that a forked child draws; none if two children in a row could not send theirs."""
    for _ in range(2):
        received = _sent_by_child(stream)
        if len(received) == 8 * _FORKED:
            return np.frombuffer(received, dtype=np.uint64)
    return np.zeros(0, dtype=np.uint64)


def _sent_by_child(stream: RandomSource) -> bytes:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.close(reader)
            os.write(writer, stream.words(_FORKED).tobytes())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        received = pipe.read(8 * _FORKED)  # waits until all have come, or the child has ended
    os.waitpid(child, 0)
    return received
