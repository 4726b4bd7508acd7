"""The small world of private programs, for statistics."""

from tests.analyses.programs.conftest import world

__all__ = ["world"]
