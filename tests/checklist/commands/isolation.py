"""Isolation in a crowd (2005), which is not differentially private."""

from tests.checklist.record import Figure, Place, Row

RECORDS = (
    Row(
        number=76,
        places=(Place("2005", "2", "Definition 1"),),
        says="A guess isolates a row if fewer than t rows lie within c times its distance.",
        lives="`hubbub sanitize study isolation`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study isolation --seed 1 --set values=1,2,5 --set databases=2",
        figures=(
            Figure("even crowd, d = 2", r"^even crowd \(exact\) +\S+ +([\d.]+%)", "65.4", "1 − (1 − 3^(−2))^9"),
            Figure("even crowd, d = 5", r"^even crowd \(exact\) +\S+ +\S+ +([\d.]+%)", "3.64", "1 − (1 − 3^(−5))^9"),
            Figure("published row, d = 2", r"^ball: the point itself +\S+ +([\d.]+%)", (58, 73), "as in an even crowd"),
        ),
    ),
    Row(
        number=77,
        places=(Place("2005", "4.1"),),
        says="An adversary who names a ball isolates somewhere if, and only if, one who names its center does.",
        lives="`hubbub sanitize study balls`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study balls --seed 1",
        figures=(
            Figure(
                "ball and center agree, of 500", r"for (\d+) of 500 a ball wins", "500", "equivalent, by Section 4.1"
            ),
            Figure(
                "guesses that isolate, of 500",
                r"at c = 3, (\d+) isolate",
                (270, 390),
                "65.4% in an even crowd: 327; sd 11",
            ),
        ),
    ),
    Row(
        number=78,
        places=(Place("2005", "3", "perfect sanitization"),),
        says="No useful sanitizer is perfect: some auxiliary information lets its output help an isolator.",
        lives="`hubbub sanitize study perfect`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study perfect --seed 1 --set trials=20",
        figures=(
            Figure(
                "adversary, with a histogram",
                r"^histogram +([\d.]+%)",
                "100",
                "the release is the key to the auxiliary information",
            ),
            Figure("simulator", r"^histogram +\S+ \S+ +([\d.]+%)", "0", "a padded row is uniform"),
            Figure("nothing is published", r"^nothing is published +([\d.]+%)", "0", "no key, no secret"),
        ),
    ),
    Row(
        number=79,
        places=(Place("2005", "4", "recursive histogram"),),
        says="Cells with 2t rows or more are halved in every dimension, and exact counts are published.",
        lives="`hubbub sanitize --with histogram`; [crowd.md](crowd.md)",
        command="""
hubbub sanitize health.csv --columns age,income --bounds age=0:65 --bounds income=0:30000 \\
    --with histogram --to cells.csv
awk -F, 'NR > 1 {n += $5; if ($5 + 0 > most) most = $5 + 0} END {print "rows", n, "largest cell", most}' cells.csv
""",
        figures=(
            Figure("rows", r"^rows (\d+)", "20190", "counts are exact: all rows of the file"),
            Figure("largest cell", r"largest cell (\d+)", (10, 19), "below 2t = 20"),
        ),
    ),
    Row(
        number=80,
        places=(Place("2005", "4", "Theorem 1, Proposition 2"),),
        says="On uniform data, the chance to isolate falls exponentially with the dimension.",
        lives="`hubbub sanitize study isolation`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study isolation --seed 1 --set values=2,5,12 --set databases=2",
        figures=(
            Figure(
                "center of a first cell, d = 2",
                r"^center of a first cell \(exact\) +([\d.]+%)",
                "65.4",
                "1 − (8/9)^9, exact",
            ),
            Figure(
                "d = 5",
                r"^center of a first cell \(exact\) +\S+ +([\d.]+%)",
                (3.64, 3.8),
                "3.64 in an even crowd, more at the border",
            ),
            Figure(
                "center of a recursive cell, d = 12",
                r"^histogram: cell center +\S+ +\S+ +([\d.]+%)",
                (0, 0.5),
                "2^(−Ω(d)), about 0",
            ),
        ),
    ),
    Row(
        number=81,
        places=(Place("2005", "4.2", "Lemma 1"),),
        says="A ball of too little or too much mass isolates with probability at most ε.",
        lives="`hubbub sanitize study balls`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study balls",
        figures=(
            Figure("least mass inside", r"mass over (\S+) inside", "1e-6", "ε/n at ε = 0.001, n = 1,000"),
            Figure("largest mass around", r"below (\S+) around", "0.0753", "(2t + 8·ln(1/ε))/n = 0.07526"),
        ),
    ),
    Row(
        number=82,
        places=(Place("2005", "4.2", "Lemma 2"),),
        says="Growing a ball by a constant multiplies the mass in a cell exponentially in the dimension.",
        lives="`hubbub sanitize study balls`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study balls",
        figures=(
            Figure(
                "volume ratio, d = 10", r"^10 +(\S+)", (1.69e-5, 1.8e-5), "3^(−10) = 1.69e-5, and a proven upper bound"
            ),
            Figure("c_secure at β = 1/15", r"2/β \+ 1 = (\d+)", "31", "2/β + 1"),
            Figure("c_secure at β = 1/60", r"\((\d+) for the printed β = 1/60", "121", "2/β + 1"),
        ),
    ),
    Row(
        number=83,
        places=(Place("2005", "4", "Remark 2"),),
        says="Without smooth data, histograms isolate with constant probability.",
        lives="`hubbub sanitize study smoothness`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study smoothness --seed 1 --set dimensions=4,20",
        figures=(
            Figure("isolated with the histogram, d = 20", r"^20 +([\d.]+%)", (40, 65), "does not fall with d"),
            Figure("without it", r"^20 +\S+ \S+ +([\d.]+%)", (0, 1), "halves with each dimension"),
        ),
    ),
    Row(
        number=84,
        places=(Place("2005", "4", "Remark 4"),),
        says="An adversary who knows half of the rows isolates hardly more.",
        lives="`hubbub sanitize study isolation`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study isolation --seed 1 --set values=2,12 --set databases=2",
        figures=(
            Figure(
                "half is known, d = 2",
                r"^histogram: half is known +([\d.]+%)",
                (15, 75),
                "not more than 65.4 in an even crowd, but for sampling",
            ),
            Figure("d = 12", r"^histogram: half is known +\S+ +([\d.]+%)", (0, 0.5), "about 0"),
        ),
    ),
    Row(
        number=87,
        places=(Place("2005", "5.1", "privacy"),),
        says="Two rows that hide each other, or one row among known ones, are rarely isolated in high dimension.",
        lives="`hubbub sanitize study informed`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study informed --seed 1 --set values=2,9 --set trials=100",
        figures=(
            Figure("two points, d = 2", r"^two points, distance known +([\d.]+%)", (75, 100), "few directions"),
            Figure("two points, d = 9", r"^two points, distance known +\S+ +([\d.]+%)", (0, 8), "exponentially rare"),
            Figure(
                "all but one known, d = 9", r"^all but one of 50 known +\S+ +([\d.]+%)", (0, 8), "exponentially rare"
            ),
        ),
    ),
    Row(
        number=88,
        places=(Place("2005", "5.1", "lower bound"),),
        says="A published row isolates its original with probability Ω(e^(−d)/log(n/t)).",
        lives="`hubbub sanitize study isolation`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study isolation --seed 1 --set c=4 --set values=1,2,5 --set databases=2",
        figures=(
            Figure(
                "published row, d = 1",
                r"^ball: the point itself +([\d.]+%)",
                (88, 96),
                "1 − (1 − 4^(−1))^9 = 92.5 in an even crowd",
            ),
            Figure(
                "d = 2",
                r"^ball: the point itself +\S+ +([\d.]+%)",
                (36, 52),
                "1 − (1 − 4^(−2))^9 = 44.1 in an even crowd",
            ),
            Figure(
                "d = 5",
                r"^ball: the point itself +\S+ +\S+ +([\d.]+%)",
                (0.1, 2.5),
                "0.88 in an even crowd; e^(−5)/ln(100) = 0.15 at least",
            ),
        ),
    ),
    Row(
        number=92,
        places=(Place("2005", "7", "few attributes"),),
        says="A guess in k of d attributes isolates if it is nearer by a factor φ(k) = 2^(d/k).",
        lives="`hubbub sanitize study subspace`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study subspace --seed 1 --set attributes=1,2 --set databases=20",
        figures=(
            Figure(
                "one attribute, without φ",
                r"^histogram, chosen attributes, φ = 1 +([\d.]+%)",
                (60, 100),
                "every guess is near somebody",
            ),
            Figure(
                "with φ = 2^(d/k)",
                r"^histogram, chosen attributes, φ = 2\S+ +([\d.]+%)",
                (0, 30),
                "2^12 times nearer",
            ),
        ),
    ),
    Row(
        number=101,
        places=(Place("2005", "4", "Remark 4, attributes"),),
        says="The adversary may know some attributes of a row.",
        lives="`hubbub sanitize study attributes`, `hubbub attack attributes`; [crowd.md](crowd.md)",
        command="hubbub sanitize study attributes --seed 1 --set known=0,40,90",
        figures=(
            Figure("nothing known", r"^with the histogram, c = 2 +([\d.]+%)", (0, 3), "20 dimensions hide"),
            Figure(
                "40% known, with the histogram",
                r"^with the histogram, c = 2 +\S+ +([\d.]+%)",
                (25, 60),
                "rises with the fraction known",
            ),
            Figure("40% known, without it", r"^without it, c = 2 +\S+ +([\d.]+%)", (0, 3), "less than with it"),
        ),
    ),
    Row(
        number=102,
        places=(Place("2005", "4", "Remark 4, mixtures"),),
        says="The histogram hides rows of mixtures of cubes, too.",
        lives="`hubbub sanitize study cubes`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study cubes --seed 1 --set dimensions=2,12 --set databases=2",
        figures=(
            Figure("cell center, d = 2", r"^cell center +([\d.]+%)", (25, 85), "as for one cube"),
            Figure("d = 12", r"^cell center +\S+ +([\d.]+%)", (0, 1.5), "about 0"),
        ),
    ),
)
