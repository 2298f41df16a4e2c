"""Runs the tables of cases against a server process of the tests, or against the endpoint that the environment names."""

import importlib
import os

import pytest

from .steps import Refusal, Server

NAMES = (
    "batches",
    "capacity",
    "conditions",
    "indexes",
    "indexes_of_several",
    "projections",
    "queries",
    "scans",
    "statements",
    "statements_in_batches",
    "statements_on_indexes",
    "statements_returning",
    "statements_that_filter",
    "table_settings",
    "streams",
    "tables_changed",
    "tables_created",
    "transactions",
    "updates",
    "values_stored",
)
FILES = [importlib.import_module(f".{name}", __package__) for name in NAMES]


def parameters():
    found = []
    for name, file in zip(NAMES, FILES):
        for case in file.CASES:
            found.append(pytest.param(file, case, id=f"{name}: {case.claim}"))
    return found


@pytest.fixture(scope="module")
def endpoint(request):
    other = os.environ.get("HOMEPORT_CONFORMANCE_ENDPOINT")
    return other or request.getfixturevalue("server").endpoint


@pytest.fixture(scope="module")
def prepared(endpoint):
    """Prepares a file's tables once, and deletes all of them at the end."""
    server, files = Server(endpoint), []

    def prepare(file):
        if file in files:
            return
        files.append(file)
        for body in file.TABLES:
            remove(server, body["TableName"])
            server.send("CreateTable", body)
        for operation, body in file.SEED:
            server.send(operation, body)

    yield prepare
    for file in files:
        for body in file.TABLES:
            remove(server, body["TableName"])


def remove(server, name):
    try:
        server.send("DeleteTable", {"TableName": name})
    except Refusal as refusal:
        assert refusal.kind == "ResourceNotFoundException", str(refusal)


@pytest.mark.parametrize(("file", "case"), parameters())
def test_core(endpoint, prepared, file, case):
    prepared(file)
    server = Server(endpoint)
    for step in case.steps:
        step.run(server)
