"""Proofs of tokens: the example of RFC 7677's scheme with our salt, and who cannot give one."""

import hashlib
import hmac

from hubbub.server import scram

TOKEN = "hub_0123456789ab_" + "x" * 43


def test_only_the_token_of_the_verifier_gives_a_proof() -> None:
    stored = scram.verifier(TOKEN)
    right = scram.prove(TOKEN, b"exchange")
    assert scram.check(stored, right) is not None
    assert scram.check(stored, scram.prove(TOKEN[:-1] + "y", b"exchange")) is None
    assert scram.check(stored, scram.Proof(b"another exchange", right.proof)) is None
    assert scram.check(scram.verifier(TOKEN[:-1] + "y"), right) is None
    for proof in (b"", bytes(32), right.proof[:-1], right.proof + b"\0"):
        assert scram.check(stored, scram.Proof(b"exchange", proof)) is None
    for broken in (b"", stored[:-1], stored + b"\0"):
        assert scram.check(broken, right) is None


def test_knowing_the_verifier_is_not_knowing_the_token() -> None:
    stored = scram.verifier(TOKEN)
    signature = hmac.digest(stored[:32], b"exchange", "sha256")
    for key in (stored[:32], stored[32:]):
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        assert scram.check(stored, scram.Proof(b"exchange", proof)) is None


def test_the_keys_are_those_of_the_standard() -> None:
    salted = hashlib.pbkdf2_hmac("sha256", TOKEN.encode(), scram.SALT, 4096)
    client = hmac.digest(salted, b"Client Key", "sha256")
    assert scram.verifier(TOKEN) == hashlib.sha256(client).digest() + hmac.digest(salted, b"Server Key", "sha256")
