"""The parts of a cap's δ, which are the same for all caps: see `hubbub.accounting.filters`.

Tested in tests/accounting/test_filters.py.
"""

from fractions import Fraction

#: For the failure probabilities of events.
OWN = Fraction(1, 10)
#: For the Gaussian filter, and for the failures that it counts by itself.
GAUSSIAN, ROUNDING = Fraction(79, 100), Fraction(1, 100)
#: For each of some Rényi orders.
ORDER = Fraction(2, 100)
ORDERS_USED = (Fraction(5), Fraction(11), Fraction(23), Fraction(45), Fraction(128))
