"""A year of a growing dataset: daily appends, many analysts, scheduled queries, and kills at random.

Each day rows are added and a process runs what is scheduled and what analysts ask, until budgets are used up and
beyond. It is killed by SIGKILL at random times; the next process repeats what was not answered. At the end the ledger's
file is read without hubbub: in no block and for no analyst is a cap passed, as `hubbub check` states it, each question
is charged once to the months that it asked for, each month of a schedule is charged once, and all answers can be read
again for free. Answers of schedules are near the true counts, so that no rows of other months are in them.

False alarms: an answer is called wrong when its noise is above 60 scales, with probability below 1e-25 each.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m tests.campaigns.year
"""

import io
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

from tests.campaigns.frame import Report, run
from tests.campaigns.rig.killable_process import KillableProcess, Messenger, prepare
from tests.campaigns.rig.year_book import Charge, Promise, broken, charges, promised

from hubbub.cli import main
from hubbub.config import load
from hubbub.curator import Curator
from hubbub.curator.opening import folder_of, open_curator
from hubbub.curator.question import Question
from hubbub.curator.schedule import answers, checked, run_due
from hubbub.curator.schedule_list import Schedules
from hubbub.errors import HubbubError

FIRST = date(2026, 1, 1)
YAML = """
version: 1
datasets:
  visits:
    source: visits.csv
    unit: {{column: person, per: {{month: day}}, groups: 1, rows: 1}}
    columns: {{day: {{type: date}}, region: {{values: [North, South]}}, cost: {{bounds: [0, 10]}}}}
    blocks: {{column: day, by: month, from: 2026-01, budget: {{epsilon: {of_all}}}}}
  stays:
    source: stays.csv
    unit: {{column: person, groups: 1, rows: 2}}
    columns: {{day: {{type: date}}, region: {{values: [North, South]}}, cost: {{bounds: [0, 10]}}}}
    budget: {{epsilon: {lasting}}}
    blocks: {{column: day, by: month, from: 2026-01, budget: {{epsilon: 1}}}}
analysts: {{{analysts}}}
"""
WHERE = "WHERE day >= $1 AND day < $2"
SQL = (
    "SELECT COUNT(*) AS n FROM {dataset} " + WHERE,
    "SELECT region, COUNT(*) AS n FROM {dataset} " + WHERE + " GROUP BY region",
    "SELECT SUM(cost) AS s FROM {dataset} " + WHERE,
)
SCHEDULED = "SELECT COUNT(*) AS n FROM visits " + WHERE
PRICES = ("0.05", "0.1", "0.2")
SPENT = frozenset({"HB901", "HB902"})


@dataclass(frozen=True)
class Asked:
    """One question of an analyst, with a key of its own."""

    analyst: str
    dataset: str
    key: str
    sql: str
    epsilon: str
    first: date
    after: date

    def question(self) -> Question:
        return Question(self.sql, epsilon=self.epsilon, parameters=(self.first, self.after))


def month_after(day: date, months: int = 1) -> date:
    """Return the first day of a later month."""
    number = day.year * 12 + day.month - 1 + months
    return date(number // 12, number % 12 + 1, 1)


def names(first: date, after: date) -> tuple[str, ...]:
    """Name the months from one day to before another."""
    found = []
    while first < after:
        found.append(f"{first:%Y-%m}")
        first = month_after(first)
    return tuple(found)


def opened(path: Path, today: date) -> Curator:
    """Open a deployment on some day."""
    micros = int((today - date(1970, 1, 1)).total_seconds()) * 1_000_000
    return open_curator(load(path), clock=lambda: micros)


def live(say: Messenger, path: Path, today: date, asked: list[Asked]) -> None:
    """Run what is scheduled and what is asked on one day."""
    with opened(path, today) as curator:
        say("open")
        for ran in run_due(curator, Schedules(folder_of(curator.config))):
            say(f"ran {ran.name} {ran.block} {ran.refused[:5] or 'answered'}")
        for each in asked:
            try:
                release = curator.query(each.analyst, each.question(), key=each.key)
                say(f"answered {each.key} {release.to_csv()!r}")
            except HubbubError as error:
                say(f"refused {each.key} {error.code}")


@dataclass
class Year:
    """One deployment through a year."""

    path: Path
    analysts: list[str]
    chance: random.Random
    asked: dict[str, Asked] = field(default_factory=dict)
    open_keys: list[str] = field(default_factory=list)
    answered: dict[str, str] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    ran: dict[tuple[str, str], str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    life: float = 0.5
    wrong: list[str] = field(default_factory=list)

    def append(self, day: date, rows: int) -> None:
        """Add the rows of a day to both tables, in one step each."""
        for table in ("visits", "stays"):
            file = self.path.parent / f"{table}.csv"
            old = file.read_text() if file.exists() else "person,day,region,cost\n"
            some = [
                f"{f'p{day:%j}x{i}' if table == 'visits' else f'p{i}'},{day},"
                f"{self.chance.choice(('North', 'South'))},{self.chance.randrange(11)}\n"
                for i in range(rows)
            ]
            new = file.with_suffix(".new")
            new.write_text(old + "".join(some))
            new.replace(file)
        self.counts[f"{day:%Y-%m}"] += rows

    def ask(self, today: date, number: int) -> None:
        """Let each analyst ask about some months, the current one included."""
        for analyst in self.analysts:
            for place in range(number):
                last = self.chance.choice(names(FIRST, today + timedelta(1)))
                after = month_after(date.fromisoformat(f"{last}-01"))
                first = max(FIRST, month_after(after, -self.chance.choice((1, 1, 1, 2, 3))))
                dataset = self.chance.choice(("visits", "visits", "stays"))
                sql = self.chance.choice(SQL).format(dataset=dataset)
                key = f"{analyst}.{today}.{place}"
                self.asked[key] = Asked(analyst, dataset, key, sql, self.chance.choice(PRICES), first, after)
                self.open_keys.append(key)

    def spend(self, today: date, *, kill: bool) -> None:
        """Run one process of this day; it is killed, or it ends."""
        mine = [self.asked[key] for key in self.open_keys]
        process = KillableProcess(live, self.path, today, mine)
        began = time.monotonic()
        process.go()
        within = self.chance.uniform(0.0, self.life) if kill else 300.0
        for line in process.finish(within=within, kill=kill):
            word, key, *rest = line.split(" ", 2) if " " in line else (line, "")
            if word == "answered":
                if self.answered.setdefault(key, rest[0]) != rest[0]:
                    self.wrong.append(f"{key} was answered in two ways")
                self.open_keys.remove(key)
            elif word == "ran":
                self.ran[key, rest[0][:7]] = rest[0][8:]
            elif word == "refused":
                self.refused[rest[0]] += 1
                self.open_keys.remove(key)
        self.kills += process.killed
        if not process.killed:
            self.life = time.monotonic() - began

    def expected(self) -> dict[str, tuple[Fraction, tuple[str, ...]]]:
        """Return the price and the months of every key of the ledger that may be there."""
        found = {
            f"key {each.key} {each.dataset}": (Fraction(each.epsilon), names(each.first, each.after))
            for each in self.asked.values()
        }
        for schedule in Schedules(folder_of(load(self.path))).list():
            for month in self.counts:
                found[f"key {schedule.key(month)} visits"] = Fraction(schedule.epsilon), (month,)
        return found


def year(report: Report) -> None:
    """Live through the year, and look at its ledger."""
    analysts = [f"a{number:02}" for number in range(report.scale(ci=3, full=20))]
    days = [FIRST + timedelta(step) for step in range(0, report.scale(ci=80, full=365), report.scale(ci=20, full=1))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hubbub.yaml"
        own, of_all, lasting = (2, 16, 8) if report.full else (0.7, 1.5, 1.25)
        caps = ", ".join(f"{name}: {{visits: {{epsilon: {own}}}, stays: {{epsilon: 0.4}}}}" for name in analysts)
        path.write_text(YAML.format(analysts=caps, of_all=of_all, lasting=lasting))
        it = Year(path, analysts, random.Random(os.environ.get("HUBBUB_SEED", "year")))
        it.append(FIRST, 6)
        with opened(path, FIRST) as curator:
            for name in analysts[: report.scale(ci=2, full=5)]:
                made = checked(curator, name, SCHEDULED, name=f"of-{name}", every="month", epsilon="0.25", first=None)
                Schedules(folder_of(curator.config)).add(made)
        for day in report.progress(days, "days"):
            if day != FIRST:
                it.append(day, 6)
            it.ask(day, report.scale(ci=2, full=1))
            for _ in range(it.chance.randrange(3)):
                it.spend(day, kill=True)
            it.spend(day, kill=False)
        _judge(report, it, days[-1])


def _judge(report: Report, it: Year, today: date) -> None:
    promises, booked = _promises(it.path), charges(it.path.parent / "hubbub-ledger" / "ledger.db")
    expected = it.expected()
    report.figure("charges", len(booked))
    report.figure("refused", dict(sorted(it.refused.items())))
    report.target("kills", it.kills, at_least=report.scale(ci=1, full=100))
    report.target("promises read from check", len(promises), at_least=2 * len(it.analysts) + 3)
    found = broken(booked, promises, expected) + it.wrong + _read_again(it, today)
    for text in found:
        report.say(text)
    report.target("promises broken", len(found), at_most=0)
    report.target("refused for budget", it.refused["HB201"] + it.refused["HB202"], at_least=1)
    planted = [name for name, change in PLANTED.items() if not broken(*change(booked, promises), expected)]
    report.figure("planted errors that were missed", [*planted])
    report.target("planted errors noticed", len(PLANTED) - len(planted), at_least=len(PLANTED))


def _promises(path: Path) -> list[Promise]:
    """Let `hubbub check` state the promises."""
    os.environ["COLUMNS"] = "200"
    with redirect_stdout(io.StringIO()) as words:
        main(["check", "--config", str(path)])
    return promised(words.getvalue())


def _read_again(it: Year, today: date) -> list[str]:
    """Repeat everything that was answered, for free, and compare schedules with the truth."""
    found = []
    with opened(it.path, today) as curator:
        if not curator.ledger.verify().sound:
            found.append("the ledger does not verify")
        with curator.ledger.snapshot() as snapshot:
            head = snapshot.head().sequence
        for key, text in it.answered.items():
            each = it.asked[key]
            release = curator.recall(each.analyst, f"key {key} {each.dataset}")
            if release is None or repr(release.to_csv()) != text:
                found.append(f"{key} is not answered as before")
        unanswered = 0
        for schedule in Schedules(folder_of(curator.config)).list():
            releases = answers(curator, schedule)
            ended = {month for month in it.counts if month < f"{today:%Y-%m}"}
            missing = {month: it.ran.get((schedule.name, month), "") for month in ended - releases.keys()}
            unanswered += sum(why in SPENT for why in missing.values())
            found += [f"{schedule.name} {m}: {why}" for m, why in missing.items() if why not in {*SPENT, "HB201"}]
            for month, release in releases.items():
                (value,) = release.outputs[0].values
                if not isinstance(value, int) or abs(value - it.counts[month]) > 60 * 4:
                    found.append(f"{schedule.analyst} {month}: far from {it.counts[month]}")
        if unanswered > it.kills:
            found.append(f"{unanswered} months of schedules have no answer, after {it.kills} kills")
        with curator.ledger.snapshot() as snapshot:
            if snapshot.head().sequence != head:
                found.append("reading again added entries")
    return found


Change = Callable[[list[Charge], list[Promise]], tuple[list[Charge], list[Promise]]]


def _first(booked: list[Charge], **change: object) -> list[Charge]:
    place = next(i for i, each in enumerate(booked) if len(each.months) == 1 and each.epsilon)
    return [*booked[:place], replace(booked[place], **change), *booked[place + 1 :]]  # type: ignore[arg-type]


#: What the look at the ledger must notice.
PLANTED: dict[str, Change] = {
    "a block counted in none": lambda booked, promises: (_first(booked, months=()), promises),
    "another month": lambda booked, promises: (_first(booked, months=("2025-12",)), promises),
    "a lower price": lambda booked, promises: (_first(booked, epsilon=Fraction(1, 1000)), promises),
    "a charge made twice": lambda booked, promises: ([*booked, booked[-1]], promises),
    "two releases": lambda booked, promises: (_first(booked, releases=2), promises),
    "caps that were passed": lambda booked, promises: (
        booked,
        [replace(each, epsilon=each.epsilon / 2) for each in promises],
    ),
}


if __name__ == "__main__":
    prepare("hubbub.cli.check", "hubbub.curator.schedule", "duckdb", "numpy")
    run(year)
