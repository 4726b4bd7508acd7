"""Mechanisms, accounting and their meaning, used outside their guarantees."""

from tests.project.error_examples.world import Example, python, without

EXAMPLES: dict[str, Example] = {
    "HB101": python('h.estimate("SELECT COUNT(*) FROM visits", epsilon=True)'),
    "HB102": python('h.estimate("SELECT COUNT(*) FROM visits", epsilon="a little")'),
    "HB103": python('h.estimate("SELECT COUNT(*) FROM visits", epsilon=0)'),
    "HB104": python('h.estimate("SELECT COUNT(*) FROM visits", epsilon="1/1001")'),
    "HB105": python("""from hubbub.core.events import from_facts

from_facts(["exponential", 1])"""),
    "HB106": python("""from fractions import Fraction
from hubbub.accounting.compose import advanced
from hubbub.core.loss import Pure

advanced(Pure(Fraction(1, 10)), count=0, delta=Fraction(1, 10**6))"""),
    "HB107": python("""from hubbub.accounting.cost import PrivacyCost

PrivacyCost.from_json(["1/10", [], "0"])"""),
    "HB108": python("""from fractions import Fraction
from hubbub.accounting.filters import Budget

Budget(Fraction(0), Fraction(0))"""),
    "HB109": python("""from fractions import Fraction
from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.filters import Budget, spent_epsilon
from hubbub.core.events import GaussianEvent

spent_epsilon(Budget(Fraction(1), Fraction(0)), privacy_cost(GaussianEvent(1, Fraction(100))))"""),
    "HB110": python("""from fractions import Fraction
from hubbub.accounting.convert import epsilon_at
from hubbub.core.loss import Zcdp

epsilon_at(Zcdp(Fraction(1, 100)), delta=Fraction(0))"""),
    "HB111": python("""from fractions import Fraction
from hubbub.accounting.gaussian import discrete_variance_for

discrete_variance_for(epsilon=Fraction(0), delta=Fraction(1, 10**30), sensitivity=10**6)"""),
    "HB150": python("""from fractions import Fraction
from hubbub.mechanisms.enumeration import renyi
from hubbub.mechanisms.laplace import Laplace

noise = Laplace.from_epsilon(sensitivity=1, epsilon=1)
renyi(noise.distribution(0), noise.distribution(1), Fraction(1))"""),
    "HB152": python("""from hubbub.mechanisms.enumeration import satisfies
from hubbub.mechanisms.laplace import Laplace

noise = Laplace.from_epsilon(sensitivity=1, epsilon=1)
satisfies(1.0, noise.distribution(0), noise.distribution(1))"""),
    "HB153": python("""from hubbub.mechanisms.enumeration import worst_over
from hubbub.mechanisms.laplace import Laplace

worst_over([], Laplace.from_epsilon(sensitivity=1, epsilon=1).distribution)"""),
    "HB154": python("""from hubbub.mechanisms.sensitivity import of_histogram

of_histogram(rows=5, relation="replace")"""),
    "HB155": python("""from fractions import Fraction
from hubbub.mechanisms.grid import FixedPointNoise

FixedPointNoise(noise="laplace", step=Fraction(1, 100))"""),
    "HB156": python("""from hubbub.core.unit import Relation
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection

noise = Laplace.from_epsilon(sensitivity=1, epsilon=1)
PartitionSelection(keys=4, contribution=2, relation=Relation.ADD_REMOVE, noise=noise, threshold=1000)"""),
    "HB157": python("""from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.top_k import TopK

TopK(k=3, one=Laplace.from_epsilon(sensitivity=1, epsilon=1))"""),
    "HB158": python("""from hubbub.mechanisms.metric import Space

Space.of([[0, 1, 5], [1, 0, 1], [5, 1, 0]])"""),
    "HB175": python("""from fractions import Fraction
from hubbub.mechanisms.laplace import Laplace
from hubbub.semantics.games import Game

Game({0: Fraction(1, 3)}, Laplace.from_epsilon(sensitivity=1, epsilon=1).distribution, lambda rows, person: 0, 1)"""),
    "HB176": python("""from fractions import Fraction
from hubbub.core.finite import exact_distribution
from hubbub.semantics.games import Game

game = Game({0: Fraction(1)}, lambda row: exact_distribution({row: Fraction(1)}), lambda rows, person: 0, 1)
game.belief(1, lambda row: row == 0)"""),
    "HB177": python("""from hubbub.mechanisms.laplace import Laplace
from hubbub.semantics.games import databases, semantic_level, with_default

noise = Laplace.from_epsilon(sensitivity=1, epsilon=1)
semantic_level(lambda rows: noise.distribution(rows[0]), databases((0, 1), people=1), with_default(0), people=1)"""),
    "HB178": python("""from fractions import Fraction
from hubbub.core.finite import exact_distribution
from hubbub.semantics.simulation import best_simulation

best_simulation([exact_distribution({0: Fraction(1)}), exact_distribution({1: Fraction(1)})])"""),
    "HB179": python("""from fractions import Fraction
from hubbub.core.finite import exact_distribution
from hubbub.semantics.simulation import informed

informed(lambda row: exact_distribution({0: Fraction(1)}), {0: Fraction(1)}, lambda row: row == 1)"""),
    "HB195": python("""from hubbub.analyses.functions.declared_sensitivity import Universe

Universe({"cost": list(range(1000))}, 5)"""),
    "HB197": python("""from hubbub.attacks.separations.parity import histogram_difference

histogram_difference(bits=20, people=20, epsilon=1.0)"""),
    "HB601": python("""from hubbub.noise.source import ReplaySource

ReplaySource([5, 7]).words(3)"""),
    "HB602": python("""from fractions import Fraction
from hubbub.accounting.convert import group, to_renyi
from hubbub.core.loss import Pure

group(to_renyi(Pure(Fraction(1))), units=2)"""),
    "HB603": without(
        "dp_accounting",
        """from fractions import Fraction
from hubbub.accounting.pld import tight_epsilon
from hubbub.core.events import LaplaceEvent

tight_epsilon([LaplaceEvent(1, Fraction(10))], delta=Fraction(1, 10**6))""",
    ),
    "HB604": python("""from fractions import Fraction
from hubbub.accounting.pld import tight_epsilon
from hubbub.core.events import LaplaceEvent

tight_epsilon([LaplaceEvent(1000, Fraction(1))], delta=Fraction(1, 10**6))"""),
    "HB605": python("""from fractions import Fraction
from hubbub.accounting.pld import tight_epsilon
from hubbub.core.events import GaussianEvent

tight_epsilon([GaussianEvent(5, Fraction(100))], delta=Fraction(1, 10**6))"""),
    "HB610": python("""from hubbub.mechanisms.laplace import Laplace

Laplace.from_epsilon(sensitivity=1, epsilon="0.000001").distribution(0)"""),
    "HB611": python("""from hubbub.core.unit import Relation
from hubbub.mechanisms.sparse_vector import SparseVector
from hubbub.noise.source import system

technique = SparseVector.from_epsilon(
    sensitivity=1, monotone=True, relation=Relation.ADD_REMOVE, hits=1, queries=2, epsilon=1
)
run = technique.start(threshold=0, source=system())
for count in (10, 20, 30):
    run.compare(count)"""),
    "HB612": python("""from hubbub.mechanisms.laplace import Laplace
from hubbub.noise.source import system

Laplace.from_epsilon(sensitivity=1, epsilon=1).sample(1.5, system())"""),
    "HB613": python("""from hubbub.mechanisms.laplace import Laplace

Laplace.from_epsilon(sensitivity=1, epsilon=1).distribution(0, (3, 3))"""),
    "HB690": without(
        "matplotlib",
        """from fractions import Fraction
from hubbub.mechanisms.enumeration import profile
from hubbub.mechanisms.laplace import Laplace

noise = Laplace.from_epsilon(sensitivity=1, epsilon=1)
profile(noise.distribution(0), noise.distribution(1), [Fraction(1)]).plot()""",
    ),
}
