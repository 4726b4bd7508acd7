"""The entry that closed the original of a move, in the archive: proof that the archive has everything before it.

Tested in tests/deployment/test_closing.py.
"""

import json

from hubbub.accounting.chain import Entry, Mark, canonical, link

_BYTES = ("request", "config", "previous", "hash")


def write(entry: Entry) -> bytes:
    """Write the entry for an archive."""
    fields = entry._asdict()
    return canonical(fields | {name: fields[name].hex() for name in _BYTES}).encode()


def proven(content: bytes, end: Mark, ended: tuple[int, str]) -> bool:
    """Tell whether an entry that closes a ledger follows its end, and has the number and hash that are stated.

    Theorem (Closed right after). If the hash that is stated is that of an entry of the original, then this entry closed
    the original, and the archive has every entry before it, unless a collision of SHA-256 is at hand.
    Proof    The hash is computed here from the fields, which contain the hash of the end of the archive's ledger. By
             the theorem Hash chain, the entry of the original with this hash has the same fields, so it follows the
             same end and has the same facts.
    Charges  nothing.
    Tested   tests/deployment/test_closing.py::test_no_other_entry_closes_a_ledger
             tests/deployment/test_closing.py::test_a_witness_is_not_misled_by_a_forged_end
    """
    try:
        fields = json.loads(content)
        entry = Entry(**{**fields, **{name: bytes.fromhex(fields[name]) for name in _BYTES}})
        closes = entry.kind == "forfeit" and isinstance(json.loads(entry.facts)["moved"], str)
        linked = link(
            end.hash,
            entry.config,
            entry.request,
            end.sequence + 1,
            entry.kind,
            entry.time,
            entry.analyst,
            entry.dataset,
            entry.version,
            entry.facts,
            entry.query,
            entry.key,
            entry.charge,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return closes and ended == (end.sequence + 1, linked.hex())
