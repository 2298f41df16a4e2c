"""Starts `homeport serve` for the tests and hands out clients that know nothing of it but its address."""

import dataclasses
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

import boto3
import botocore.config
import pytest

CLIENTS = pathlib.Path(__file__).parents[2] / "clients"
sys.path.insert(0, str(CLIENTS / "python" / "src"))

ACCESS_KEY_ID = "AKIAHOMEPORTTESTS"
SECRET_ACCESS_KEY = "a secret that only the tests know"
REGION = "us-east-1"
ADMIN_TOKEN = "admin-token-of-the-tests"
START_SECS_MAX = 60
STOP_SECS_MAX = 60
COMMAND_SECS_MAX = 60
WAIT_SECS_MAX = 120


class Server:
    """One server process with its own data directory; its addresses are read from what it prints."""

    def __init__(self, data_dir, access_key_id=None, secret_access_key=None, http_port=0, options=(), authority=None):
        # The file with the certificate to trust; a self-signed server creates it at its first start.
        self.authority = authority
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HOMEPORT_")}
        command = [os.environ["HOMEPORT_BIN"], "serve", "--data-dir", str(data_dir)]
        command += ["--http-listen", f"127.0.0.1:{http_port}", "--dynamodb-listen", "127.0.0.1:0"]
        command += ["--mqtt-listen", "127.0.0.1:0", *options]
        environment["HOMEPORT_ADMIN_TOKEN"] = ADMIN_TOKEN
        # A failing test prints what its server logged: what went wrong, and not every request.
        environment["HOMEPORT_LOG"] = "warn"
        if access_key_id is not None:
            command += ["--dynamodb-access-key-id", access_key_id]
            environment["HOMEPORT_DYNAMODB_SECRET_ACCESS_KEY"] = secret_access_key
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        # A server that prints nothing would leave readline waiting for ever.
        watchdog = threading.Timer(START_SECS_MAX, self.process.kill)
        watchdog.start()
        try:
            self.endpoint = self._read_address("DynamoDB's protocol")
            self.mqtt_port = self._read_port("MQTT on mqtt")
            self.mqtt_tls_port = None
            if "--mqtt-tls-listen" in options:
                self.mqtt_tls_port = self._read_port("MQTT with TLS on mqtts")
            self.redirect_port = None
            if "--tls-redirect-listen" in options:
                self.redirect_port = self._read_port("redirects from http")
            self.url = self._read_address("listening")
            self.http = self.url
            self.admin_token = ADMIN_TOKEN
        finally:
            watchdog.cancel()
        # Whatever it prints later must not fill the pipe.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def _read_address(self, what):
        for line in self.process.stdout:
            found = re.search(rf"{what} on (https?://\S+)", line)
            if found:
                return found.group(1)
        raise RuntimeError(f"the server ended with {self.process.wait()} before it listened")

    def _read_port(self, what):
        for line in self.process.stdout:
            found = re.search(rf"{what}://\S+:(\d+)", line)
            if found:
                return int(found.group(1))
        raise RuntimeError(f"the server ended with {self.process.wait()} before it listened")

    def as_operator(self, method, path, body=None):
        """The JSON that an operator gets for a request over HTTP."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
        )
        with self._open(request) as response:
            return json.load(response)

    def _open(self, request):
        context = ssl.create_default_context(cafile=self.authority) if self.authority else None
        return urllib.request.urlopen(request, timeout=COMMAND_SECS_MAX, context=context)

    def text(self, path):
        """The text of a response that needs no credentials."""
        with self._open(self.url + path) as response:
            return response.read().decode()

    def call_for_nothing(self, method, path):
        """Asks for something, as the operator, whose answer has no body."""
        headers = {"Authorization": f"Bearer {self.admin_token}"}
        request = urllib.request.Request(self.url + path, headers=headers, method=method)
        self._open(request).close()

    def make_key(self):
        return self.as_operator("POST", "/v1/api-keys", {"description": "tests", "all": True})["api_key"]

    def readings(self, hardware_id):
        """All readings of a sensor, page by page, the oldest first."""
        readings, cursor = [], ""
        while True:
            path = f"/v1/sensors/devices/{hardware_id}/readings?order=asc&limit=1000{cursor}"
            page = self.as_operator("GET", path)
            readings += page["readings"]
            if "next_cursor" not in page:
                return readings
            cursor = f"&cursor={page['next_cursor']}"

    def kill(self):
        """Ends it at once, if it still runs."""
        self.process.kill()
        self.process.wait(timeout=STOP_SECS_MAX)

    def call(self, method, path, body=None, key=None):
        """Calls the HTTP interface as the device with this key, or as the operator; the answer."""
        headers = {"X-API-Key": key} if key else {"Authorization": f"Bearer {self.admin_token}"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.http + path, data=data, headers=headers, method=method)
        with self._open(request) as answer:
            return json.load(answer)

    def stop(self):
        self.process.terminate()
        try:
            assert self.process.wait(timeout=STOP_SECS_MAX) == 0, "the server did not end well"
        finally:
            self.kill()


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

    def run(self, *arguments, service="dynamodb"):
        """Runs `aws --endpoint-url … dynamodb …` whatever its outcome."""
        program = pathlib.Path(sys.executable).parent / "aws"
        finished = subprocess.run(
            [sys.executable, str(program), "--endpoint-url", self.endpoint, service, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECS_MAX,
        )
        return Outcome(finished.returncode, finished.stdout, finished.stderr)

    def __call__(self, *arguments, service="dynamodb"):
        """Runs a command that must succeed; its answer."""
        outcome = self.run(*arguments, service=service)
        assert outcome.code == 0, outcome.error
        return outcome.json() if outcome.output.strip() else None


def within(look):
    """What `look` finds, once it finds something."""
    deadline = time.monotonic() + WAIT_SECS_MAX
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.005)
    raise TimeoutError("waited in vain")


def free_port():
    """A port that a server can keep over restarts. It lies below those that the system gives to outgoing connections."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no port is free")


@pytest.fixture
def start_server():
    """Starts servers of the test's own. None outlives it, however it ends."""
    started = []

    def start(*arguments, **options):
        started.append(Server(*arguments, **options))
        return started[-1]

    yield start
    for server in started:
        server.kill()


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
