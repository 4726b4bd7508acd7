"""Errors in what analyses buy their noise for: sensitivities, norms, relations, scales, branches that are forgotten."""

from tests.campaigns.rig.bugs import BugCollection, mutate
from tests.campaigns.rig.detect_contract import look_at

ANALYSED = BugCollection("analyses", ("contract",))
#: The module, the text and what is written instead, by the name of the error.
TEXTS: dict[str, tuple[str, str, str]] = {}


def _of(name: str, module: str, old: str, new: str, *analyses: str) -> None:
    def plant() -> None:
        mutate(f"hubbub.{module}", old, new)
        look_at(*analyses)

    TEXTS[name] = (f"hubbub.{module}", old, new)
    ANALYSED.bug(name, "contract")(plant)


# --- programs ---------------------------------------------------------------------------------------------------------

_of(
    "hyperplane: one of its two counts is forgotten",
    "analyses.programs.hyperplane",
    "counts = Laplace(sensitivity=2 * moved, scale=2 * moved / told)",
    "counts = Laplace(sensitivity=moved, scale=moved / told)",
    "hyperplane",
)
_of(
    "hyperplane: the choice is bought for add/remove",
    "analyses.programs.hyperplane",
    "monotone=True, relation=inputs.relation",
    "monotone=True, relation=type(inputs.relation).ADD_REMOVE",
    "hyperplane",
)
_of(
    "hyperplane: a unit is taken for one row",
    "analyses.programs.hyperplane",
    "moved = contribution.touched * contribution.rows",
    "moved = 1",
    "hyperplane",
)
_of(
    "itemsets: the number of baskets is forgotten",
    "analyses.programs.itemsets",
    "len(inputs.names) + 1 if columns",
    "len(inputs.names) if columns",
    "frequent_itemsets",
)
_of(
    "itemsets of units: the number of baskets is forgotten",
    "analyses.programs.itemsets",
    "else len(items) + 1",
    "else len(items)",
    "frequent_itemsets",
)
_of(
    "itemsets: a row holds sets of one column less",
    "analyses.programs.itemsets",
    "comb(held, level)",
    "comb(held - 1, level)",
    "frequent_itemsets",
)
_of(
    "profile: positions in a bucket are bought as counts",
    "analyses.profile",
    "relation).l1\n",
    "relation).l1\n    moved = moved if moved < 500 else moved // 500\n",
    "profile",
)
_of(
    "profile: histograms are bought for add/remove",
    "analyses.profile",
    "_noise(part, source.relation, epsilon)",
    "_noise(part, Relation.ADD_REMOVE, epsilon)",
    "profile",
)
_of(
    "decision tree: leaves are bought for add/remove",
    "analyses.programs.tree",
    "l1 = sensitivity(RowCount(), (contribution,), inputs.relation).l1",
    "l1 = sensitivity(RowCount(), (contribution,), Relation.ADD_REMOVE).l1",
    "decision_tree",
)
_of(
    "decision tree: a replaced row moves gini once",
    "analyses.programs.tree",
    "rows * PARTS * (2 if replaced else 1)",
    "rows * PARTS",
    "decision_tree",
)
_of(
    "decision tree: a unit has the rows of one cell",
    "analyses.programs.tree",
    "rows = contribution.touched * contribution.rows",
    "rows = contribution.rows",
    "decision_tree",
)
_of(
    "decision tree: levels are not shared out",
    "analyses.programs.tree",
    "(setting.epsilon - counting) / depth",
    "setting.epsilon - counting",
    "decision_tree",
)
_of(
    "k-means: sums of one coordinate",
    "analyses.programs.kmeans",
    "NoiseRequest(of_sums(size, contribution, inputs.relation), rest",
    "NoiseRequest(of_sums(1, contribution, inputs.relation), rest",
    "kmeans",
)
_of(
    "k-means: counts are bought for add/remove",
    "analyses.programs.kmeans",
    "NoiseRequest(sensitivity(RowCount(), (contribution,), inputs.relation), counts",
    "NoiseRequest(sensitivity(RowCount(), (contribution,), type(inputs.relation).ADD_REMOVE), counts",
    "kmeans",
)
_of(
    "k-means: cells of the grid are bought for one cell",
    "analyses.programs.kmeans_grid",
    "sensitivity(RowCount(), (inputs.contribution_bounds(MAX_CELLS),), relation)",
    "sensitivity(RowCount(), (inputs.contribution_bounds(1),), type(relation).ADD_REMOVE)",
    "kmeans",
)
_of(
    "k-means: differences from centers of one dimension",
    "analyses.programs.kmeans_grid",
    "NoiseRequest(of_sums(size, contribution, relation), moves",
    "NoiseRequest(of_sums(1, contribution, relation), moves",
    "kmeans",
)
_of(
    "k-means, classic: a box of one dimension",
    "analyses.programs.kmeans",
    "of_box(size, contribution, inputs.relation)",
    "of_box(1, contribution, inputs.relation)",
    "kmeans",
)
_of(
    "logistic regression: gradients of one coordinate",
    "analyses.programs.logistic",
    "of_sums(size + 1, contribution, relation)",
    "of_sums(1, contribution, relation)",
    "logistic_regression",
)
_of(
    "logistic regression: rounds are not counted",
    "analyses.programs.logistic",
    "_ROUNDS, rounds)",
    "_ROUNDS)",
    "logistic_regression",
)
_of(
    "moments: squares are bought by half",
    "analyses.programs.moments",
    "over_cells(STEPS + 1 + (dimensions + 1) // 2",
    "over_cells((STEPS + 1) // 2",
    "moments",
)
_of(
    "moments: products of one coordinate",
    "analyses.programs.moments",
    "of_products(dimensions, contribution, relation)",
    "of_products(1, contribution, relation)",
    "moments",
    "pca",
)
_of(
    "vectors: a replaced unit counts once",
    "analyses.programs.vectors",
    "changed = relation.units_changed",
    "changed = 1",
    "linear_regression",
    "kmeans",
)
_of(
    "vectors: norms are added up where squares are",
    "analyses.programs.vectors",
    "changed**2 * contribution.touched * contribution.rows**2 * l2_squared",
    "changed * contribution.touched * contribution.rows * l2_squared",
    "moments",
)
_of(
    "programs: half of the scale is bought",
    "sql.noise_budget",
    "calibrate_noise(self.noise, each, part)",
    "calibrate_noise(self.noise, Sensitivity(each.l1 // 2, each.l2_squared), part)",
    "moments",
)
_of(
    "programs: half of the variance is bought",
    "sql.noise_budget",
    "calibrate_noise(self.noise, each, part)",
    "calibrate_noise(self.noise, Sensitivity(each.l1, each.l2_squared // 2), part)",
    "moments",
)

# --- releases ---------------------------------------------------------------------------------------------------------

_of(
    "small database: a unit is one row of the number of rows",
    "analyses.synthetic.blr",
    "sensitivity=cells.part(1).l1, epsilon=parts[1]",
    "sensitivity=1, epsilon=parts[1]",
    "small_database",
)
_of(
    "small database: a unit is one row of every score",
    "analyses.synthetic.blr",
    "sensitivity=size * cells.contribution",
    "sensitivity=size",
    "small_database",
)
_of(
    "mwem: a unit is one row of the number of rows",
    "analyses.synthetic.mwem",
    "sensitivity=cells.part(1).l1, epsilon=first",
    "sensitivity=1, epsilon=first",
    "mwem",
)
_of(
    "mwem: tables are bought as their total",
    "analyses.synthetic.mwem",
    "cells.part(prod(cells.shape[c] for c in each)).l1",
    "cells.part(1).l1",
    "mwem",
)
_of(
    "ranges: a unit is one row",
    "analyses.tables.ranges",
    "contribution=self.asked.contribution",
    "contribution=1",
    "ranges",
)
_of(
    "ranges: a replaced unit moves sums once",
    "analyses.tables.strategies",
    "2 * contribution * absolute",
    "contribution * absolute",
    "ranges",
)
_of(
    "ranges: rows of one unit add up in L2 as strangers' do",
    "analyses.tables.strategies",
    "Sensitivity(contribution * absolute, contribution**2 * squared)",
    "Sensitivity(contribution * absolute, contribution * squared)",
    "ranges",
)
_of(
    "geography: every level is bought as the total",
    "analyses.tables.geography",
    "asked.part(level.size * cells) for level",
    "asked.part(1) for level",
    "geography",
)
_of(
    "tables: every marginal is bought as the total",
    "analyses.tables.contingency",
    "moved = {each: asked.part(prod(sizes[i] for i in each))",
    "moved = {each: asked.part(1)",
    "tabulate",
)
_of(
    "marginals: a replaced unit moves sums once",
    "analyses.tables.marginals",
    "times = 1 if self.relation is Relation.ADD_REMOVE or size == 1 else 2",
    "times = 1",
    "tabulate",
    "geography",
)
_of(
    "marginals: a unit is in one cell",
    "analyses.tables.marginals",
    "own, whole = self.contribution, self.sensitivity",
    "own, whole = 1 if self.limits is None else self.limits.rows, self.sensitivity",
    "tabulate",
    "geography",
)
_of(
    "synthetic: a column is in one pair of the report",
    "analyses.synthetic.noise",
    "l1 = self.partners * self.sensitivity.l1",
    "l1 = self.sensitivity.l1",
    "synthetic",
)
_of(
    "synthetic: the report is bought for one column",
    "analyses.synthetic.noise",
    "Sensitivity(d * off, d * off**2)",
    "Sensitivity(off, off**2)",
    "synthetic",
)
_of(
    "synthetic: a unit moves a score by one",
    "analyses.synthetic.noise",
    "sensitivity=self.sensitivity.l1, monotone=False",
    "sensitivity=1, monotone=False",
    "synthetic",
)
_of(
    "synthetic: columns are bought as their total",
    "analyses.synthetic.noise",
    "calibrate_noise(self.budget.noise, each.sensitivity, part) for each",
    "calibrate_noise(self.budget.noise, each.part(1), part) for each",
    "synthetic",
)

# --- graphs, streams, own functions, queries --------------------------------------------------------------------------

_of(
    "spanning tree: more rows are taken never to raise it",
    "analyses.graphs.answers",
    'setting, edges, "tree_weight", edges.sensitivity(edges.most, one_way=False)',
    'setting, edges, "tree_weight", edges.sensitivity(edges.most, one_way=True)',
    "spanning_tree",
)
_of(
    "minimum cut: every edge weighs one step",
    "analyses.graphs.answers",
    '"min_cut", edges.sensitivity(edges.most, one_way=True)',
    '"min_cut", edges.sensitivity(1, one_way=True)',
    "min_cut",
)
_of(
    "graphs: a unit is one edge",
    "analyses.graphs.edges",
    "per_edge * self.rows * (1 if alike else 2)",
    "per_edge * (1 if alike else 2)",
    "min_cut",
    "graph_distance",
)
_of(
    "degrees: a replaced edge moves them once",
    "analyses.graphs.answers",
    "edges.sensitivity(2, one_way=bound == 1)",
    "edges.sensitivity(2, one_way=True)",
    "degree_histogram",
)
_of(
    "triangles: an edge pushes out one other",
    "analyses.graphs.answers",
    "edges.sensitivity(2 * (degree - 1), one_way=False)",
    "edges.sensitivity(degree - 1, one_way=False)",
    "triangle_count",
)
_of(
    "stars: an edge counts at one end",
    "analyses.graphs.answers",
    "edges.sensitivity(2 * comb(degree - 1, leaves - 1), one_way=True)",
    "edges.sensitivity(comb(degree - 1, leaves - 1), one_way=True)",
    "star_count",
)
_of(
    "nodes: noise covers half of what one moves",
    "analyses.graphs.node_counts",
    "totals[place] * RESOLUTION //",
    "totals[place] * 2 * RESOLUTION //",
    "triangle_count",
    "star_count",
)
_of(
    "nodes: a bound is taken for truncated without a proof",
    "analyses.graphs.node_truncation",
    "if excess <= Fraction(bound, _SHARE):",
    "if excess >= 0:",
    "triangle_count",
)
_of(
    "distance: every property is taken for monotone",
    "analyses.graphs.answers",
    "one_way=chosen.one_way",
    "one_way=True",
    "graph_distance",
)
_of(
    "streams: a replaced arrival is in one bin",
    "analyses.streams.terms",
    "changed = 2 if self.relation is Relation.REPLACE and self.bins else 1",
    "changed = 1",
    "stream",
)
_of(
    "streams: an arrival is in one level of the tree",
    "analyses.streams.terms",
    "Laplace.from_epsilon(sensitivity=levels * self.bound * changed",
    "Laplace.from_epsilon(sensitivity=self.bound * changed",
    "stream",
)
_of(
    "streams: every arrival is taken for 1 by the root",
    "analyses.streams.terms",
    "squared_norm(self.length) * self.bound**2 * changed",
    "squared_norm(self.length) * changed",
    "stream",
)
_of(
    "blocks: a mean of several numbers is bought for one",
    "analyses.functions.sample_and_aggregate",
    "sensitivity=outputs * _STEPS",
    "sensitivity=_STEPS",
    "sample_and_aggregate",
)
_of(
    "blocks: a score is taken to move by one",
    "analyses.functions.sample_and_aggregate",
    "candidates=_CANDIDATES, sensitivity=2",
    "candidates=_CANDIDATES, sensitivity=1",
    "sample_and_aggregate",
)
_of(
    "own function: half of what its owner declared",
    "analyses.functions.function",
    "steps = math.ceil(max(self.sensitivity, reach) / step)",
    "steps = math.ceil(max(self.sensitivity, reach) / step / 2)",
    "release",
)
_of(
    "queries: a replaced unit moves cells once",
    "sql.measures",
    "moved = shared * both + 2 * (touched - shared) * alone",
    "moved = touched * alone",
    "sql: SELECT k",
)
_of(
    "queries: L2 without its square",
    "sql.measures",
    "moved, square = touched * alone, touched * alone**2",
    "moved, square = touched * alone, touched * alone",
    "sql: SELECT sum",
    "sql: SELECT k",
)

# --- statistics -------------------------------------------------------------------------------------------------------

_of(
    "comparison of means: a row is taken to move half a sum",
    "analyses.statistics.means",
    "of_one_row(STEPS + 1, inputs)",
    "of_one_row(STEPS // 2, inputs)",
    "difference_of_means",
)
_of(
    "comparison of means: a replaced row moves the sums once",
    "analyses.statistics.means",
    "changed = inputs.relation.units_changed",
    "changed = 1",
    "anova",
)
_of(
    "chi-square test: the table is bought for its total",
    "analyses.statistics.chi_square",
    "each.mechanisms([asked.sensitivity], [1.0])",
    "each.mechanisms([asked.part(1)], [1.0])",
    "chi_square",
)
_of(
    "survival: a replaced unit is in one cell",
    "analyses.statistics.survival",
    "moved = strategy.sensitivity(contribution=asked.contribution, relation=asked.relation)",
    "moved = strategy.sensitivity(contribution=1, relation=type(asked.relation).ADD_REMOVE)",
    "survival",
)
_of(
    "Poisson regression: gradients of one coordinate",
    "analyses.statistics.poisson",
    "of_sums(size + 1, inputs.contribution_bounds(1), inputs.relation)",
    "of_sums(1, inputs.contribution_bounds(1), inputs.relation)",
    "poisson_regression",
)
