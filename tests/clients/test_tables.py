"""What `homeport tables` prints, read by the tools that it is for, without a network."""

import os
import pathlib
import subprocess

import hcl2
import pytest
from cfnlint.api import ManualArgs, lint

COMMAND_SECS_MAX = 60
# A table with everything that a schema can have, and settings that are not the defaults.
SAMPLES = pathlib.Path(__file__).parents[2] / "crates" / "homeport" / "src" / "commands" / "tables" / "expected"


def printed(form):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOMEPORT_")}
    command = [os.environ["HOMEPORT_BIN"], "tables", form]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=COMMAND_SECS_MAX
    ).stdout


def sample(name):
    return (SAMPLES / name).read_text()


@pytest.mark.parametrize("template", [lambda: printed("cloudformation"), lambda: sample("sample.json")])
def test_cloudformation_finds_no_fault(template):
    findings = lint(template(), config=ManualArgs(regions=["us-east-1", "eu-central-1"]))
    assert [str(finding) for finding in findings] == []


def test_cloudformation_would_find_a_fault():
    broken = sample("sample.json").replace('"AttributeType": "B"', '"AttributeType": "BOOL"')
    assert lint(broken, config=ManualArgs(regions=["us-east-1"]))


@pytest.mark.parametrize("text", [lambda: printed("terraform"), lambda: sample("sample.tf")])
def test_terraform_reads_every_table_with_its_keys(text):
    document = hcl2.loads(text())
    tables = {}
    for resource in document["resource"]:
        for kind, named in resource.items():
            if kind.strip('"') == "aws_dynamodb_table":
                tables.update(named)
    assert tables
    for table in tables.values():
        keys = [table.get("hash_key"), table.get("range_key")]
        for index in table.get("global_secondary_index", []) + table.get("local_secondary_index", []):
            keys += [index.get("hash_key"), index.get("range_key")]
        # Terraform refuses attributes that no key uses as much as keys without an attribute.
        declared = [attribute["name"] for attribute in table["attribute"]]
        assert sorted(declared) == sorted({key for key in keys if key is not None})
