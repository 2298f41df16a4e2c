"""The bridge to an existing broker over TLS: Mosquitto asks for a certificate, and the server shows one."""

import shutil
import socket
import subprocess
import time
import urllib.error

import pytest
import trustme

from conftest import COMMAND_SECS_MAX, Server

WAIT_SECS_MAX = 30


def wait_until(holds):
    deadline = time.monotonic() + WAIT_SECS_MAX
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return False


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def broker(tmp_path):
    """Mosquitto with TLS, which takes nobody without a certificate of its authority."""
    authority = trustme.CA()
    files = {name: tmp_path / f"{name}.pem" for name in ("ca", "cert", "key", "client-cert", "client-key")}
    authority.cert_pem.write_to_path(files["ca"])
    for prefix, name in (("", "localhost"), ("client-", "homeport@example.org")):
        certificate = authority.issue_cert(name)
        certificate.cert_chain_pems[0].write_to_path(files[f"{prefix}cert"])
        certificate.private_key_pem.write_to_path(files[f"{prefix}key"])
    port = free_port()
    config = tmp_path / "mosquitto.conf"
    config.write_text(
        f"user root\nlistener {port} 127.0.0.1\nallow_anonymous true\nrequire_certificate true\n"
        f"cafile {files['ca']}\ncertfile {files['cert']}\nkeyfile {files['key']}\n"
    )
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin") or "mosquitto"
    process = subprocess.Popen([program, "-c", str(config)])
    try:
        assert wait_until(lambda: is_listening(port))
        yield port, files
    finally:
        process.kill()
        process.wait()


def options(port, files, *more):
    named = ["--bridge-url", f"mqtts://localhost:{port}", "--bridge-filters", "van/+/telemetry"]
    return [str(option) for option in [*named, "--bridge-tls-ca", files["ca"], "--bridge-required", "true", *more]]


def problem(server):
    """Why the server is not ready; nothing when it is."""
    try:
        server.call_for_nothing("GET", "/readyz")
        return None
    except urllib.error.HTTPError as error:
        return error.read().decode()


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_what_a_broker_has_comes_over_tls(tmp_path, broker, protocol):
    port, files = broker
    shown = ["--bridge-tls-cert", files["client-cert"], "--bridge-tls-key", files["client-key"]]
    server = Server(tmp_path / "data", options=options(port, files, *shown, "--bridge-protocol", protocol))
    assert wait_until(lambda: problem(server) is None)
    publish = ["mosquitto_pub", "-h", "localhost", "-p", str(port), "-q", "1", "-t", "van/v1/telemetry"]
    publish += ["--cafile", files["ca"], "--cert", files["client-cert"], "--key", files["client-key"]]
    subprocess.run([*map(str, publish), "-m", '{"speed": 50}'], check=True, timeout=COMMAND_SECS_MAX)
    found = lambda: server.as_operator("GET", "/v1/telemetry/v1")["messages"]
    assert wait_until(lambda: len(found()) == 1)
    message = found()[0]
    assert (message["thing_name"], message["message_type"], message["speed"]) == ("v1", "telemetry", 50)
    server.stop()


def test_without_a_certificate_nothing_is_taken(tmp_path, broker):
    port, files = broker
    server = Server(tmp_path / "data", options=options(port, files))
    # With TLS 1.3 a client learns only when it reads that it should have shown a certificate.
    assert wait_until(lambda: "ertificate" in (problem(server) or "")), problem(server)
    server.stop()
