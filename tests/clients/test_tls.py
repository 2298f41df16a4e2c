"""TLS on all ports, with the clients that people have: curl, boto3, the AWS CLI, mosquitto_pub, WebSockets, OpenSSL and our own."""

import datetime
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import boto3
import botocore.config
import paho.mqtt.client as paho
import pytest
import trustme

from conftest import ACCESS_KEY_ID, ADMIN_TOKEN, COMMAND_SECS_MAX, REGION, SECRET_ACCESS_KEY, CommandLine, within
from homeport_client import Client, Device, Unavailable
from test_mqtt import Client as MqttClient

HSTS_SECS = 3600
# Answers before and after a certificate is replaced.
ANSWERS_MIN = 20


class Certificates:
    """An authority, and the files with the server's certificate."""

    def __init__(self, directory):
        self.issuer = trustme.CA()
        self.authority, self.cert, self.key = (directory / f"{name}.pem" for name in ("authority", "cert", "key"))
        self.issuer.cert_pem.write_to_path(self.authority)

    def issue(self, *names, days=365):
        """Writes a certificate to the files that the server reads."""
        now = datetime.datetime.now(datetime.timezone.utc)
        issued = self.issuer.issue_cert(*(names or ("localhost", "127.0.0.1")), not_after=now + datetime.timedelta(days=days))
        issued.cert_chain_pems[0].write_to_path(self.cert)
        issued.private_key_pem.write_to_path(self.key)
        return issued

    def options(self, *more):
        named = ["--tls-cert", self.cert, "--tls-key", self.key, "--mqtt-tls-listen", "127.0.0.1:0"]
        return [str(option) for option in [*named, "--tls-reload-every-secs", "1", *more]]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    made = Certificates(tmp_path_factory.mktemp("certificates"))
    made.issue()
    return made


@pytest.fixture
def own_certificates(tmp_path):
    """For tests that replace them."""
    made = Certificates(tmp_path)
    made.issue()
    return made


@pytest.fixture(scope="module")
def secure(certificates, tmp_path_factory):
    """A server whose ports all speak TLS, but for the one that redirects, and MQTT on loopback."""
    from conftest import Server

    more = ["--tls-redirect-listen", "127.0.0.1:0", "--tls-hsts-max-age-secs", str(HSTS_SECS)]
    server = Server(
        tmp_path_factory.mktemp("secure"),
        ACCESS_KEY_ID,
        SECRET_ACCESS_KEY,
        options=certificates.options(*more),
        authority=str(certificates.authority),
    )
    yield server
    server.stop()


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEPORT_", "SSL_CERT_", "CURL_CA_"))}
    return kept | more


def curl(*arguments, **options):
    command = ["curl", "--silent", "--show-error", "--max-time", str(COMMAND_SECS_MAX), *(str(part) for part in arguments)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, **options)


def homeport(*arguments, **variables):
    command = [os.environ["HOMEPORT_BIN"], *(str(argument) for argument in arguments)]
    return subprocess.run(command, env=environment(**variables), capture_output=True, text=True, timeout=COMMAND_SECS_MAX)


def port_of(url):
    return urllib.parse.urlsplit(url).port


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_curl_trusts_the_authority_and_no_other(secure, certificates, version):
    trusted = curl(version, "--cacert", certificates.authority, f"{secure.url}/healthz")
    assert trusted.stdout == "ok\n", trusted
    assert curl(version, f"{secure.url}/healthz").returncode == 60


def test_plain_http_is_answered_readably(secure):
    answer = curl("--include", secure.url.replace("https://", "http://"))
    assert "400 Bad Request" in answer.stdout and "https://" in answer.stdout, answer


def test_plain_http_is_redirected(secure, certificates):
    plain = f"http://localhost:{secure.redirect_port}/healthz?a=b"
    answer = curl("--include", "--request", "POST", plain).stdout
    assert answer.startswith("HTTP/1.1 308 "), answer
    assert f"location: https://localhost:{port_of(secure.url)}/healthz?a=b\n" in answer, answer
    followed = curl("--location", "--cacert", certificates.authority, f"http://localhost:{secure.redirect_port}/healthz")
    assert followed.stdout == "ok\n", followed


def test_responses_tell_browsers_to_use_tls(secure, certificates):
    for path in ("/", "/healthz", "/v1/api-keys"):
        head = curl("--head", "--cacert", certificates.authority, secure.url + path).stdout.lower()
        assert f"strict-transport-security: max-age={HSTS_SECS}\n" in head, head


def test_session_cookie_is_secure(secure, certificates):
    sign_in = ["--include", "--cacert", certificates.authority, "--json", f'{{"token": "{ADMIN_TOKEN}"}}', f"{secure.url}/v1/session"]
    page = secure.url
    answer = curl("--header", f"Origin: {page}", *sign_in).stdout
    assert re.search(r"set-cookie: homeport_session=.*; Secure\n", answer, re.IGNORECASE), answer
    # Whoever controls the network can forge a page without TLS.
    forged = curl("--header", f"Origin: {page.replace('https', 'http')}", *sign_in).stdout
    assert "CROSS_SITE" in forged, forged


def test_boto3_works_over_tls(secure, certificates):
    def client(verify):
        return boto3.client(
            "dynamodb",
            endpoint_url=secure.endpoint,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY_ID,
            aws_secret_access_key=SECRET_ACCESS_KEY,
            verify=verify,
            config=botocore.config.Config(retries={"total_max_attempts": 1}),
        )

    assert secure.endpoint.startswith("https://")
    assert "devices" in client(str(certificates.authority)).list_tables()["TableNames"]
    with pytest.raises(botocore.exceptions.SSLError):
        client(True).list_tables()


def test_aws_command_line_works_over_tls(secure, certificates, tmp_path):
    aws = CommandLine(secure.endpoint, tmp_path, ACCESS_KEY_ID, SECRET_ACCESS_KEY)
    aws.environment["AWS_CA_BUNDLE"] = str(certificates.authority)
    assert "devices" in aws("list-tables")["TableNames"]


def make_key(server):
    return server.as_operator("POST", "/v1/api-keys", {"system": "telemetry", "all": True})["api_key"]


def test_mosquitto_pub_works_over_tls(secure, certificates):
    key = make_key(secure)
    common = ["-h", "localhost", "-p", str(secure.mqtt_tls_port), "-u", "device", "-P", key]
    publish = ["mosquitto_pub", *common, "-t", "van/v1/telemetry", "-q", "1", "-r", "-m", "hello"]
    subprocess.run([*publish, "--cafile", certificates.authority], check=True, timeout=COMMAND_SECS_MAX)
    subscribe = ["mosquitto_sub", *common, "--cafile", certificates.authority, "-t", "van/v1/telemetry", "-C", "1", "-W", "20"]
    found = subprocess.run(subscribe, check=True, capture_output=True, text=True, timeout=COMMAND_SECS_MAX)
    assert found.stdout == "hello\n"
    # The machine's own certificates do not include the authority.
    refused = subprocess.run([*publish, "--capath", "/etc/ssl/certs"], capture_output=True, timeout=COMMAND_SECS_MAX)
    assert refused.returncode != 0


def test_websockets_work_over_tls(secure, certificates):
    context = ssl.create_default_context(cafile=certificates.authority)
    client = MqttClient(port_of(secure.url), make_key(secure), "wss", paho.MQTTv5, "websockets", tls=context)
    client.subscribe("van/wss/x")
    client.publish("van/wss/x", "hello")
    assert client.take().payload == b"hello"
    client.leave()


def test_python_client_works_over_tls(secure, certificates):
    key = secure.as_operator("POST", "/v1/api-keys", {"system": "sensors", "all": True})["api_key"]
    device = Device("02:00:00:00:00:01", "1.0.16")
    assert Client(secure.url, key, ca_file=certificates.authority).register(device)
    with pytest.raises(Unavailable, match="certificate"):
        Client(secure.url, key).register(device)
    with pytest.raises(ValueError, match="https://"):
        Client("http://127.0.0.1:1", key, ca_file=certificates.authority)


def test_simulated_fleet_sends_over_tls(secure, certificates):
    fleet = ["simulate", "--url", secure.url, "--fleet", "sensors", "--sensors", "5", "--readings-per-sensor", "10"]
    sent = homeport(*fleet, SSL_CERT_FILE=str(certificates.authority), HOMEPORT_ADMIN_TOKEN=ADMIN_TOKEN)
    assert sent.returncode == 0, sent


@pytest.mark.parametrize("names", [("localhost", "127.0.0.1"), ("db.example.com",)])
def test_commands_find_a_server_with_tls(start_server, own_certificates, tmp_path, names):
    own_certificates.issue(*names)
    data_dir = tmp_path / "data"
    start_server(data_dir, options=own_certificates.options())
    # The authority is unknown to this machine, and the certificate may be for another name than the address.
    made = homeport("keys", "create", "--all", "--data-dir", data_dir, "--description", "over-tls", HOMEPORT_ADMIN_TOKEN=ADMIN_TOKEN)
    assert made.returncode == 0, made
    listed = homeport("keys", "list", "--data-dir", data_dir, HOMEPORT_ADMIN_TOKEN=ADMIN_TOKEN)
    assert "over-tls" in listed.stdout and "https://" in listed.stderr, listed
    # Another server at the same address would have another certificate.
    (data_dir / "address-certificate.der").write_bytes(b"another")
    refused = homeport("keys", "list", "--data-dir", data_dir, HOMEPORT_ADMIN_TOKEN=ADMIN_TOKEN)
    assert refused.returncode != 0 and "certificate" in refused.stderr, refused


def handshake(port, *arguments):
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_SECS_MAX)


@pytest.mark.parametrize("minimum, refused", [("1.2", "-tls1_1"), ("1.3", "-tls1_2")])
def test_older_versions_of_tls_are_refused(start_server, own_certificates, tmp_path, minimum, refused):
    server = start_server(tmp_path / "data", options=own_certificates.options("--tls-min-version", minimum))
    for port in (port_of(server.url), port_of(server.endpoint), server.mqtt_tls_port):
        assert handshake(port, "-tls1_3").returncode == 0
        assert handshake(port, refused, "-cipher", "ALL@SECLEVEL=0").returncode != 0


def expiry(server):
    found = re.search(r"^homeport_tls_certificate_expiry_timestamp_seconds (\S+)$", server.text("/metrics"), re.MULTILINE)
    return float(found.group(1)) - time.time()


class Load:
    """Requests over kept and over new connections, on all ports, which must all succeed."""

    def __init__(self, server, authority):
        self.context = ssl.create_default_context(cafile=authority)
        self.is_over = threading.Event()
        self.answers, self.failures = [], []
        mqtt = ("mqtt", server.mqtt_tls_port)
        http = ("http", port_of(server.url))
        dynamodb = ("http", port_of(server.endpoint))
        clients = [(kind, port, is_kept) for kind, port in (mqtt, http, dynamodb) for is_kept in (True, False)]
        self.threads = [threading.Thread(target=self._run, args=client) for client in clients]
        self.answered = dict.fromkeys(clients, 0)
        for thread in self.threads:
            thread.start()

    def _connect(self, port):
        return self.context.wrap_socket(socket.create_connection(("127.0.0.1", port), COMMAND_SECS_MAX), server_hostname="localhost")

    def _ask(self, kind, connection):
        if kind == "mqtt":
            # A client without credentials gets a CONNACK that refuses it.
            connection.sendall(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01a")
            assert connection.recv(4)[:2] == b"\x20\x02"
            return
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 ")

    def _run(self, kind, port, is_kept):
        try:
            connection = self._connect(port)
            while not self.is_over.is_set():
                # A refused MQTT connection ends.
                if not is_kept or kind == "mqtt":
                    connection.close()
                    connection = self._connect(port)
                self._ask(kind, connection)
                self.answered[kind, port, is_kept] += 1
            connection.close()
        except Exception as error:
            self.failures.append((kind, port, is_kept, error))

    def continues(self):
        """Waits until every client has got further answers."""
        before = dict(self.answered)
        within(lambda: self.failures or all(count >= before[client] + ANSWERS_MIN for client, count in self.answered.items()))

    def end(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join(COMMAND_SECS_MAX)
        assert not self.failures


def test_certificate_is_replaced_without_a_failed_request(start_server, own_certificates, tmp_path):
    server = start_server(tmp_path / "data", options=own_certificates.options(), authority=str(own_certificates.authority))
    assert expiry(server) < 366 * 86_400
    load = Load(server, own_certificates.authority)
    load.continues()
    for days in (400, 500):
        own_certificates.issue(days=days)
        within(lambda: expiry(server) > (days - 1) * 86_400)
        load.continues()
    load.end()
    for port in (port_of(server.url), port_of(server.endpoint), server.mqtt_tls_port):
        shown = ssl.get_server_certificate(("127.0.0.1", port))
        assert shown.split() == own_certificates.cert.read_text().split()
    listed = homeport("keys", "list", "--data-dir", tmp_path / "data", HOMEPORT_ADMIN_TOKEN=ADMIN_TOKEN)
    assert listed.returncode == 0, listed


def test_invalid_certificate_leaves_the_old_one(own_certificates, tmp_path):
    command = [os.environ["HOMEPORT_BIN"], "serve", "--data-dir", tmp_path / "data", *own_certificates.options()]
    command += ["--http-listen", "127.0.0.1:0", "--dynamodb-listen", "off", "--mqtt-listen", "off"]
    log = (tmp_path / "log").open("w+")
    process = subprocess.Popen([str(part) for part in command], env=environment(), stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        url = next(line for line in process.stdout if "listening on" in line).split()[-1]
        first = own_certificates.cert.read_text()
        half = trustme.CA().issue_cert("localhost").cert_chain_pems[0].bytes()
        own_certificates.cert.write_bytes(half[: len(half) // 2])
        lines = lambda: pathlib.Path(log.name).read_text()
        within(lambda: "the previous one stays in use" in lines())
        assert str(own_certificates.cert) in lines()
        own_certificates.cert.write_bytes(half)
        within(lambda: "does not belong to" in lines())
        shown = ssl.get_server_certificate(("127.0.0.1", port_of(url)))
        assert shown.split() == first.split()
    finally:
        process.kill()
        process.wait()


def test_server_warns_of_a_certificate_that_expires(start_server, own_certificates, tmp_path):
    own_certificates.issue(days=15)
    server = start_server(tmp_path / "data", options=own_certificates.options(), authority=str(own_certificates.authority))
    assert server.text("/readyz") == "ready\n"
    own_certificates.issue(days=13)
    within(lambda: "warning: the TLS certificate expires at" in server.text("/readyz"))
    assert server.text("/healthz").startswith("ok\nwarning: the TLS certificate expires at")
    assert 12 * 86_400 < expiry(server) < 13 * 86_400


def test_self_signed_certificate_is_kept(start_server, tmp_path):
    data_dir = tmp_path / "data"
    authority = data_dir / "tls-ca.pem"
    options = ["--tls-self-signed", "--mqtt-tls-listen", "127.0.0.1:0"]
    shown = []
    for _ in range(2):
        server = start_server(data_dir, options=options, authority=str(authority))
        for host in ("localhost", "127.0.0.1", socket.gethostname()):
            url = f"https://{host}:{port_of(server.url)}/healthz"
            resolved = ["--resolve", f"{host}:{port_of(server.url)}:127.0.0.1"]
            assert curl("--cacert", authority, *resolved, url).stdout == "ok\n", url
        # As Python 3.13 checks certificates by default.
        context = ssl.create_default_context(cafile=authority)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        client = MqttClient(server.mqtt_tls_port, make_key(server), "strict", tls=context)
        client.leave()
        shown.append((authority.read_text(), ssl.get_server_certificate(("127.0.0.1", port_of(server.url)))))
        server.stop()
    assert shown[0] == shown[1]
    for name in ("tls-ca.pem", "tls-ca-key.pem", "tls-cert.pem", "tls-key.pem"):
        assert (data_dir / name).stat().st_mode & 0o777 == 0o600, name


def test_first_try_prints_a_command_that_works(tmp_path):
    command = [os.environ["HOMEPORT_BIN"], "serve", "--data-dir", str(tmp_path / "data"), "--tls-self-signed"]
    command += ["--http-listen", "127.0.0.1:0", "--dynamodb-listen", "off", "--mqtt-listen", "off", "--mqtt-tls-listen", "off"]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        line = next(line for line in process.stdout if line.strip().startswith("curl "))
        within(lambda: "listening on" in process.stdout.readline())
        assert curl(*line.split()[1:]).stdout == "ok\n", line
    finally:
        process.kill()
        process.wait()


assert shutil.which("mosquitto_pub"), "mosquitto-clients is missing: cargo xtask test installs it as root on Debian"
