"""Privacy events: which mechanisms ran on the data, with their exact parameters.

The ledger stores these facts (mechanism, sensitivity, scale) and derives privacy costs from them, so that a better
accountant can recompute the costs of an old ledger and an independent checker can verify each charge. The canonical
form of an event is a JSON object of strings, integers and booleans, so that its bytes can be hashed.
"""

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Literal

from hubbub.errors import ParameterError


@dataclass(frozen=True, slots=True)
class LaplaceEvent:
    """Two-sided geometric noise, Pr[Z = z] ∝ exp(−|z|/scale), on an integer vector of that L1 sensitivity."""

    sensitivity: int
    scale: Fraction


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Discrete Gaussian noise, Pr[Z = z] ∝ exp(−z²/(2·variance)), on an integer vector; sensitivity is L2, squared."""

    sensitivity_squared: int
    variance: Fraction


@dataclass(frozen=True, slots=True)
class SelectionEvent:
    """The selection of one candidate by integer scores, with Pr ∝ exp(rate·score) or a similar rule."""

    rule: Literal["exponential", "permute_and_flip", "noisy_max"]
    sensitivity: int
    monotone: bool
    rate: Fraction


@dataclass(frozen=True, slots=True)
class ResponseEvent:
    """Randomized response: the true one of `answers` values is kept with odds e^epsilon against each other value."""

    answers: int
    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class FlipsEvent:
    """Each bit of a vector is flipped with probability 1/(1 + e^rate); neighbors differ in at most `distance` bits."""

    distance: int
    rate: Fraction


@dataclass(frozen=True, slots=True)
class MetricEvent:
    """A point of a finite metric space with Pr[y] ∝ exp(−rate·d(f(x), y)), f moving by at most `sensitivity`."""

    sensitivity: Fraction
    rate: Fraction
    constant_normaliser: bool


@dataclass(frozen=True, slots=True)
class SparseVectorEvent:
    """The sparse vector technique: queries are compared with a noisy threshold until `hits` of them exceed it."""

    sensitivity: int
    monotone: bool
    threshold_scale: Fraction
    query_scale: Fraction
    hits: int


@dataclass(frozen=True, slots=True)
class ThresholdEvent:
    """Partition selection: keys are released where their noisy count reaches a threshold; δ follows from the fields.

    keys     maximum number of keys per privacy unit
    above    the threshold minus the maximum contribution of one unit to a key
    """

    noise: LaplaceEvent | GaussianEvent
    keys: int
    above: int


@dataclass(frozen=True, slots=True)
class WeightedThresholdEvent:
    """Partition selection by weights: keys are released where their noisy weight reaches a threshold.

    A unit gives each of its n ≤ `keys` keys the weight ⌊weight/√n⌋; δ follows from the fields.
    """

    noise: GaussianEvent
    keys: int
    weight: int
    threshold: int


@dataclass(frozen=True, slots=True)
class SmoothEvent:
    """Noise of density ∝ (1 + |z|)^−(power+1) in units of S/slide, S a smooth bound on local sensitivity."""

    power: int
    slide: Fraction
    dilation: Fraction


@dataclass(frozen=True, slots=True)
class ProposalEvent:
    """Propose-test-release: noise on an answer, released where a noisy distance (the test) reaches a margin."""

    test: LaplaceEvent
    answer: LaplaceEvent
    margin: int


@dataclass(frozen=True, slots=True)
class BinomialEvent:
    """The number of heads among `coins` fair coins, added to an integer; δ at this ε follows from the fields."""

    sensitivity: int
    coins: int
    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class Composed:
    """The composition of several events on the same data, each with its number of repetitions."""

    parts: tuple[tuple["Event", int], ...]


Event = (
    LaplaceEvent
    | GaussianEvent
    | SelectionEvent
    | ResponseEvent
    | FlipsEvent
    | MetricEvent
    | SparseVectorEvent
    | ThresholdEvent
    | WeightedThresholdEvent
    | SmoothEvent
    | ProposalEvent
    | BinomialEvent
    | Composed
)
Facts = dict[str, object]

#: The name of each event in the ledger. These names are stored and never change, even if the class is renamed.
_STORED: dict[type[Event], str] = {
    LaplaceEvent: "laplace",
    GaussianEvent: "gaussian",
    SelectionEvent: "selection",
    ResponseEvent: "response",
    FlipsEvent: "flips",
    MetricEvent: "metric",
    SparseVectorEvent: "sparsevector",
    ThresholdEvent: "threshold",
    WeightedThresholdEvent: "weightedthreshold",
    SmoothEvent: "smooth",
    ProposalEvent: "proposal",
    BinomialEvent: "binomial",
    Composed: "together",
}
_BY_STORED_NAME = {name: kind for kind, name in _STORED.items()}


def stored_name(event: Event) -> str:
    """Return the name of the mechanism as stored in ledgers and receipts.

    >>> stored_name(LaplaceEvent(sensitivity=1, scale=Fraction(10)))
    'laplace'
    """
    return _STORED[type(event)]


def to_facts(event: Event) -> Facts:
    """Return the canonical form, ready for JSON.

    >>> to_facts(LaplaceEvent(sensitivity=1, scale=Fraction(10)))
    {'mechanism': 'laplace', 'sensitivity': 1, 'scale': '10'}
    """
    facts: Facts = {"mechanism": stored_name(event)}
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(event, Composed):
            facts[field.name] = [[to_facts(part), count] for part, count in event.parts]
        elif isinstance(value, LaplaceEvent | GaussianEvent):
            facts[field.name] = to_facts(value)
        else:
            facts[field.name] = str(value) if isinstance(value, Fraction) else value
    return facts


def from_facts(facts: Facts) -> Event:
    """Parse the canonical form; reject anything that `to_facts` would not have written."""
    try:
        event = _read(facts)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, AttributeError) as error:
        raise ParameterError(
            "HB105",
            "The record does not describe a known event type.",
            "Restore the ledger from a backup: the record is corrupt.",
        ) from error
    if to_facts(event) != facts:
        raise ParameterError(
            "HB105", "The record is not in canonical form.", "Restore the ledger from a backup: the record is corrupt."
        )
    return event


def _read(facts: Facts) -> Event:
    values = dict(facts)
    kind = _BY_STORED_NAME[str(values.pop("mechanism"))]
    if kind is Composed:
        parts = values["parts"]
        if not isinstance(parts, list):
            raise TypeError("parts")
        return Composed(tuple((_read(part), int(count)) for part, count in parts))
    for field in fields(kind):
        if field.type is Fraction:
            values[field.name] = Fraction(str(values[field.name]))
        elif field.name in ("noise", "test", "answer"):
            noise = values[field.name]
            if not isinstance(noise, dict):
                raise TypeError(field.name)
            values[field.name] = _read(noise)
    return kind(**values)  # type: ignore[arg-type]
