"""The screen about Reed–Solomon codes shows what brute force over all words finds."""

from itertools import product

import pytest

from hubbub.attacks.screens import SCREENS


@pytest.mark.row(54)
@pytest.mark.parametrize(("field", "length", "dimension"), [("5", "4", "2"), ("7", "4", "1"), ("5", "3", "2")])
def test_the_screen_shows_a_distance_that_few_reads_do_not_tell(field: str, length: str, dimension: str) -> None:
    q, n, k = int(field), int(length), int(dimension)
    code = {
        tuple(sum(c * x**power for power, c in enumerate(p)) % q for x in range(n)) for p in product(range(q), repeat=k)
    }
    share = [0.0] * (n - k + 1)
    for word in product(range(q), repeat=n):
        share[min(sum(a != b for a, b in zip(word, other, strict=True)) for other in code)] += 1 / q**n
    reading = SCREENS["reed-solomon"].read({"field": field, "length": length, "dimension": dimension})
    assert "moves the answer by at most 1:" in reading.sentences[0]
    assert reading.figure is not None
    assert list(reading.figure.series[0][1]) == pytest.approx(share)
    assert [row[1:] for row in reading.rows] == [("uniform",) * 2] * k + [("tell something",) * 2] * (n - k)
