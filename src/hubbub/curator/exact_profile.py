"""The exact profile of a dataset, for its owner at the owner's own terminal.

It has no noise, so it is never charged, recorded or sent, and nothing in the server imports it.

Tested in tests/cli/test_profile.py.
"""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from hubbub.analyses.base import EngineRun, Setting
from hubbub.analyses.profile import profile
from hubbub.answers.options import ignore_progress
from hubbub.answers.profile import Profile
from hubbub.config import load
from hubbub.curator.opening import open_curator
from hubbub.engines.multi_engine import engine_for
from hubbub.engines.registry import engine_named
from hubbub.noise.source import system
from hubbub.sql.bounding import RenderOptions


def exact_profile(path: Path, dataset: str, *, columns: Sequence[str] | None, max_rows: int | None) -> Profile:
    """Count the rows and groups of each unit, and the values of one row of each, without noise."""
    with open_curator(load(path)) as curator:
        engine = engine_for(curator.engine, [dataset]) if dataset in curator.tables else curator.engine
        # a salt of its own: which rows are read must not tell which rows queries keep
        options = RenderOptions("exact profile", curator.config.hashing, engine_named(engine.dialect).load_dialect())
        setting = Setting(curator.tables, Fraction(1), Fraction(0), options)
        prepared = profile(
            setting, table=dataset, columns=None if columns is None else list(columns), max_rows=max_rows
        )
        return prepared.exact(EngineRun(engine.run, system(), ignore_progress))
