"""The accounting of each kind of event: loss, Rényi curve, and privacy loss distribution, one module per kind.

`hubbub.core.events` has the facts that are stored. A new event is a class there, and a module and a line here.
"""

from collections.abc import Mapping
from typing import Any

from hubbub.accounting.events import (
    binomial,
    flips,
    gaussian,
    laplace,
    metric,
    proposal,
    response,
    selection,
    smooth,
    sparse_vector,
    threshold,
    weighted_threshold,
)
from hubbub.accounting.events.base import EventAccounting
from hubbub.core.events import (
    BinomialEvent,
    Event,
    FlipsEvent,
    GaussianEvent,
    LaplaceEvent,
    MetricEvent,
    ProposalEvent,
    ResponseEvent,
    SelectionEvent,
    SmoothEvent,
    SparseVectorEvent,
    ThresholdEvent,
    WeightedThresholdEvent,
)

ACCOUNTING: Mapping[type[Event], EventAccounting[Any]] = {
    LaplaceEvent: laplace.ACCOUNTING,
    GaussianEvent: gaussian.ACCOUNTING,
    SelectionEvent: selection.ACCOUNTING,
    ResponseEvent: response.ACCOUNTING,
    FlipsEvent: flips.ACCOUNTING,
    MetricEvent: metric.ACCOUNTING,
    SparseVectorEvent: sparse_vector.ACCOUNTING,
    ThresholdEvent: threshold.ACCOUNTING,
    WeightedThresholdEvent: weighted_threshold.ACCOUNTING,
    SmoothEvent: smooth.ACCOUNTING,
    ProposalEvent: proposal.ACCOUNTING,
    BinomialEvent: binomial.ACCOUNTING,
}
