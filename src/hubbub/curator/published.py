"""The stored form of what an analysis published, with what its receipt says beyond the plan.

Tested in tests/curator/test_path.py and tests/curator/test_reuse.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hubbub.analyses.base import Published
from hubbub.core.schema import Table
from hubbub.curator import receipt as receipts
from hubbub.curator.replay import declared_hash


def encode_published(
    published: Published, paper: Mapping[str, Any], tables: Sequence[Table], versions: Mapping[str, str]
) -> bytes:
    """Encode the answer with its receipt."""
    ratio = published.ratio
    if published.left_out is not None:
        paper = {**paper, "left_out": published.left_out.to_json()}
    if published.rows is not None:
        paper = {**paper, "rows": published.rows}
    if published.measured is not None:
        paper = {**paper, "measured": {**published.measured, **data_facts(tables, versions)}}
    if ratio is None:
        ratio = [None] * (len(published.outputs[0].values) if published.outputs else 0)
    return receipts.encode(published.outputs, ratio, paper, published.model)


def data_facts(tables: Sequence[Table], versions: Mapping[str, str]) -> dict[str, Any]:
    """Give what the meaning of sums depends on besides the query; private versions are elsewhere in the receipt."""
    public = {table.name: versions[table.name] for table in tables if table.unit is None}
    return {"tables": declared_hash(tables), "public": public}
