"""A study: the parts of a plan file, planned together, paid once, and reported as one document.

    study = h.study("study.yaml")
    print(study.plan())                         # free: what each part gets
    report = study.run()                        # one charge; the same study on the same data is free afterwards
    report["regions"].rows
    report.write("report.html")

A study is one batch (`hubbub.answers.batch`): its charge, its run after an interruption and its receipt are those
of a batch.

Tested in tests/curator/test_study.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from hubbub.answers.batch import Asking, AsyncAsking, batch_answers
from hubbub.answers.estimate import Estimate, Expected, margin
from hubbub.answers.options import Options, request_key
from hubbub.answers.release import Release
from hubbub.answers.sheet import Sheet
from hubbub.answers.study_file import StudyFile, StudyPart, read_study
from hubbub.answers.study_report import study_sheet
from hubbub.core.numbers import brief
from hubbub.errors import ParameterError, QueryError


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """What one part of a study gets.

    share     its share of the privacy cost, if nothing is shared
    expected  the expected errors of its outputs; empty if they are not known without data
    """

    part: StudyPart
    share: Fraction
    expected: tuple[Expected, ...]

    def line(self) -> str:
        """Write one line."""
        errors = ", ".join(f"{each.name} {margin(each)}" for each in self.expected) or "not known without data"
        return f"{self.part.name} ({float(self.share):.3g} of ε): {errors}"


@dataclass(frozen=True)
class StudyPlan:
    """What a study costs, and what each part gets. Free."""

    file: StudyFile
    estimate: Estimate

    @property
    def parts(self) -> tuple[PlannedPart, ...]:
        """The parts in the order of the file."""
        listed: dict[int, list[Expected]] = {}
        for each in self.estimate.expected:
            name, _, number = each.name.rpartition(" of question ")
            listed.setdefault(int(number), []).append(replace(each, name=name))
        places = {query: number for number, query in enumerate(self.file.questions, 1)}
        return tuple(
            PlannedPart(part, self.file.share(part), tuple(listed.get(places[part.query], ())))
            for part in self.file.parts
        )

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        parts = [
            {
                "part": each.part.name,
                "query": each.part.query,
                "share": str(each.share),
                "expected": [
                    {"name": one.name, "plus_minus": one.plus_minus, "rows": one.rows, "unit": one.unit}
                    for one in each.expected
                ],
            }
            for each in self.parts
        ]
        return {"title": self.file.title, "parts": parts, "estimate": self.estimate.to_json()}

    def __repr__(self) -> str:
        cost = f"ε = {brief(self.estimate.epsilon)}"
        cost += f", δ = {brief(self.estimate.delta)}" if self.estimate.delta else ""
        lines = [f"{self.file.title}: {cost} on {', '.join(self.estimate.datasets)}; nothing was run or charged"]
        lines += [f"  {each.line()}" for each in self.parts]
        lines += [f"  {self.estimate.offer()}"] if self.estimate.free is not None else []
        return "\n".join([*lines, f"  {self.estimate.budget()}"])


def check_target(path: str | Path) -> None:
    """Reject a file name that a report cannot be written to, before anything is charged."""
    if Path(path).suffix not in (".html", ".md"):
        raise ParameterError("HB845", f"Cannot write a study as {Path(path).name!r}.", "Use a name in .html or .md.")


@dataclass(frozen=True)
class StudyReport(Mapping[str, Release]):
    """The answers of a study by the names of its parts; each has the cost and the receipt of the whole study."""

    file: StudyFile
    release: Release
    answers: Mapping[str, Release]

    def __getitem__(self, name: str) -> Release:
        """Return the answer of a part."""
        if name not in self.answers:
            raise ParameterError(
                "HB844", f"The study has no part {str(name)[:40]!r}.", f"Its parts: {', '.join(self.answers)}."
            )
        return self.answers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def replayed(self) -> bool:
        """Whether this is a free repetition of an earlier run."""
        return self.release.replayed

    def sheet(self) -> Sheet:
        """Return the document."""
        return study_sheet(self.file, self.release, self.answers)

    def markdown(self) -> str:
        """Return the document as Markdown."""
        return self.sheet().markdown()

    def page(self) -> str:
        """Return the document as one HTML page that loads nothing."""
        return self.sheet().page()

    def write(self, path: str | Path) -> None:
        """Write the document to a file whose name ends in .html or .md."""
        check_target(path)
        text = self.page() if Path(path).suffix == ".html" else self.markdown()
        Path(path).write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        parts = [f"{name}\n{answer!r}" for name, answer in self.answers.items()]
        return "\n\n".join([self.file.title, *parts])


class _PricedFile:
    """A plan file and its price."""

    def __init__(self, file: StudyFile) -> None:
        self.file = file
        self._options: Options = {"epsilon": file.epsilon, "delta": file.delta}

    def _report(self, release: Release) -> StudyReport:
        answers = dict(zip(self.file.questions, batch_answers(release), strict=True))
        return StudyReport(self.file, release, {part.name: answers[part.query] for part in self.file.parts})

    def __repr__(self) -> str:
        return f"<study: {self.file.title}, {len(self.file.parts)} parts, ε = {brief(self.file.epsilon)}>"


class Study(_PricedFile):
    """A study that can be planned and run."""

    def __init__(self, session: Asking, file: StudyFile) -> None:
        """Use `h.study`."""
        super().__init__(file)
        self._session = session

    def plan(self) -> StudyPlan:
        """Show what the study costs and what each part gets. Free: nothing is run or charged."""
        try:
            return StudyPlan(self.file, self._session.estimate(self.file.batch(), **self._options))
        except (ParameterError, QueryError) as error:
            raise self.file.located(error) from None

    def run(self, *, key: str | None = None, fresh: bool = False) -> StudyReport:
        """Pay once, run, and return the answers. The same study on the same data is free afterwards.

        A run that was interrupted is continued by the next call, with the same noise and without another charge.
        """
        name = request_key(key, fresh=fresh)
        try:
            return self._report(self._session.query(self.file.batch(), key=name, **self._options))
        except (ParameterError, QueryError) as error:
            raise self.file.located(error) from None


class AsyncStudy(_PricedFile):
    """A study of an asynchronous session."""

    def __init__(self, session: AsyncAsking, file: StudyFile) -> None:
        """Use `h.study`."""
        super().__init__(file)
        self._session = session

    async def plan(self) -> StudyPlan:
        """Show what the study costs and what each part gets. Free: nothing is run or charged."""
        try:
            return StudyPlan(self.file, await self._session.estimate(self.file.batch(), **self._options))
        except (ParameterError, QueryError) as error:
            raise self.file.located(error) from None

    async def run(self, *, key: str | None = None, fresh: bool = False) -> StudyReport:
        """Pay once, run, and return the answers. The same study on the same data is free afterwards."""
        name = request_key(key, fresh=fresh)
        try:
            return self._report(await self._session.query(self.file.batch(), key=name, **self._options))
        except (ParameterError, QueryError) as error:
            raise self.file.located(error) from None


class Studying:
    """A session that can run studies."""

    def study(self: Asking, path: str | Path) -> Study:
        """Read the plan file of a study; `plan()` is free and `run()` pays. See `hubbub.answers.study`."""
        return Study(self, read_study(path))


class AsyncStudying:
    """An asynchronous session that can run studies."""

    def study(self: AsyncAsking, path: str | Path) -> AsyncStudy:
        """Read the plan file of a study; `await plan()` is free and `await run()` pays."""
        return AsyncStudy(self, read_study(path))
