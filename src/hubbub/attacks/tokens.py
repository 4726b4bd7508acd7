"""Token attack: words replaced by keyed hashes keep their frequencies and neighbors, and can be recovered.

A log of hashed words looks opaque, but common words stay common and keep the same neighbors. With a similar text, ranks
recover the first few and neighbors the rest (Kumar, Novak, Pang and Tomkins 2007; Dwork 2011).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, AttackStudy, Progress, Score, describe_findings, no_progress, percent
from hubbub.attacks.game import flip, informed_at
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import condition, count_noises
from hubbub.core import numbers
from hubbub.errors import AttackError

_WORD = re.compile(r"[^\W\d_]{2,}")
_SEEDS = 10

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The most common tokens of a log in order, with their shares and the shares of adjacent pairs."""

    tokens: tuple[str, ...]
    shares: Floats
    pairs: Floats


def statistics(lines: Sequence[Sequence[str]], most: int) -> Statistics:
    """Count tokens and pairs of neighbors."""
    flat = np.array([token for line in lines for token in line], dtype=object)
    ends = np.cumsum([len(line) for line in lines])
    names, codes, counts = np.unique(flat, return_inverse=True, return_counts=True)
    top = np.argsort(-counts, kind="stable")[:most]
    rank = np.full(len(names), -1)
    rank[top] = np.arange(len(top))
    ranks = rank[codes]
    joined = np.ones(len(flat), dtype=bool)
    joined[ends[:-1]] = False  # no pair spans two lines
    left, right = ranks[:-1][joined[1:]], ranks[1:][joined[1:]]
    kept = (left >= 0) & (right >= 0)
    pairs = np.zeros((len(top), len(top)))
    np.add.at(pairs, (left[kept], right[kept]), 1)
    return Statistics(tuple(names[top].tolist()), counts[top] / len(flat), pairs / len(flat))


def hashed(lines: Sequence[Sequence[str]], key: bytes) -> list[list[str]]:
    """Replace every token by its keyed hash, a common way to 'anonymize' logs."""
    known = {token: blake2b(token.encode(), key=key, digest_size=8).hexdigest() for line in lines for token in line}
    return [[known[token] for token in line] for line in lines]


def by_rank(log: Statistics, reference: Statistics) -> dict[str, str]:
    """Match hashes and words by frequency rank."""
    return dict(zip(log.tokens, reference.tokens, strict=False))


def by_neighbors(log: Statistics, reference: Statistics, *, rounds: int = 15) -> dict[str, str]:
    """Match hashes to words by how often they are adjacent to tokens matched before, starting from ranks.

    Each round compares square roots of shares, which have similar errors, for the token and for its pairs with matched
    tokens. It assigns each hash the nearest free word, greedily, and uses ten more matched tokens in the next round.
    """
    size = min(len(log.tokens), len(reference.tokens))
    match = np.arange(size)
    ours, others = (np.sqrt(each.shares[:size]) for each in (log, reference))
    for turn in range(rounds):
        voters = np.arange(min(size, _SEEDS * (turn + 1)))
        mine, theirs = _beside(log.pairs, voters, size), _beside(reference.pairs, match[voters], size)
        distance = (ours[:, None] - others[None, :]) ** 2
        distance += (mine**2).sum(1)[:, None] + (theirs**2).sum(1)[None, :] - 2 * mine @ theirs.T
        match = _greedy(distance)
    return {token: reference.tokens[int(index)] for token, index in zip(log.tokens, match, strict=False)}


def _beside(pairs: Floats, voters: NDArray[np.int64], size: int) -> Floats:
    return np.sqrt(np.hstack([pairs[:size][:, voters], pairs[voters][:, :size].T]))


def _greedy(distance: Floats) -> NDArray[np.int64]:
    """Assign each row a distinct column, nearest first."""
    left = distance.copy()
    match = np.zeros(len(left), dtype=np.int64)
    for _ in range(len(left)):
        row, column = divmod(int(left.argmin()), left.shape[1])
        match[row] = column
        left[row], left[:, column] = np.inf, np.inf
    return match


def study(
    table: AttackTable | None = None,
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    column: str = "",
    most: int = 100,
    trials: int = 2000,
) -> AttackStudy:
    """Recover the words of a log in which every word was replaced by a keyed hash.

    The text is a table's text `column`, or the help pages of Python. Half of its lines are the hashed log, and the
    other half is the attacker's reference text. The `most` common hashes are guessed, by rank and by neighbors. Against
    hubbub, an attacker who knows everyone else guesses whether a person wrote the rarest word of the log.
    """
    most, trials = numbers.integer(most, "most", 2, 2000), numbers.integer(trials, "trials", 1, 10**6)
    lines = _lines(table, column)
    if len(lines) < 2 or len({token for line in lines for token in line}) < most:
        raise AttackError(
            "HB651", f"The text has fewer than {most} distinct words.", "Use a smaller number, such as --set most=20."
        )
    order = generator.permutation(len(lines))
    secret, public = ([lines[index] for index in order[start::2]] for start in (0, 1))
    key = generator.bytes(16)
    progress(0.1, "matching")
    log, reference = statistics(hashed(secret, key), most), statistics(public, most)
    truth = dict(
        zip(
            (token for line in hashed(secret, key) for token in line),
            (token for line in secret for token in line),
            strict=True,
        )
    )
    findings = []
    for name, guesses in (
        ("hashed words, by rank", by_rank(log, reference)),
        ("hashed words, by neighbors", by_neighbors(log, reference)),
    ):
        right = [guesses.get(token) == truth[token] for token in log.tokens]
        read = float(log.shares[right].sum() / log.shares.sum())
        score = Score(sum(right), len(right), 1 / most)
        findings.append(
            AttackFinding(name, None, score, None, {"share of the text": read, "words in the log": len(truth)})
        )
    writers, rare = _writers(secret)
    coins, others = flip(trials, generator), np.full(trials, 1)
    progress(0.5, "hubbub")
    plain = {"word": {"type": "text"}}
    noises = count_noises(writers, condition("word", rare), epsilons=epsilons, declared=plain)
    findings += informed_at("hubbub, everyone else known", epsilons, noises, others, coins)
    progress(1.0, "done")
    words = (
        f"Of the {len(log.tokens)} most common hashes, neighbors recovered {findings[1].score.right} words, which are "
        f"{percent(float(findings[1].facts['share of the text']))} of the text that these hide; ranks alone recovered "
        f"{findings[0].score.right}.",
        *describe_findings(findings),
    )
    return AttackStudy("tokens", "Recovering hashed words", words, tuple(findings))


def _lines(table: AttackTable | None, column: str) -> list[list[str]]:
    if table is None:
        from pydoc_data.topics import topics  # real text that ships with Python

        texts = [part for name in sorted(topics) for part in topics[name].split("\n\n")]
    else:
        text = [name for name, values in table.columns.items() if values.dtype.kind == "O"]
        if not column and not text:
            raise AttackError("HB651", f"{table.name} has no text column.", "Choose a column with --set column=…")
        texts = [str(value) for value in table.column(column or text[-1])]
    return [line for text in texts if (line := _WORD.findall(text.lower()))]


def _writers(lines: Sequence[Sequence[str]]) -> tuple[AttackTable, str]:
    """Return a table with one word per row, and the rarest word."""
    flat = np.array([token for line in lines for token in line], dtype=object)
    names, counts = np.unique(flat, return_counts=True)
    return AttackTable("log", {"word": flat}), str(names[counts.argmin()])
