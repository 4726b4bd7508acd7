"""Simulated tables for the attacks, generated afresh for each study.

Tested in tests/attacks/test_studies.py.
"""

import numpy as np

from hubbub.attacks.table import AttackTable

_DIAGNOSES = np.array(["asthma", "diabetes", "fracture", "none", "sickle cell trait"], dtype=object)


def clinic(people: int, generator: np.random.Generator) -> AttackTable:
    """Simulate patients with public columns (birth year, sex, area) and a secret diagnosis."""
    areas = np.array([f"area {number:02d}" for number in range(40)], dtype=object)
    return AttackTable(
        "clinic",
        {
            "birth": generator.integers(1930, 2020, people),
            "sex": np.array(["female", "male"], dtype=object)[generator.integers(0, 2, people)],
            "area": areas[generator.integers(0, len(areas), people)],
            "diagnosis": generator.choice(_DIAGNOSES, people, p=(0.2, 0.15, 0.1, 0.45, 0.1)),
        },
    )
