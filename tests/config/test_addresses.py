"""A password in an address is found wherever PostgreSQL's clients accept one."""

import pytest

from hubbub.config.addresses import has_password


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://reader:secret@db/shop",
        "postgresql://reader:@db/shop",
        "postgres://reader@db/shop?password=secret",
        "postgres://reader@db/shop?connect_timeout=3&sslpassword=secret",
        "postgresql://reader@db/shop?pass%77ord=secret",
        "postgresql://reader@db/shop?password=",
    ],
)
def test_every_password_is_found(address: str) -> None:
    assert has_password(address)


@pytest.mark.parametrize("address", ["postgresql://reader@db:5432/shop", "postgresql:///shop?sslmode=verify-full"])
def test_an_address_without_one_is_accepted(address: str) -> None:
    assert not has_password(address)
