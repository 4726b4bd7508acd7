"""The start of a connection: version, parameters, and the proof that the client knows a token.

Tested in tests/gateway/test_sign_in.py.
"""

import asyncio
import base64
import binascii
import re
import secrets
import ssl
import struct
from dataclasses import dataclass

from hubbub.errors import AccessError, HubbubError
from hubbub.gateway import wire
from hubbub.gateway.wire import Body, violation
from hubbub.server import scram
from hubbub.server.accounts import MAX_CREDENTIAL, Principal
from hubbub.server.limits import address
from hubbub.server.service import Service

_OK, _PASSWORD, _SASL, _CONTINUE, _FINAL = 0, 3, 10, 11, 12
_PLUS, _PLAIN = "SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"
_FIRST = re.compile(
    rb"(n|y|p=([a-z0-9-]{1,40})),(a=[^,]{0,200})?,(n=[^,]{0,400},r=([!-+\--~]{1,400})(?:,.{0,400})?)", re.DOTALL
)
_LAST = re.compile(
    rb"(c=([A-Za-z0-9+/=]{1,400}),r=([!-+\--~]{1,900})(?:,[^p].{0,400})?),p=([A-Za-z0-9+/=]{1,100})", re.DOTALL
)
#: Options of the protocol that are known: none.
_OPTIONS = "_pq_."


@dataclass(frozen=True, slots=True)
class Startup:
    """What a client states first: the minor version, its parameters, and options of the protocol that are unknown."""

    minor: int
    parameters: dict[str, str]
    unknown: tuple[str, ...]

    @property
    def user(self) -> str:
        """The name that the client signs in with."""
        return self.parameters["user"]

    @property
    def database(self) -> str:
        """The name of the database; any is right."""
        return self.parameters.get("database") or "hubbub"


@dataclass(frozen=True, slots=True)
class Channel:
    """The connection underneath: the client's address, and TLS with the hash that a client can bind its proof to."""

    where: str
    tls: bool
    binding: bytes | None


def read_startup(version: int, body: Body) -> Startup:
    """Read the first message after its version."""
    if version >> 16 != wire.MAJOR:
        raise violation(f"version {version >> 16} is not supported, only version 3")
    parameters: dict[str, str] = {}
    while name := body.text():
        parameters[name] = body.text()
    body.end()
    if not parameters.get("user") or len(parameters["user"]) > 100 or len(parameters.get("database", "")) > 63:
        raise violation("the name of the user or of the database is missing or too long")
    unknown = tuple(name for name in parameters if name.startswith(_OPTIONS))
    return Startup(version & 0xFFFF, {n: v for n, v in parameters.items() if n not in unknown}, unknown)


def negotiation(startup: Startup) -> bytes:
    """Write which version is spoken, if the client asked for a later one or for unknown options."""
    if startup.minor <= wire.MINOR and not startup.unknown:
        return b""
    spoken = min(startup.minor, wire.MINOR) | wire.MAJOR << 16
    names = b"".join(wire.text(name) for name in startup.unknown)
    return wire.message(b"v", struct.pack(">ii", spoken, len(startup.unknown)) + names)


async def sign_in(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: Service, startup: Startup, channel: Channel
) -> Principal:
    """Return the principal whose token the client has, or raise AccessError."""
    where = address(channel.where)
    wait = service.attempts_limit.wait(where)
    if wait:
        raise AccessError("HB721", "Too many attempts with invalid tokens.", f"Wait {wait} s and try again.", wait)
    configured = service.settings.postgres
    try:
        if configured is not None and configured.password and channel.tls:
            principal = await _password(reader, writer, service, startup, where)
        else:
            principal = await _scram(reader, writer, service, startup, channel)
    except AccessError as error:
        if error.code in ("HB701", "HB704"):
            service.attempts_limit.take(where)
        raise
    writer.write(wire.message(b"R", struct.pack(">i", _OK)))
    return principal


async def _receive(reader: asyncio.StreamReader) -> Body:
    received = await wire.read_message(reader, wire.MAX_UNKNOWN, wire.MESSAGE_SECONDS)
    if received is None:
        raise ConnectionResetError
    if received[0] != b"p":
        raise violation("a password message was expected")
    return received[1]


async def _password(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: Service, startup: Startup, where: str
) -> Principal:
    """Ask for the token itself; the connection is encrypted."""
    writer.write(wire.message(b"R", struct.pack(">i", _PASSWORD)))
    await writer.drain()
    body = await _receive(reader)
    text = body.text()
    body.end()
    if len(text) > MAX_CREDENTIAL:
        raise _refused()
    principal = await service.reserved.authenticate(where, service.accounts.identify, text)
    if principal.name != startup.user:
        raise _refused()
    return principal


async def _scram(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: Service, startup: Startup, channel: Channel
) -> Principal:
    offered = [_PLUS, _PLAIN] if channel.binding is not None else [_PLAIN]
    writer.write(wire.message(b"R", struct.pack(">i", _SASL) + b"".join(map(wire.text, offered)) + b"\0"))
    await writer.drain()
    body = await _receive(reader)
    mechanism, first = body.text(), body.value()
    body.end()
    match = _FIRST.fullmatch(first or b"")
    if mechanism not in offered or match is None:
        raise violation("the first message of SCRAM is invalid")
    bound = _check_binding(mechanism, match[1], offered=len(offered) == 2)
    nonce = match[5] + base64.b64encode(secrets.token_bytes(18))
    answer = b"r=%s,s=%s,i=%d" % (nonce, base64.b64encode(scram.SALT), scram.ITERATIONS)
    writer.write(wire.message(b"R", struct.pack(">i", _CONTINUE) + answer))
    await writer.drain()
    last = _LAST.fullmatch((await _receive(reader)).rest())
    if last is None or last[3] != nonce:
        raise violation("the last message of SCRAM is invalid")
    header = (first or b"")[: match.start(4)]
    if _decoded(last[2]) != header + ((channel.binding or b"") if bound else b""):
        raise _refused()
    exchange = b",".join((match[4], answer, last[1]))
    proof = scram.Proof(exchange, _decoded(last[4]))
    principal, own = await service.reserved.authenticate(
        f"{address(channel.where)} {startup.user}", service.accounts.prove, startup.user, proof
    )
    writer.write(wire.message(b"R", struct.pack(">i", _FINAL) + b"v=" + base64.b64encode(own)))
    return principal


def _check_binding(mechanism: str, flag: bytes, *, offered: bool) -> bool:
    """Return whether the proof is bound to the channel; a client that was kept from binding it is refused."""
    if flag.startswith(b"p="):
        if mechanism != _PLUS or flag != b"p=tls-server-end-point":
            raise violation("this channel binding is not supported")
        return True
    if mechanism == _PLUS or (flag == b"y" and offered):
        raise _refused()
    return False


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise violation("a message of SCRAM is not base64") from None


def _refused() -> HubbubError:
    return AccessError(
        "HB701", "This token is not valid.", "Check that you copied all of it, or ask the data owner for a new one."
    )


def binding_of(certificate: bytes) -> bytes | None:
    """Return the hash of a certificate that proofs are bound to (tls-server-end-point); None if none is defined."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding

    parsed = x509.load_pem_x509_certificate(certificate)
    named = parsed.signature_hash_algorithm
    if named is None:
        return None
    algorithm = hashes.SHA256() if isinstance(named, hashes.MD5 | hashes.SHA1) else named
    digest = hashes.Hash(algorithm)
    digest.update(parsed.public_bytes(Encoding.DER))
    return digest.finalize()


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """Return the TLS settings; direct TLS states the protocol `postgresql`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["postgresql"])
    return context
