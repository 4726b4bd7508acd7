"""The source of randomness: no word comes twice in a stream, in threads, in fresh streams or after a fork."""

import os
import threading
from contextlib import suppress

import numpy as np

from hubbub.noise.source import Keystream, Source, Words, system

_FORKED = 40


def repeats(
    *, length: int = 20_000, singles: int = 100, streams: int = 50, each: int = 64, threads: int = 4
) -> str | None:
    """Say what is wrong with the process's stream, and with the first words of so many fresh ones, if anything is.

    Words of 64 bits that are right repeat within a look of 200,000 with a probability of about 1e-9, and their bits are
    as uneven as is told here with one of about 1e-15.
    """
    stream = system()
    words = [stream.words(length), *(stream.words(1) for _ in range(singles))]
    words += [Keystream().words(each) for _ in range(streams)]
    team = [threading.Thread(target=lambda: words.append(stream.words(64))) for _ in range(threads)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    stream.words(3)  # so that a buffer is begun when the child is born
    theirs = _of_a_child(stream)
    every = np.concatenate([*words, theirs, stream.words(_FORKED)])
    if len(theirs) != _FORKED or len(np.unique(every)) < len(every):
        return "a word of the keystream came twice"
    even = np.unpackbits(every.view(np.uint8)).mean()
    return "the bits of the keystream are not even" if abs(even - 0.5) > 8 * 0.5 / (64 * len(every)) ** 0.5 else None


def _of_a_child(stream: Source) -> Words:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.write(writer, stream.words(_FORKED).tobytes())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reader, 8 * _FORKED), dtype=np.uint64)
    os.close(reader)
    return theirs
