"""Starts `homeport serve` for the tests and hands out clients that know nothing of it but its address."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import boto3
import botocore.config
import pytest

ACCESS_KEY_ID = "AKIAHOMEPORTTESTS"
SECRET_ACCESS_KEY = "a secret that only the tests know"
REGION = "us-east-1"
START_SECS_MAX = 60
STOP_SECS_MAX = 60
COMMAND_SECS_MAX = 60


class Server:
    """One server process with its own data directory; its address is read from what it prints."""

    def __init__(self, data_dir, access_key_id=None, secret_access_key=None):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HOMEPORT_")}
        command = [os.environ["HOMEPORT_BIN"], "serve", "--data-dir", str(data_dir)]
        command += ["--http-listen", "127.0.0.1:0", "--dynamodb-listen", "127.0.0.1:0"]
        if access_key_id is not None:
            command += ["--dynamodb-access-key-id", access_key_id]
            environment["HOMEPORT_DYNAMODB_SECRET_ACCESS_KEY"] = secret_access_key
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        # A server that prints nothing would leave readline waiting for ever.
        watchdog = threading.Timer(START_SECS_MAX, self.process.kill)
        watchdog.start()
        try:
            self.endpoint = self._read_address()
        finally:
            watchdog.cancel()
        # Whatever it prints later must not fill the pipe.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def _read_address(self):
        for line in self.process.stdout:
            found = re.search(r"DynamoDB's protocol on (http://\S+)", line)
            if found:
                return found.group(1)
        raise RuntimeError(f"the server ended with {self.process.wait()} before it listened")

    def stop(self):
        self.process.terminate()
        assert self.process.wait(timeout=STOP_SECS_MAX) == 0, "the server did not end well"


def client(endpoint, access_key_id="any", secret_access_key="any"):
    """A boto3 client that does not repeat failed requests, so that a test sees the first answer."""
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=access_key_id,
        aws_secret_access_key=secret_access_key,
        config=botocore.config.Config(retries={"total_max_attempts": 1}),
    )


@dataclasses.dataclass
class Outcome:
    code: int
    output: str
    error: str

    def json(self):
        return json.loads(self.output)


class CommandLine:
    """The AWS command line, without any configuration of the person who runs the tests."""

    def __init__(self, endpoint, home, access_key_id="any", secret_access_key="any"):
        self.endpoint = endpoint
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "AWS_ACCESS_KEY_ID": access_key_id,
            "AWS_SECRET_ACCESS_KEY": secret_access_key,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_PAGER": "",
            "AWS_MAX_ATTEMPTS": "1",
        }

    def run(self, *arguments):
        """Runs `aws --endpoint-url … dynamodb …` whatever its outcome."""
        program = pathlib.Path(sys.executable).parent / "aws"
        finished = subprocess.run(
            [sys.executable, str(program), "--endpoint-url", self.endpoint, "dynamodb", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECS_MAX,
        )
        return Outcome(finished.returncode, finished.stdout, finished.stderr)

    def __call__(self, *arguments):
        """Runs a command that must succeed; its answer."""
        outcome = self.run(*arguments)
        assert outcome.code == 0, outcome.error
        return outcome.json() if outcome.output.strip() else None


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("open"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def guarded_server(tmp_path_factory):
    """A server that wants every request signed with the one key it knows."""
    server = Server(tmp_path_factory.mktemp("guarded"), ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def dynamodb(server):
    return client(server.endpoint)


@pytest.fixture(scope="session")
def aws(server, tmp_path_factory):
    return CommandLine(server.endpoint, tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def guarded_aws(guarded_server, tmp_path_factory):
    """Makes command lines that talk to the guarded server with the given key."""

    def make(access_key_id=ACCESS_KEY_ID, secret_access_key=SECRET_ACCESS_KEY):
        return CommandLine(guarded_server.endpoint, tmp_path_factory.mktemp("home"), access_key_id, secret_access_key)

    return make
