"""Sends every case and compares the answers."""

import pytest

from . import (
    batches,
    index_keys,
    items,
    legacy,
    limits,
    numbers,
    projections,
    reads,
    reserved_words,
    statement_functions,
    statement_grammar,
    statements,
    table_definitions,
    transactions,
    wording_of_values,
)
from .case import send

TOPICS = [
    batches,
    index_keys,
    items,
    legacy,
    limits,
    numbers,
    projections,
    reads,
    reserved_words,
    statement_functions,
    statement_grammar,
    statements,
    table_definitions,
    transactions,
    wording_of_values,
]
CASES = [
    pytest.param(case, id=f"{topic.__name__.rsplit('.', 1)[-1]}: {case.name}") for topic in TOPICS for case in topic.CASES
]


@pytest.mark.parametrize("case", CASES)
def test_answer_is_that_of_the_service(strict_endpoint, case):
    for operation, body, expected in case.steps:
        status, answer = send(strict_endpoint, operation, body)
        expected.check(status, answer)


def test_names_of_cases_are_unique():
    names = [param.id for param in CASES]
    assert len(names) == len(set(names))
