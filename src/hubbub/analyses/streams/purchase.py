"""Purchase of a stream over a declared dataset: CALL stream(…), charged once for all of its answers.

The call reads no data: it charges the event of the stream's terms and publishes the terms (`hubbub.curator.streams`).
A charge starts one stream. A list beside the ledger records the charges that were used, so that a lost state is never
sampled again on an old charge.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hubbub.analyses.base import PreparedAnalysis, Protection, Published, Run, Setting
from hubbub.analyses.streams import folders
from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.enumeration import enumerate_loss
from hubbub.analyses.streams.stream import Stream
from hubbub.analyses.streams.terms import Terms
from hubbub.analyses.streams.tree import TreeCounter
from hubbub.answers.estimate import Expected
from hubbub.answers.release import Output, Release
from hubbub.core.schema import Table
from hubbub.errors import QueryError, StreamError
from hubbub.noise.source import RandomSource
from hubbub.private_files import locked


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
) -> "StreamPurchase":
    """Prepare the purchase of a stream; see `Terms` for the kinds, and docs/analyses.md."""
    dataset = setting.table(table)
    unit = dataset.unit
    if kind == "count" and unit is not None and unit.column is not None:
        raise QueryError(
            "HB530",
            f"A count protects single arrivals, but the privacy unit of {table} is {unit.column}.",
            "Use kind => 'density' over the ids, or count in a dataset whose unit is the row.",
        )
    if kind == "count" and not dataset.arrivals:
        raise StreamError(
            "HB664",
            f"A count reveals the number of arrivals, which is not public for {table}.",
            "Use kind => 'density', or ask the data owner to declare `arrivals: public` for this dataset.",
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
        relation=dataset.relation,
    )
    return StreamPurchase(
        protection=Protection((dataset,), terms.relation, None),
        epsilon=terms.epsilon,
        delta=terms.delta,
        event=terms.event,
        noise=_noise(terms),
        derivation=terms.derivation,
        expected=(_expected(terms),),
        table=dataset,
        terms=terms,
    )


def _noise(terms: Terms) -> str:
    """Name the noise distribution, for people."""
    if terms.kind == "density":
        return "coins and geometric"
    return "Gaussian" if terms.delta else "geometric"


def _expected(terms: Terms) -> Expected:
    """Give the margin of error: the largest for a density, that of the last answer for a count."""
    if terms.kind == "density":
        half = 2.12 * terms.density.deviation(Fraction(0))
        return Expected("density", half, None, half)
    counter = terms.counter
    # the time before a power of two sums the most blocks
    worst = (1 << terms.length.bit_length() - 1) - 1 if isinstance(counter, TreeCounter) else terms.length
    half = 2.12 * counter.deviation(0, max(worst, 1))
    return Expected("count", half, None, half / terms.length)


def _check_types(universe: object, bins: object, name: object, *flags: object) -> None:
    """Reject arguments of a CALL that have the wrong type."""
    pair = isinstance(universe, list) and len(universe) == 2 and all(type(each) is int for each in universe)
    if universe is not None and not pair:
        raise QueryError(
            "HB530",
            "universe must be a list of two integers, the smallest and the largest.",
            "Use universe => [0, 99999].",
        )
    if bins is not None and not (isinstance(bins, list) and all(isinstance(each, str) for each in bins)):
        raise QueryError("HB530", "bins must be a list of strings.", "Use bins => ['north', 'south'].")
    if not isinstance(name, str) or not all(isinstance(flag, bool) for flag in flags):
        raise QueryError(
            "HB530",
            "name must be a string; classic and private_state must be TRUE or FALSE.",
            "Correct the type of the argument.",
        )


@dataclass(frozen=True, kw_only=True)
class StreamPurchase(PreparedAnalysis):
    """The purchase of a stream: running it samples no noise and reads no data."""

    table: Table
    terms: Terms

    def enumerated(self, model: Mapping[str, Any]) -> tuple[str, bool]:
        """Enumerate the privacy loss of released terms over a small universe."""
        loss = enumerate_loss(Terms.read(model["terms"]))
        return loss.line, loss.kept

    def run(self, run: Run) -> Published:
        """Publish the terms."""
        run.progress(1.0, "charged")
        return Published((Output("stream", "text", [self.terms.name]),), {"terms": self.terms.to_json()})


def begin(folder: Path, ledger: Path, release: Release, *, analyst: str, source: RandomSource) -> Stream:
    """Start the stream that a release paid for, or load it if it was started: at most one stream per charge.

    Theorem (One stream a charge). The noise of a charged stream is started at most once.
    Proof    Under one lock: a charge on the list loads its state or is refused. A charge that is not on the list
             creates its state, or loads the one that a crashed attempt created, and is then added to the list, durably,
             before anybody can feed the stream.
    Assumes  list and ledger are kept together: if both are lost, the ledger's anchor stops the curator.
    Tested   tests/analyses/streams/test_purchase.py::test_a_lost_state_is_never_begun_again_on_an_old_charge
             tests/analyses/streams/test_purchase.py::test_a_stream_begins_once_for_its_charge_through_kills
    """
    terms, paper = Terms.read(release.model["terms"]), release.receipt["ledger"][0]
    identity = str(paper["hash"])
    paid = {"analyst": analyst, "dataset": paper["dataset"], "charge": paper["sequence"]}
    with states.lock_stream(folder, terms.name) as path, _begun(ledger) as begun:
        if path.exists():
            begun_stream = Stream.load(path)
            if begun_stream.identity != identity:
                raise name_taken(terms.name)
        elif identity in begun:
            raise StreamError(
                "HB532",
                "The state of this stream is lost, and its charge cannot be used again.",
                "Create a new stream, at its full privacy cost.",
            )
        else:
            begun_stream = Stream.make(path, terms, source, identity=identity, paid=paid)
        begun[identity] = terms.name
    return begun_stream


def begin_paid(root: Path, ledger: Path, release: Release, *, analyst: str, source: RandomSource) -> Stream:
    """Start the stream that an analyst's release paid for, if its purchase was interrupted; idempotent."""
    name = str(release.model["terms"]["name"])
    with folders.lock_folder(root, analyst) as folder:
        entry = folders.find_stream(root, analyst, name)
        folders.check_stream_count(root, folder, analyst, name)
        begun_stream = begin(entry.folder if entry else folder, ledger, release, analyst=analyst, source=source)
        (folder / f"{name}.bought").unlink(missing_ok=True)
        return begun_stream


def end(root: Path, analyst: str, name: str) -> None:
    """End an analyst's stream: erase its state; its charge cannot start another."""
    with folders.lock_folder(root, analyst) as folder:
        note = folder / f"{name}.bought"
        if states.path_of(folder, name).exists():
            erase_stream(folder, name)  # works for a damaged state, too
        elif (entry := folders.find_stream(root, analyst, name)) is not None:
            erase_stream(entry.folder, name)
        elif not note.exists():
            raise states.missing(name)
        note.unlink(missing_ok=True)


def erase_stream(folder: Path, name: str) -> None:
    """Erase the state of a stream in a folder."""
    if not states.path_of(folder, name).exists():
        raise states.missing(name)
    with states.lock_stream(folder, name) as path:
        states.erase(path)


def name_taken(name: str) -> StreamError:
    """Return the error for a name that another stream of the analyst has."""
    return StreamError(
        "HB531", f"You already have a stream named {name}.", "Choose another name, or end the existing stream."
    )


def begun_charges(ledger: Path) -> Mapping[str, str]:
    """Return the charges that started a stream, with the streams' names."""
    with _begun(ledger) as begun:
        return dict(begun)


@contextmanager
def _begun(ledger: Path) -> Iterator[dict[str, str]]:
    """Lend the list of charges that started a stream, and save what was added to it."""
    path = ledger / "streams.json"
    with locked(ledger / "streams.lock"):
        text = path.read_text(encoding="utf-8") if path.exists() else "{}"
        begun: dict[str, str] = json.loads(text)
        yield begun
        if (now := json.dumps(begun)) != text:
            states.replace_text(path, now)
