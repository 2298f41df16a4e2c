"""What DynamoDB does in its core, as tables of requests and answers.

Each file but `steps.py`, `values.py` and `test_core.py` is a table: `TABLES` to create, `SEED` to write first, `CASES` to
check one after the other. The facts are those that Parity Suite's conformance suite (tiers 1 and 2) validated on AWS; its
cases are not repeated here, but checked in our own. `HOMEPORT_CONFORMANCE_ENDPOINT` names another implementation to
check instead of ours.
"""
