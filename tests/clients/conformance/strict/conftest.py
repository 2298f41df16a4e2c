"""The server that the cases are sent to: Homeport, or the address in CONFORMANCE_ENDPOINT to compare another implementation."""

import os

import pytest

from .case import send
from .tables import TABLES


@pytest.fixture(scope="session")
def strict_endpoint(request):
    endpoint = os.environ.get("CONFORMANCE_ENDPOINT") or request.getfixturevalue("server").endpoint
    for table in TABLES:
        send(endpoint, "DeleteTable", {"TableName": table["TableName"]})
        status, answer = send(endpoint, "CreateTable", table)
        assert status == 200, answer
    return endpoint
