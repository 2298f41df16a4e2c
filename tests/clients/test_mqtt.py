"""MQTT with the clients that people have: paho, mosquitto_pub and mosquitto_sub, over TCP, TLS and WebSockets."""

import json
import queue
import shutil
import socket
import ssl
import subprocess

import paho.mqtt.client as paho
import pytest
import trustme
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from conftest import ADMIN_TOKEN, COMMAND_SECS_MAX, Server

VERSIONS = [paho.MQTTv311, paho.MQTTv5]
WAIT_SECS_MAX = 20


class Client:
    """A paho client whose messages are waited for."""

    def __init__(self, port, key, name, version=paho.MQTTv5, transport="tcp", keep=False, tls=None, will=None):
        self.messages = queue.Queue()
        self.connected = queue.Queue()
        self.answered = queue.Queue()
        options = {} if version == paho.MQTTv5 else {"clean_session": not keep}
        self.paho = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id=name, protocol=version, transport=transport, **options
        )
        user = "admin" if key == ADMIN_TOKEN else name
        self.paho.username_pw_set(user, key)
        if transport == "websockets":
            self.paho.ws_set_options(path="/mqtt")
        if tls:
            self.paho.tls_set_context(tls)
        if will:
            self.paho.will_set(*will)
        self.paho.on_connect = lambda _c, _u, flags, reason, _p: self.connected.put((flags, reason))
        self.paho.on_disconnect = lambda _c, _u, _f, reason, _p: self.connected.put((None, reason))
        self.paho.on_message = lambda _c, _u, message: self.messages.put(message)
        self.paho.on_subscribe = lambda _c, _u, _m, reasons, _p: self.answered.put(reasons)
        properties = None
        if version == paho.MQTTv5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 3600 if keep else 0
            self.paho.connect("127.0.0.1", port, clean_start=not keep, properties=properties)
        else:
            self.paho.connect("127.0.0.1", port)
        self.paho.loop_start()
        self.flags, self.reason = self.connected.get(timeout=WAIT_SECS_MAX)
        if self.flags is None:
            self.paho.loop_stop()
            raise ConnectionError(self.reason)

    def subscribe(self, topic, qos=1):
        self.paho.subscribe(topic, qos)
        return self.answered.get(timeout=WAIT_SECS_MAX)

    def publish(self, topic, payload, qos=1, **options):
        """Publishes and waits until that is acknowledged."""
        self.paho.publish(topic, payload, qos, **options).wait_for_publish(WAIT_SECS_MAX)

    def take(self):
        return self.messages.get(timeout=WAIT_SECS_MAX)

    def leave(self):
        self.paho.disconnect()
        self.paho.loop_stop()

    def break_off(self):
        """Ends the connection as a power cut does."""
        self.paho._sock_close()
        self.paho.loop_stop()


@pytest.fixture(scope="module")
def key(server):
    return make_key(server)


def make_key(server, *things):
    body = {"system": "telemetry", "scopes": list(things), "all": not things}
    if not things:
        body["permissions"] = ["send_commands", "subscribe_fleet"]
    return server.as_operator("POST", "/v1/api-keys", body)["api_key"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1])
def test_messages_arrive(server, key, version, qos):
    subscriber = Client(server.mqtt_port, key, f"s-{version}-{qos}", version)
    subscriber.subscribe("van/+/telemetry", qos)
    publisher = Client(server.mqtt_port, key, f"p-{version}-{qos}", version)
    for number in range(20):
        publisher.publish(f"van/v{qos}/telemetry", f"{version} {number}", qos)
    assert [subscriber.take().payload.decode() for _ in range(20)] == [f"{version} {number}" for number in range(20)]
    publisher.leave()
    subscriber.leave()


@pytest.mark.parametrize("version", VERSIONS)
def test_acknowledged_messages_survive_kill_9(tmp_path, version):
    server = Server(tmp_path)
    key = make_key(server)
    subscriber = Client(server.mqtt_port, key, "subscriber", version, keep=True)
    subscriber.subscribe("van/+/commands")
    subscriber.leave()
    publisher = Client(server.mqtt_port, key, "publisher", version)
    for number in range(50):
        publisher.publish("van/v1/commands", str(number))
    publisher.publish("van/v1/status", "on", retain=True)
    server.kill()
    publisher.break_off()
    server = Server(tmp_path)
    subscriber = Client(server.mqtt_port, key, "subscriber", version, keep=True)
    assert subscriber.flags.session_present
    assert [subscriber.take().payload.decode() for _ in range(50)] == [str(number) for number in range(50)]
    subscriber.subscribe("van/+/status")
    status = subscriber.take()
    assert (status.payload, status.retain) == (b"on", True)
    subscriber.leave()
    server.stop()


def test_a_will_is_published_when_a_client_is_lost(server, key):
    watcher = Client(server.mqtt_port, key, "watcher")
    watcher.subscribe("van/lost/status")
    Client(server.mqtt_port, key, "polite", will=("van/lost/status", "polite", 1)).leave()
    Client(server.mqtt_port, key, "lost", will=("van/lost/status", "gone", 1)).break_off()
    assert watcher.take().payload == b"gone"
    watcher.leave()


def test_websockets_carry_mqtt(server, key):
    port = int(server.url.rsplit(":", 1)[1])
    for version in VERSIONS:
        client = Client(port, key, f"ws-{version}", version, transport="websockets")
        client.subscribe("van/ws/x")
        payload = "x" * 100_000
        client.publish("van/ws/x", payload)
        assert client.take().payload.decode() == payload
        client.leave()


def start_with_tls(tmp_path, authority, *more):
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    files = {name: tmp_path / f"{name}.pem" for name in ("cert", "key", "ca")}
    certificate.cert_chain_pems[0].write_to_path(files["cert"])
    certificate.private_key_pem.write_to_path(files["key"])
    authority.cert_pem.write_to_path(files["ca"])
    options = ["--mqtt-tls-listen", "127.0.0.1:0", "--mqtt-tls-cert", files["cert"], "--mqtt-tls-key", files["key"]]
    options += ["--mqtt-tls-client-ca", files["ca"], *more]
    return Server(tmp_path / "data", options=[str(option) for option in options])


def test_tls_carries_mqtt_and_asks_for_certificates(tmp_path):
    authority, strangers = trustme.CA(), trustme.CA()
    server = start_with_tls(tmp_path, authority)
    key = make_key(server)

    def context(issuer):
        made = ssl.create_default_context()
        authority.configure_trust(made)
        if issuer:
            issuer.issue_cert("device@example.org").configure_cert(made)
        return made

    client = Client(server.mqtt_tls_port, key, "tls", tls=context(authority))
    client.subscribe("van/tls/x")
    client.publish("van/tls/x", "hello")
    assert client.take().payload == b"hello"
    client.leave()
    for issuer in (None, strangers):
        # With TLS 1.3 a client learns only when it reads that its certificate is not good.
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Client(server.mqtt_tls_port, key, "refused", tls=context(issuer))
    server.stop()


def test_unfinished_tls_handshakes_are_closed(tmp_path):
    server = start_with_tls(tmp_path, trustme.CA(), "--mqtt-connect-timeout-secs", "1")
    # Nothing, and the beginning of a client's first message.
    for begun in (b"", b"\x16\x03\x01\x02\x00\x01"):
        with socket.create_connection(("127.0.0.1", server.mqtt_tls_port), timeout=WAIT_SECS_MAX) as connection:
            connection.sendall(begun)
            assert connection.recv(1) == b""
    server.stop()


def test_devices_keep_to_their_things(server):
    key = make_key(server, "v1")
    device = Client(server.mqtt_port, key, "device")
    reasons = device.subscribe([("van/v1/#", 1), ("van/v2/#", 1), ("#", 1)])
    assert [reason.is_failure for reason in reasons] == [False, True, True]
    operator = Client(server.mqtt_port, ADMIN_TOKEN, "operator")
    operator.subscribe("#")
    device.publish("van/v2/x", "denied")
    device.publish("van/v1/x", "mine")
    assert operator.take().payload == b"mine"
    device.leave()
    operator.leave()


def test_http_publishes_to_devices(server, key):
    device = Client(server.mqtt_port, key, "commanded")
    device.subscribe("van/v9/commands")
    answer = server.as_operator("POST", "/v1/topics/van/v9/commands?qos=1", {"command": "stop"})
    assert answer == {"status": "published", "topic": "van/v9/commands"}
    message = device.take()
    assert (message.qos, message.payload) == (1, b'{"command": "stop"}')
    device.leave()


def test_stopping_tells_clients(tmp_path):
    server = Server(tmp_path)
    key = make_key(server)
    client = Client(server.mqtt_port, key, "client")
    reasons = queue.Queue()
    client.paho.on_disconnect = lambda _c, _u, _f, reason, _p: reasons.put(reason)
    client.paho.reconnect_delay_set(60, 60)
    server.stop()
    assert reasons.get(timeout=WAIT_SECS_MAX).value == 0x8B
    client.break_off()


@pytest.mark.parametrize("version", ["311", "5"])
def test_mosquittos_own_clients_are_served(server, key, version):
    assert shutil.which("mosquitto_sub"), "mosquitto-clients is missing: cargo xtask test installs it as root on Debian"
    common = ["-h", "127.0.0.1", "-p", str(server.mqtt_port), "-u", "device", "-P", key, "-V", version]
    topic = f"van/mosquitto-{version}/telemetry"
    publish = ["mosquitto_pub", *common, "-t", topic, "-q", "1"]
    # Retained, so that it does not matter who is first.
    subprocess.run([*publish, "-m", "kept", "-r"], check=True, timeout=COMMAND_SECS_MAX)
    subscribe = ["mosquitto_sub", *common, "-t", topic, "-q", "1", "-C", "3", "-W", str(WAIT_SECS_MAX), "-i", f"sub-{version}"]
    subscriber = subprocess.Popen(subscribe, stdout=subprocess.PIPE, text=True)
    assert subscriber.stdout.readline() == "kept\n"
    subprocess.run([*publish, "-l"], input="one\ntwo\n", text=True, check=True, timeout=COMMAND_SECS_MAX)
    assert subscriber.communicate(timeout=COMMAND_SECS_MAX)[0] == "one\ntwo\n"
    assert subscriber.returncode == 0
    denied = subprocess.run(
        ["mosquitto_pub", "-h", "127.0.0.1", "-p", str(server.mqtt_port), "-u", "device", "-P", "wrong", "-t", topic, "-m", "x"],
        capture_output=True,
        timeout=COMMAND_SECS_MAX,
    )
    assert denied.returncode != 0


def test_what_an_alert_publishes_is_not_stored_as_telemetry(tmp_path):
    server = Server(tmp_path)
    threshold = {"attribute": "volts", "side": "below", "raise": 12, "clear": 12.5}
    definition = {"name": "Low", "source": "telemetry", "condition": {"threshold": threshold}}
    definition["targets"] = [{"mqtt": {"topic": "van/{device}/telemetry"}}]
    server.as_operator("POST", "/v1/alerts/definitions", definition)
    operator = Client(server.mqtt_port, ADMIN_TOKEN, "operator")
    operator.subscribe("van/v1/telemetry")
    operator.publish("van/v1/telemetry", '{"volts": 11}')
    assert operator.take().payload == b'{"volts": 11}'
    said = json.loads(operator.take().payload)
    assert said["type"] == "alert.raised"
    # Rules come before subscribers: what is not there now will not be.
    stored = server.as_operator("GET", "/v1/telemetry/v1")["messages"]
    assert [message["volts"] for message in stored] == [11]
    operator.leave()
    server.stop()
