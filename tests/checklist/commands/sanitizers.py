"""The sanitizers of 2005 and what survives them; they are not differentially private."""

from tests.checklist.record import Figure, Place, Row

RECORDS = (
    Row(
        number=85,
        places=(Place("2005", "5"),),
        says="Each row is moved within, onto, or by Gaussian noise as wide as the radius of its t nearest neighbors.",
        lives="`hubbub sanitize --with ball`, `sphere`, `gaussian`; [crowd.md](crowd.md)",
        command="""
for noise in sphere gaussian; do
    hubbub sanitize grid.csv --columns x --bounds x=0:999 --with $noise --t 1000 --to $noise.csv
    awk -v n=$noise 'NR > 1 {s += $1; q += $1 * $1; k++} END {print n, "variance", q / k - (s / k) ^ 2}' $noise.csv
done
""",
        figures=(
            Figure(
                "variance of 0, …, 999 with sphere noise",
                r"sphere variance ([\d.e+]+)",
                (600000, 740000),
                "n²/12 + E τ² = n²(1/12 + 7/12): τ is the distance to the farthest row",
            ),
            Figure(
                "with Gaussian noise",
                r"gaussian variance ([\d.e+]+)",
                (490000, 900000),
                "the same: E‖noise‖² = τ²; sd 35,000",
            ),
        ),
    ),
    Row(
        number=86,
        places=(Place("2005", "5.1", "Theorem 2"),),
        says="The best clusters of sanitized rows have at most three times the diameter.",
        lives="`hubbub sanitize study clusters`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study clusters --seed 1",
        figures=(
            Figure("ball: widest cluster, d = 2", r"^ball: widest cluster +\S+ +([\d.]+)", (1, 3), "3 is proved"),
            Figure("sphere: widest cluster, d = 1", r"^sphere: widest cluster +([\d.]+)", (1, 3), "3 is proved"),
        ),
    ),
    Row(
        number=89,
        places=(Place("2005", "5.2", "Theorem 3"),),
        says="Mixtures of Gaussians are learned from sanitized rows by projection and single linkage.",
        lives="`hubbub sanitize study mixtures`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study mixtures --seed 1 --set separations=15 --set runs=2",
        figures=(
            Figure("exact recovery at 15 sd, Gaussian", r"^gaussian +([\d.]+%)", "100", "d = 60, k = 3"),
            Figure("ball", r"^ball +([\d.]+%)", "100", "all of them"),
        ),
    ),
    Row(
        number=90,
        places=(Place("2005", "5.2", "Lemmas 3 and 4"),),
        says="The systematic and the random error of that projection are bounded.",
        lives="`hubbub sanitize study mixtures`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study mixtures --seed 1 --set separations=20 --set runs=1",
        figures=(
            Figure("random error beyond c = 2", r"has probability ([\d.]+) >", "0.0455", "Pr[|N(0, 1)| > 2]"),
            Figure("printed bound", r"has probability \S+ > ([\d.]+);", "0.0366", "2e^(−c²)"),
            Figure("corrected bound", r"the bound is ([\d.]*\d)", "0.2707", "2e^(−c²/2)"),
        ),
    ),
    Row(
        number=91,
        places=(Place("2005", "6", "Lemma 5"),),
        says="Noise as wide as the cells of a histogram of the other half hides a row in high dimension.",
        lives="`hubbub sanitize study cross-training`, page *Lab*; [crowd.md](crowd.md)",
        command="hubbub sanitize study cross-training --seed 1 --set dimensions=10,50,200,1000 --set trials=200",
        figures=(
            Figure("factor needed, d = 10", r"^10 +([\d.]+)", (10, 10.3), "more than 9: not enough in low dimension"),
            Figure("d = 200", r"^200 +([\d.]+)", "6.0", "6.0 by simulation"),
            Figure("d = 1,000", r"^1000 +([\d.]+)", "5.7", "5.7 by simulation; below 9 (Lemma 5)"),
        ),
    ),
    Row(
        number=94,
        places=(Place("2005", "7", "changing data"),),
        says="Sanitizing again whenever data change lets the noise be averaged out.",
        lives="`hubbub sanitize study changes`, `hubbub attack rereleases`; [crowd.md](crowd.md)",
        command="""
hubbub sanitize study changes --seed 1 --set releases=1,64
hubbub attack rereleases -e 1 --seed 1
""",
        figures=(
            Figure(
                "fresh noise, 64 releases averaged",
                r"^fresh noise +\S+ +([\d.]+%)",
                (95, 100),
                "the noise shrinks by 8",
            ),
            Figure("positions kept", r"^positions kept +\S+ +([\d.]+%)", (0, 5), "nothing to average"),
            Figure("continual release", r"release, averaged: ([\d.]+%)", (40, 80), "at most 73.1; sd 1.4"),
        ),
    ),
    Row(
        number=103,
        places=(Place("2005", "7", "utility"), Place("2005", "5")),
        says="What survives sanitizing: histograms, covariance, and the validity of tests.",
        lives="`hubbub sanitize study covariance`, `tests`, `round`; [crowd.md](crowd.md)",
        command="""
hubbub sanitize study covariance --seed 1 --set sizes=200,1000 --set runs=3
hubbub sanitize study round --seed 1 --set dimensions=2,12 --set databases=2
""",
        figures=(
            Figure(
                "error of the covariance, n = 200", r"^sphere, corrected +([\d.]+)", (0.1, 0.35), "about √(d/n) = 0.22"
            ),
            Figure("n = 1,000", r"^sphere, corrected +\S+ +([\d.]+)", (0.03, 0.15), "falls with √n"),
            Figure(
                "Gaussian data, isolated, d = 12", r"^Gaussian +\S+ +([\d.]+%)", (0, 1.5), "as for the cube, about 0"
            ),
        ),
    ),
    Row(
        number=105,
        places=(Place("2005", "7", "categorical data"),),
        says="Categories need a metric before they can be sanitized.",
        lives="`hubbub sanitize`; `hubbub sanitize study categories`; [crowd.md](crowd.md)",
        command="""
hubbub sanitize health.csv --columns age,health --values health=excellent,good,fair,poor --with ball --to out.csv
cut -d, -f2 out.csv | tr -d '\\r' | sort -u | paste -sd ' '
""",
        figures=(
            Figure(
                "categories published",
                r"^(excellent fair good .*)$",
                "excellent fair good health poor",
                "those of --values, and the header",
            ),
        ),
    ),
)
