"""Addresses of databases, as they may stand in hubbub.yaml.

Tested in tests/config/test_addresses.py.
"""

from urllib.parse import parse_qsl, urlsplit


def has_password(address: str) -> bool:
    """Tell whether a postgresql:// address has a password: of the user, or of the key of a certificate.

    >>> has_password("postgresql://reader@db/shop"), has_password("postgresql://reader@db/shop?sslpassword=x")
    (False, True)
    """
    try:
        parts = urlsplit(address)
        return parts.password is not None or any(
            "password" in name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)
        )
    except ValueError:
        return True  # not an address: nobody knows what is in it
