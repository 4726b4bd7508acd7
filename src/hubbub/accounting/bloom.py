"""One-hash Bloom filter over charged request keys, so that most new keys need no database lookup.

Tested in tests/accounting/test_sqlite.py.
"""

from collections.abc import Iterable

_BITS = 2**25


class BloomFilter:
    """A set of keys with false positives: a key that is not in it was never added.

    With a million keys, 3% of the new ones are false positives. It takes 4 MB, whatever the number of keys.

    >>> keys = BloomFilter([("ana", "monday")])
    >>> ("ana", "monday") in keys
    True
    """

    __slots__ = ("_bits",)

    def __init__(self, keys: Iterable[tuple[str, str]]) -> None:
        self._bits = bytearray(_BITS // 8)
        self.add(keys)

    def add(self, keys: Iterable[tuple[str, str]]) -> None:
        """Add keys."""
        for pair in keys:
            bit = hash(pair) % _BITS
            self._bits[bit >> 3] |= 1 << (bit & 7)

    def __contains__(self, pair: tuple[str, str]) -> bool:
        bit = hash(pair) % _BITS
        return bool(self._bits[bit >> 3] & 1 << (bit & 7))
