"""The sandbox of a server by `await`: the same answers on made-up rows, and nothing charged."""

import asyncio

import pytest
from tests.server.conftest import World

import hubbub
from hubbub.answers.sandbox import is_made_up
from hubbub.errors import ParameterError, QueryError

COUNT = "SELECT COUNT(*) AS n FROM health"


def test_questions_are_answered_on_made_up_rows(world: World) -> None:
    async def ask() -> None:
        async with hubbub.connect_async(world.url, world.tokens["ana"]) as session:
            sandbox = await session.sandbox("health")
            assert "health" in await sandbox.datasets()
            assert (await sandbox.describe("health")).column("spending") is not None
            estimate = await sandbox.estimate(COUNT, epsilon=1)
            release = await sandbox.query(COUNT, epsilon=1)
            moments = await sandbox.estimates.moments(table="health", columns=["spending"], epsilon=1)
            assert estimate.epsilon == moments.epsilon == 1
            assert is_made_up(release.receipt)
            assert list(await session.releases()) == []
            assert all(cap.spent == 0 for each in await session.budget() for cap in each.caps)

    asyncio.run(ask())


def test_a_dataset_without_a_stand_in_is_named(world: World) -> None:
    async def ask() -> None:
        async with hubbub.connect_async(world.url, world.tokens["ana"]) as session:
            await session.sandbox("nowhere")

    with pytest.raises((ParameterError, QueryError), match="nowhere"):
        asyncio.run(ask())
