"""How a stream of a declared dataset is paid for: CALL stream(…), charged once for all that it will ever say.

The call reads no data: it charges the event of the stream's terms and publishes the terms (`hubbub.curator.streams`).
The stream then begins, once for its charge: a list beside the ledger says which charges have begun, so that a lost
state is never drawn anew on an old charge.
"""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hubbub.analyses.base import Published, Run, Setting
from hubbub.analyses.streams import places
from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.exact import enumerated
from hubbub.analyses.streams.stream import Stream
from hubbub.analyses.streams.terms import Terms
from hubbub.analyses.streams.tree import Tree
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core.events import Event
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.errors import QueryError, StreamError
from hubbub.noise.source import Source
from hubbub.private_files import private_file
from hubbub.sql.bounding import Limits


def stream(
    setting: Setting,
    *,
    table: str,
    name: str,
    kind: str,
    universe: list[int] | None = None,
    outputs: int = 1,
    classic: bool = False,
    horizon: int | None = None,
    window: int | None = None,
    bins: list[str] | None = None,
    bound: int = 1,
    method: str | None = None,
    private_state: bool = False,
) -> "Bought":
    """Prepare the making of a stream: see `Terms` for its kinds, and docs/analyses.md."""
    found = setting.table(table)
    unit = found.unit
    if kind == "count" and unit is not None and unit.column is not None:
        raise QueryError(
            "HB530",
            f"{table} protects each {unit.column}, and a count protects single arrivals.",
            "Make a density over the ids, or count in a dataset whose unit is the row.",
        )
    if kind == "count" and not found.arrivals:
        raise StreamError(
            "HB664",
            f"a count answers after every arrival, and how many arrivals {table} has is not public.",
            "Make a density, which does not tell, or ask the owner to declare `arrivals: public` for this dataset.",
        )
    _check_types(universe, bins, name, classic, private_state)
    counts = kind == "count"
    chosen = method or ("root" if counts and setting.delta and not private_state else "tree")
    terms = Terms(
        name=name,
        kind=kind,
        epsilon=setting.epsilon,
        delta=setting.delta if counts else Fraction(0),
        universe=None if universe is None else (universe[0], universe[1]),
        outputs=outputs,
        classic=classic,
        horizon=horizon,
        window=window,
        bins=None if bins is None else tuple(bins),
        bound=bound,
        method=chosen,
        private_state=private_state,
        relation=found.relation,
    )
    return Bought(found, terms, terms.event)


def _check_types(universe: object, bins: object, name: object, *flags: object) -> None:
    """Refuse what a call can say and these arguments cannot be."""
    pair = isinstance(universe, list) and len(universe) == 2 and all(type(each) is int for each in universe)
    if universe is not None and not pair:
        raise QueryError("HB530", "a universe is its smallest and its largest number.", "Write universe => [0, 99999].")
    if bins is not None and not (isinstance(bins, list) and all(isinstance(each, str) for each in bins)):
        raise QueryError("HB530", "bins are a list of texts.", "Write bins => ['north', 'south'].")
    if not isinstance(name, str) or not all(isinstance(flag, bool) for flag in flags):
        raise QueryError("HB530", "a name is a text; classic and private_state are TRUE or FALSE.", "Write them so.")


@dataclass(frozen=True, slots=True)
class Bought:
    """A stream's terms, priced; the run draws nothing and reads nothing."""

    table: Table
    terms: Terms
    event: Event

    @property
    def tables(self) -> tuple[Table, ...]:
        """The dataset that the arrivals belong to."""
        return (self.table,)

    @property
    def epsilon(self) -> Fraction:
        """What it costs, for all arrivals and answers."""
        return self.terms.epsilon

    @property
    def delta(self) -> Fraction:
        """The δ of it."""
        return self.terms.delta

    @property
    def relation(self) -> Relation:
        """What neighbors are: one arrival, or all of one element's, becoming nothing or something else."""
        return self.terms.relation

    @property
    def limits(self) -> Limits | None:
        """None: what one unit contributes is not bounded by leaving rows out."""
        return None

    @property
    def derivation(self) -> tuple[str, ...]:
        """How the noise follows."""
        return self.terms.derivation

    @property
    def expected(self) -> tuple[Expected, ...]:
        """The ± of an answer: of a density at its worst, of a count at the end."""
        if self.terms.kind == "density":
            half = 2.12 * self.terms.density.deviation(Fraction(0))
            return (Expected("density", half, None, half),)
        counter = self.terms.counter
        # of all times the one before a power of two has most blocks
        worst = (1 << self.terms.length.bit_length() - 1) - 1 if isinstance(counter, Tree) else self.terms.length
        half = 2.12 * counter.deviation(0, max(worst, 1))
        return (Expected("count", half, None, half / self.terms.length),)

    @property
    def noise(self) -> str:
        """The kinds of noise."""
        if self.terms.kind == "density":
            return "coins and geometric"
        return "Gaussian" if self.terms.delta else "geometric"

    def enumerated(self, model: Mapping[str, Any]) -> tuple[str, bool]:
        """Enumerate the loss of released terms in small."""
        seen = enumerated(Terms.read(model["terms"]))
        return seen.line, seen.kept

    def run(self, run: Run) -> Published:
        """Publish the terms."""
        run.progress(1.0, "paid for")
        return Published((Output("stream", "text", [self.terms.name]),), {"terms": self.terms.form()})


def begin(folder: Path, ledger: Path, release: Release, *, analyst: str, source: Source) -> Stream:
    """Begin the stream that a release paid for, or go on with it: once for each charge.

    Theorem (One stream a charge). The draws of a charged stream are begun at most once.
    Proof    Under one lock: a charge that is on the list goes on with its state or is refused. One that is not makes
             its state, or finds the one that a killed try made, and is then put on the list, durably, before anybody
             can feed it.
    Assumes  list and ledger are kept together: whoever loses both is stopped by the ledger's anchor.
    Tested   tests/analyses/streams/test_buying.py::test_a_lost_state_is_never_begun_again_on_an_old_charge
             tests/analyses/streams/test_buying.py::test_a_stream_begins_once_for_its_charge_through_kills
    """
    terms, paper = Terms.read(release.model["terms"]), release.receipt["ledger"][0]
    identity = str(paper["hash"])
    paid = {"analyst": analyst, "dataset": paper["dataset"], "charge": paper["sequence"]}
    with states.held(folder, terms.name) as path, _begun(ledger) as begun:
        if path.exists():
            found = Stream.load(path)
            if found.identity != identity:
                raise taken(terms.name)
        elif identity in begun:
            raise StreamError(
                "HB532",
                "the state of this stream is lost, and its charge cannot be used twice.",
                "Buy a new stream, at its price.",
            )
        else:
            found = Stream.make(path, terms, source, identity=identity, paid=paid)
        begun[identity] = terms.name
    return found


def begin_paid(root: Path, ledger: Path, release: Release, *, analyst: str, source: Source) -> Stream:
    """Begin the stream that a release of an analyst's paid for, where its purchase did not; again, it is the same."""
    name = str(release.model["terms"]["name"])
    with places.held_by(root, analyst) as folder:
        entry = places.find(root, analyst, name)
        places.refuse_many(root, folder, analyst, name)
        found = begin(entry.folder if entry else folder, ledger, release, analyst=analyst, source=source)
        (folder / f"{name}.bought").unlink(missing_ok=True)
        return found


def end(root: Path, analyst: str, name: str) -> None:
    """End an analyst's stream: its state is erased, and its charge can never begin another."""
    with places.held_by(root, analyst) as folder:
        note = folder / f"{name}.bought"
        if states.path_of(folder, name).exists():
            end_state(folder, name)  # also where it is damaged
        elif (entry := places.find(root, analyst, name)) is not None:
            end_state(entry.folder, name)
        elif not note.exists():
            raise states.missing(name)
        note.unlink(missing_ok=True)


def end_state(folder: Path, name: str) -> None:
    """Erase the state of a stream of a folder."""
    if not states.path_of(folder, name).exists():
        raise states.missing(name)
    with states.held(folder, name) as path:
        states.erase(path)


def taken(name: str) -> StreamError:
    """Make the refusal of a name that another stream of the analyst has."""
    return StreamError("HB531", f"you have a stream called {name} already.", "Choose another name, or end it.")


def listed(ledger: Path) -> Mapping[str, str]:
    """Give the charges whose streams have begun, with their names."""
    with _begun(ledger) as begun:
        return dict(begun)


@contextmanager
def _begun(ledger: Path) -> Iterator[dict[str, str]]:
    """Lend the list of charges that have begun, and keep what was added to it."""
    path = ledger / "streams.json"
    with private_file(ledger / "streams.lock", "a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        text = path.read_text(encoding="utf-8") if path.exists() else "{}"
        begun: dict[str, str] = json.loads(text)
        yield begun
        if (now := json.dumps(begun)) != text:
            states.replace_text(path, now)
