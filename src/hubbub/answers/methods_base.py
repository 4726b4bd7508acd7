"""The call of an analysis by name: what the methods of a session are built on.

Tested in tests/analyses/test_registry.py.
"""

from abc import abstractmethod
from typing import Generic, TypedDict, TypeVar, Unpack

from hubbub.answers.options import Options, request_key
from hubbub.core.call import AnalysisCall
from hubbub.core.numbers import Number

R = TypeVar("R", covariant=True)


class AnalysisOptions(TypedDict, total=False):
    """Options of every analysis: its privacy cost and its contribution bounds."""

    epsilon: Number
    delta: Number | None
    groups: int | None
    rows: int | None
    key: str | None
    fresh: bool


def options_key(options: AnalysisOptions) -> str | None:
    """Return the key of an analysis, if its options have one."""
    return request_key(options.get("key"), fresh=options.get("fresh", False))


class AnalysisCalls(Generic[R]):
    """Anything that can run the text of a call."""

    @abstractmethod
    def _run_call(self, text: str, key: str | None, options: Options) -> R:
        """Run the call of this text."""

    def call(self, name: str, /, arguments: dict[str, object], **options: Unpack[AnalysisOptions]) -> R:
        """Run an analysis by name. Arguments that are None have their default values."""
        given = {argument: value for argument, value in arguments.items() if value is not None}
        query_options: Options = {"epsilon": options.get("epsilon"), "delta": options.get("delta")}
        query_options |= {"groups": options.get("groups"), "rows": options.get("rows")}
        return self._run_call(AnalysisCall(name, given).text(), options_key(options), query_options)
