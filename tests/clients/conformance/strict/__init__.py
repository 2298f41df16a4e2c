"""The strict end of DynamoDB's behaviour as tables of cases: wording, order of checks, limits, parameters from before expressions.

The facts are AWS's own answers of 2026 as the public conformance suite (Parity Suite, tier 3) published them; texts of errors are
quoted. Requests, names and structure are ours. Where regions of the service differ, a case allows exactly the answers that were seen.
"""
