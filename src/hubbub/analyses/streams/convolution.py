"""Exact convolution of integers, so that sums are not rounded before noise is added."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import QueryError

Integers = NDArray[np.int64]
Residues = NDArray[np.uint64]

#: Primes p with p − 1 divisible by 2²⁷ and 2²⁶, each with a generator of the multiplicative group.
_PRIMES = ((2013265921, 31), (1811939329, 13))
_PRODUCT = _PRIMES[0][0] * _PRIMES[1][0]
#: Up to this number of products, convolve directly.
_DIRECT = 1 << 24


def latest_sums(signal: Integers, kernel: Integers, count: int) -> Integers:
    """Return the last `count` of the sums Σₖ kernel[k]·signal[i − k], exactly; both are non-negative.

    Theorem (Convolution modulo two primes). If every sum is below p₁p₂ then its residues modulo p₁ and p₂, computed by
    number-theoretic transforms long enough that no sum wraps around, determine it (Chinese remainder theorem).
    Assumes  Σ kernel · max signal < p₁p₂ ≈ 3.6·10¹⁸, which is checked; arithmetic on residues below 2³¹ in 64 bits.
    Tested   tests/analyses/streams/test_convolution.py::test_sums_are_those_of_exact_integers
    """
    size = len(signal)
    kernel = kernel[:size]
    largest = int(signal.max(initial=0)) * int(kernel.sum())
    if not (largest < _PRODUCT and signal.min(initial=0) >= 0 and kernel.min(initial=0) >= 0):
        raise QueryError("HB530", "The sums of this stream are too large for exact arithmetic.", "Use a smaller bound.")
    if size * count <= _DIRECT:
        padded = np.concatenate([np.zeros(count - 1, dtype=np.int64), signal])
        return np.convolve(padded, kernel, "valid")[-count:].astype(np.int64)
    length = 1 << (size + len(kernel) - 1).bit_length()
    (p, root), (q, other) = _PRIMES
    first = _convolve(signal, kernel, length, p, root)[size - count : size].astype(np.int64)
    if largest < p:
        return first
    second = _convolve(signal, kernel, length, q, other)[size - count : size].astype(np.int64)
    # the sum is first + p·((second − first)/p mod q): both factors below 2³¹
    return first + p * ((second - first) % q * pow(p, -1, q) % q)


def _convolve(one: Integers, other: Integers, length: int, prime: int, root: int) -> Residues:
    padded = [np.pad((values % prime).astype(np.uint64), (0, length - len(values))) for values in (one, other)]
    product = _transform(padded[0], prime, root) * _transform(padded[1], prime, root) % np.uint64(prime)
    result: Residues = _transform(product, prime, pow(root, -1, prime)) * pow(length, -1, prime) % prime
    return result


def _transform(values: Residues, prime: int, root: int) -> Residues:
    """Evaluate a polynomial at all powers of a root of unity (a Fourier transform on residues, in Stockham's order)."""
    modulus, length, size = np.uint64(prime), len(values), 1
    turned = values.reshape(1, length)
    while size < length:
        half = turned.shape[1] // 2
        even, odd = turned[:, :half], turned[:, half:] * _powers(size, prime, root)[:, None] % modulus
        turned = np.concatenate([even + odd, even + (modulus - odd)])
        turned -= modulus * (turned >= modulus)
        size *= 2
    return turned.reshape(length)


@lru_cache(maxsize=64)
def _powers(size: int, prime: int, root: int) -> Residues:
    """Return the first `size` powers of a root of unity of order 2·size."""
    step = pow(root, (prime - 1) // (2 * size), prime)
    powers = np.ones(1, dtype=np.uint64)
    while len(powers) < size:
        powers = np.concatenate([powers, powers * np.uint64(pow(step, len(powers), prime)) % np.uint64(prime)])
    return powers
