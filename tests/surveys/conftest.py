"""A questionnaire with every kind of question."""

import pytest

from hubbub.surveys.survey import TEMPLATE, Survey


@pytest.fixture
def survey() -> Survey:
    return Survey.parse(TEMPLATE)
