"""Free answers: what earlier releases tell about a query, and the release of such an answer.

    plan → sources (ledger) → derivation → is it as exact as the price would be? → zero charge → record → release

Tested in tests/curator/test_reuse.py.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import islice

from hubbub.accounting.calls import Charge, ChargeRequest
from hubbub.accounting.chain import Entry
from hubbub.accounting.cost import blocks_of_facts
from hubbub.accounting.ledger import Ledger
from hubbub.accounting.reviews import Reviews
from hubbub.accounting.store import EntryFilter, Snapshot
from hubbub.analyses.base import PreparedAnalysis
from hubbub.answers.estimate import FreeAnswer
from hubbub.answers.release import Release
from hubbub.config import Config
from hubbub.core.asked import Same, once
from hubbub.core.events import Composed
from hubbub.core.schema import Table
from hubbub.curator.derived_answer import DerivedAnswer, paper_of
from hubbub.curator.earlier import MOST, EarlierReleases
from hubbub.curator.history import Unseen
from hubbub.curator.planner import Planner
from hubbub.curator.published import data_facts
from hubbub.curator.query import PreparedQuery
from hubbub.curator.question import Question
from hubbub.curator.replay import ReplayKeys
from hubbub.errors import BudgetError, ParameterError, QueryError
from hubbub.sql.derived import derive
from hubbub.sql.measured import Described, describe, measured
from hubbub.sql.terms import Source


def find(
    earlier: EarlierReleases,
    snapshot: Snapshot,
    analyst: str,
    planned: PreparedAnalysis,
    versions: Mapping[str, str],
    *,
    others: Sequence[str] = (),
    unseen: Unseen = frozenset(),
) -> DerivedAnswer | None:
    """Find what earlier releases of this analyst, and of others who share theirs, tell about a planned query.

    Theorem (Free answers). Whether a query is answered for free, from which releases, with what weights and with what
    stated error depends on the ledger, the declarations and the query alone, and not on the data; the answer depends on
    the data only through numbers that were released to this analyst, or to all who share them.
    Proof    Sources are read from releases that are recorded for these analysts, in the current version of the data,
             under the same declarations. `derive` reads their descriptions and noises, which are facts of their
             events, and none of their sums. The answer is a function of the sums.
    Assumes  an analyst may see whether their own queries have ended (`unseen` has those whose end is not shown yet).
    Charges  nothing: post-processing. What was released was charged to every dataset that it was computed from.
    Tested   tests/curator/test_reuse.py::test_whether_an_answer_is_free_does_not_depend_on_noise
             tests/curator/test_reuse.py::test_nobody_can_tell_whether_others_have_a_source
    """
    if not isinstance(planned, PreparedQuery):
        return None
    sources = _sources(earlier, snapshot, (analyst, *others), planned, versions, unseen)
    return once(_key("free", planned, sources), lambda: _derived(planned, sources), weigh=_weight)


def _derived(planned: PreparedQuery, sources: Sequence[Source]) -> DerivedAnswer | None:
    described = _described(planned)
    derivation = derive(described, sources) if described is not None and sources else None
    if described is None or derivation is None:
        return None
    return DerivedAnswer(planned, described, derivation, tuple(each.number for each in sources))


def _described(planned: PreparedQuery) -> Described | None:
    return None if planned.values is not None or planned.joint else describe(planned.plan, planned.given)


def _sources(
    earlier: EarlierReleases,
    snapshot: Snapshot,
    owners: Sequence[str],
    planned: PreparedQuery,
    versions: Mapping[str, str],
    unseen: Unseen,
) -> list[Source]:
    """Give the earlier releases that were computed from the tables and the data of a query."""
    described = once(_key("described", planned, ()), lambda: _described(planned), weigh=lambda _: _held(planned))
    if described is None:
        return []
    first = planned.private[0].name
    data = data_facts(planned.tables, versions)
    sources = earlier.sources(
        snapshot,
        owners,
        first,
        versions[first],
        unseen,
        described=described,
        data=data,
        key=Same(planned),
    )
    if len(planned.private) == 1:
        return sources  # the charge of a source has the version of its one private table
    return [each for each in sources if _same_data(snapshot, each.number, planned, versions)]


def _key(what: str, planned: PreparedQuery, sources: Sequence[Source]) -> Hashable:
    """Say what an offer follows from: the plan, and the releases that may be seen; a release never changes."""
    return what, Same(planned), tuple(each.number for each in sources)


def _held(planned: PreparedQuery) -> int:
    """Weigh a plan, which a key keeps."""
    return planned.cells + sum(map(len, planned.statements))


def _weight(found: DerivedAnswer | None) -> int:
    if found is None:
        return 1_000
    made = found.derivation
    weights = sum(len(row) for each in made.solved if each is not None for row in each.rows)
    return _held(found.planned) + len(found.numbers) + sum(len(each.cells) for each in made.views) + 20 * weights


def _planned_source(planned: PreparedQuery) -> list[Source]:
    """Describe what a planned query would measure, as a source with the number 0."""
    facts = measured(describe(planned.plan, planned.given))
    if facts is None:
        return []
    sets = len(facts["sets"])
    return [Source(0, facts, tuple((each.mechanism,) * sets for each in planned.plan.measures))]


def _newest(snapshot: Snapshot, which: EntryFilter, table: Table) -> Entry | None:
    """Give the newest charge on the blocks of a table that are read: other blocks have versions of their own."""
    charges = islice(snapshot.entries(which, newest_first=True), MOST)
    return next((entry for entry in charges if blocks_of_facts(entry.facts) == table.read_blocks), None)


def _same_data(snapshot: Snapshot, number: int, planned: PreparedAnalysis, versions: Mapping[str, str]) -> bool:
    """Say whether a source read the same versions of all private tables."""
    data = {each["dataset"]: each["version"] for each in paper_of(snapshot, number)["data"]}
    return data == {table.name: versions[table.name] for table in planned.private}


def record(
    ledger: Ledger,
    answer: DerivedAnswer,
    *,
    analyst: str,
    text: str,
    versions: Mapping[str, str],
    claim: Callable[[str], str] | None,
) -> tuple[bytes, bool] | None:
    """Record a derived answer under a charge of nothing; return it, and whether it was there.

    None if the request was claimed for another charge before: all tries of one request have one answer.
    """
    tables, key = answer.planned.private, answer.key(text, versions)
    if claim is not None and claim(f"{key} {tables[0].name}") != f"{key} {tables[0].name}":
        return None
    charges = ledger.charge_all(
        [
            ChargeRequest(
                analyst, table.name, versions[table.name], Composed(()), text, f"{key} {table.name}", table.read_blocks
            )
            for table in tables
        ]
    )
    if charges[0].release is not None:
        return charges[0].release, True
    with ledger.snapshot() as snapshot:
        body = answer.body(snapshot, charges, text, versions)
    return ledger.record(charges[0], body), False


def sharing(config: Config, analyst: str, datasets: Sequence[str]) -> tuple[str, ...]:
    """List the other analysts whose releases about all of these datasets an analyst may see.

    Theorem (Shared answers). With sharing, what any set of analysts sees is a function of what was charged to the
    dataset's caps, which have all charges of all analysts: together they learn no more than the dataset's budget
    allows, whether they share or collude. One analyst learns what was released to those who share with them: at most
    what the caps of all of these add up to, instead of their own cap alone.
    Proof    Every release was charged to the dataset before it ran, whoever asked. Seeing it, and whatever is computed
             from it, is post-processing. Without sharing, analysts could show each other their answers as well.
    Assumes  the data owner decides who shares: a cap of one analyst then limits what they cause to be released.
    Charges  nothing.
    Tested   tests/curator/test_sharing.py::test_the_caps_of_a_dataset_count_a_shared_release_once
             tests/curator/test_reuse.py::test_nobody_can_tell_whether_others_have_a_source
    """
    shared: set[str] | None = None
    for name in datasets:
        declared = config.datasets.get(name)
        share = "none" if declared is None else declared.share
        names = set(config.policy.analysts) if share == "everyone" else set[str]()
        if share == "group":
            groups = [members for members, caps in config.policy.groups.values() if analyst in members and name in caps]
            names = {member for members in groups for member in members}
        shared = names if shared is None else shared & names
    return tuple(sorted((shared or set()) - {analyst}))


def _combined(planned: PreparedQuery, sources: Sequence[Source]) -> Fraction | None:
    """Find the least part of the price that is enough, in tenths; None if it is the whole price."""
    if planned.values is not None or _derived(planned, sources) is None:
        return None

    def enough(tenths: int) -> bool:
        try:
            cheaper = planned.at(planned.epsilon * tenths / 10)
        except (QueryError, ParameterError):
            return False
        found = _derived(planned, [*sources, *_planned_source(cheaper)])
        return found is not None and found.enough

    low, high = 0, 10
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return planned.epsilon * high / 10 if high < 10 else None


def _has_rules(planned: PreparedAnalysis) -> bool:
    """Whether the owner has rules for small numbers or rounding: then each answer is one of its own."""
    return any(table.disclosure.form for table in planned.private)


class Reuse:
    """Answers what earlier releases determine, for the analysts of one hubbub.yaml."""

    def __init__(self, config: Config, ledger: Ledger, replays: ReplayKeys, reviews: Reviews) -> None:
        self._config = config
        self._ledger = ledger
        self._reviews = reviews
        self._replays = replays
        self._earlier = EarlierReleases()

    def find(
        self,
        analyst: str,
        planned: PreparedAnalysis,
        versions: Mapping[str, str],
        unseen: Unseen,
    ) -> DerivedAnswer | None:
        """Find what earlier releases tell about a query."""
        if _has_rules(planned):
            return None
        others = sharing(self._config, analyst, [table.name for table in planned.private])
        with self._ledger.snapshot() as snapshot:
            hidden = unseen | self._reviews.held_in(snapshot)
            return find(self._earlier, snapshot, analyst, planned, versions, others=others, unseen=hidden)

    def offer(self, analyst: str, planned: PreparedAnalysis, unseen: Unseen) -> FreeAnswer | None:
        """Say what earlier releases tell about a query, for the data of the newest charge: an estimate reads no data.

        Versions of public tables are not in a charge, so that queries that read one have no offer.
        """
        names = [table.name for table in planned.private]
        if len(names) < len(planned.tables):
            return None
        owners, versions = (analyst, *sharing(self._config, analyst, names)), dict[str, str]()
        with self._ledger.snapshot() as snapshot:
            for table in planned.private:
                which = [EntryFilter(kind="charge", analyst=owner, dataset=table.name) for owner in owners]
                newest = [_newest(snapshot, each, table) for each in which]
                known = [entry for entry in newest if entry is not None]
                if not known:
                    return None
                versions[table.name] = max(known, key=lambda entry: entry.sequence).version
        found = self.find(analyst, planned, versions, unseen)
        if found is None:
            return None
        offer = replace(found.offer(), enough=found.enough and self._always(names))
        price = None if found.enough else self._combined_price(analyst, found.planned, versions, unseen)
        return replace(offer, combined=price)

    def _always(self, datasets: Sequence[str]) -> bool:
        """Tell whether queries with a price are answered from earlier releases, without being asked to."""
        declared = [self._config.datasets.get(name) for name in datasets]
        return all(each is not None and each.reuse == "always" for each in declared)

    def answer(
        self,
        analyst: str,
        question: Question,
        planned: PreparedAnalysis,
        claim: Callable[[str], str] | None,
        unseen: Unseen,
        *,
        versions: Callable[[], Mapping[str, str]],
        insists: bool,
        pay: Callable[[Question], Release],
    ) -> tuple[bytes, bool] | None:
        """Answer a query for free, or combine earlier releases with a cheaper one; None if it has to be charged.

        A query that was charged before is not derived: its own release is what it is answered with. With `insists`,
        only new noise will do. Versions of the data are read only where they matter: a stream may have no data yet.
        `pay` buys new noise at a price,
        never what was released before.
        """
        free = self._free(analyst, question, planned, claim, unseen, versions=versions, insists=insists)
        combines = question.combine and question.priced and not question.free
        if free is not None or not combines or not isinstance(planned, PreparedQuery):
            return free
        now = versions()
        own = None if insists else self._charged(analyst, planned, question.text(), now, unseen)
        if own is not None and own.release is not None:
            return None
        price = self._combined_price(analyst, planned, now, unseen)
        if price is None:
            return None
        part = pay(replace(question, epsilon=price, within=None, combine=False))
        now = versions()
        # from here on nothing is refused: whoever reserved the price takes a refusal for one before the charge
        with suppress(QueryError, ParameterError, BudgetError):  # of a policy that was changed meanwhile
            found = self.find(analyst, planned, now, unseen)
            # what costs nothing needs no name: that of the request is the name of the charge
            if found is not None:
                return record(self._ledger, found, analyst=analyst, text=question.text(), versions=now, claim=None)
        with self._ledger.snapshot() as snapshot:  # the data has changed since, or the policy
            body = snapshot.body(part.receipt["ledger"][0]["sequence"])
        return None if body is None else (body, True)

    def with_noise(
        self,
        analyst: str,
        question: Question,
        planner: Planner,
        salt: str,
        versions: Callable[[PreparedAnalysis], Mapping[str, str]],
        key: str | None,
    ) -> Question:
        """Choose the noise of a query that is asked by accuracy, unless it was charged before as it is planned alone.

        Then that charge still answers it, found by its own key or that of a request.
        """
        noise = planner.noise(analyst, question).noise
        if noise is None:
            return question
        planned, text = planner.plan(analyst, question, salt=salt), question.text()
        base = self._replays.key(analyst, planned, text, versions(planned), planned.event)
        earlier = self._ledger.recall(analyst, f"{base if key is None else f'key {key}'} {planned.private[0].name}")
        charged = earlier is not None and earlier.entry.query == text
        return question if charged else replace(question, noise=noise)

    def _combined_price(
        self, analyst: str, planned: PreparedQuery, versions: Mapping[str, str], unseen: Unseen
    ) -> Fraction | None:
        """Find the least part of the price, in tenths, at which a new release and earlier ones are as exact together.

        Whether there is one depends on descriptions and noises of releases, and of one that was not drawn. There is
        none where the new release may have to be approved first: each new try would buy another one.
        """
        reviewed = not self._config.policy.reviews.keys().isdisjoint(table.name for table in planned.private)
        if reviewed or _has_rules(planned):
            return None
        others = sharing(self._config, analyst, [table.name for table in planned.private])
        with self._ledger.snapshot() as snapshot:
            hidden = unseen | self._reviews.held_in(snapshot)
            sources = _sources(self._earlier, snapshot, (analyst, *others), planned, versions, hidden)
        if not sources:
            return None
        return once(
            _key("combined", planned, sources), lambda: _combined(planned, sources), weigh=lambda _: _held(planned)
        )

    def _free(
        self,
        analyst: str,
        question: Question,
        planned: PreparedAnalysis,
        claim: Callable[[str], str] | None,
        unseen: Unseen,
        *,
        versions: Callable[[], Mapping[str, str]],
        insists: bool,
    ) -> tuple[bytes, bool] | None:
        """Answer a query for free; None if no release determines it, or not as exactly as its price would."""
        able = isinstance(planned, PreparedQuery)
        datasets = [table.name for table in planned.private]
        others = sharing(self._config, analyst, datasets)
        if _has_rules(planned):  # earlier releases may have numbers that the rules leave out
            able, others = False, ()
        derives = able and (question.only_free or self._always(datasets))
        if insists or not (derives or (able and others)):
            self._refuse_unpriced(question)
            return None
        text, now = question.text(), versions()
        if question.priced:
            own = self._charged(analyst, planned, text, now, unseen)
            if own is not None and (own.release is not None or not question.only_free):
                return None
            for name in others:
                charge = self._charged(name, planned, text, now, unseen)
                if charge is not None and charge.release is not None:
                    return charge.release, True
        found = self.find(analyst, planned, now, unseen) if derives else None
        if found is None or (question.priced and not found.enough):
            self._refuse_unpriced(question)
            return None
        # what costs nothing needs no name
        claim = None if question.only_free or question.combine else claim
        return record(self._ledger, found, analyst=analyst, text=text, versions=now, claim=claim)

    def _refuse_unpriced(self, question: Question) -> None:
        """Refuse a question without a price; every other one is charged, or refused by its claim."""
        if not question.priced:
            raise question.not_free()

    def _charged(
        self, analyst: str, planned: PreparedAnalysis, text: str, versions: Mapping[str, str], unseen: Unseen
    ) -> Charge | None:
        """Find the charge of the same query, by an analyst whose releases may be seen."""
        key = self._replays.key(analyst, planned, text, versions, planned.event)
        if (analyst, key) in unseen:
            return None
        charge = self._ledger.recall(analyst, f"{key} {planned.private[0].name}")
        with self._ledger.snapshot() as snapshot:  # after the charge was read, so that it is in the snapshot
            held = (analyst, key) in self._reviews.held_in(snapshot)
        return None if held else charge
