"""SCRAM-SHA-256 (RFC 5802, RFC 7677) with tokens as passwords: what a server stores, and how it checks a proof.

A verifier has two keys that are derived from a token. Neither lets anyone sign in: a proof takes the token itself, or
2²⁵⁶ guesses. That is why the salt may be the same for all tokens, and why the smallest usual number of iterations is
enough. With one salt, the server needs to know only the name, not which of its tokens the client has.
"""

import hmac
from dataclasses import dataclass
from hashlib import pbkdf2_hmac, sha256

#: Sent to every client, also for names that do not exist. Changing either makes all stored verifiers useless.
SALT = sha256(b"hubbub: PostgreSQL clients").digest()[:16]
ITERATIONS = 4096
_SIZE = 32


@dataclass(frozen=True, slots=True)
class Proof:
    """What a client sends to prove that it knows a token: the exchange so far, and its key XOR a signature of that."""

    exchange: bytes
    proof: bytes


def verifier(token: str) -> bytes:
    """Derive what is stored for a token: the hash of the client's key, and the server's key."""
    client, server = _keys(token)
    return sha256(client).digest() + server


def check(stored: bytes, proof: Proof) -> bytes | None:
    """Return the server's own proof if the client knows the token of this verifier, else None.

    Theorem (Proof of a token). Only who knows the client key of a token can give a proof that is accepted.
    Proof    The client's key is recovered as the proof XOR the signature of the exchange, and accepted only if its hash
             is the stored one. Finding another key with this hash is finding a preimage of SHA-256. The exchange has
             a nonce of the server, so an earlier proof does not fit.
    Assumes  the server's nonce is new for each exchange; SHA-256 and HMAC are what they are taken for.
    Tested   tests/server/test_scram.py::test_only_the_token_of_the_verifier_gives_a_proof
    """
    if len(stored) != 2 * _SIZE or len(proof.proof) != _SIZE:
        return None
    expected, server = stored[:_SIZE], stored[_SIZE:]
    key = _xor(proof.proof, _sign(expected, proof.exchange))
    return _sign(server, proof.exchange) if hmac.compare_digest(sha256(key).digest(), expected) else None


def prove(token: str, exchange: bytes) -> Proof:
    """Prove that one knows a token, as a client does."""
    client, _ = _keys(token)
    return Proof(exchange, _xor(client, _sign(sha256(client).digest(), exchange)))


def _keys(token: str) -> tuple[bytes, bytes]:
    salted = pbkdf2_hmac("sha256", token.encode(), SALT, ITERATIONS)
    return _sign(salted, b"Client Key"), _sign(salted, b"Server Key")


def _sign(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
