"""Commands that reach a server over TLS, as one behind a proxy is reached."""

import os
import socket
import ssl
import subprocess
import threading
import urllib.parse

import pytest
import trustme

COMMAND_SECS_MAX = 120


class TlsProxy:
    """Ends TLS and hands the bytes on to a server."""

    def __init__(self, certificate, target):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        self.context, self.target = context, target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                accepted, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(accepted,), daemon=True).start()

    def _carry(self, accepted):
        try:
            inside = self.context.wrap_socket(accepted, server_side=True)
        except OSError:
            return
        outside = socket.create_connection(self.target)
        threading.Thread(target=self._copy, args=(outside, inside), daemon=True).start()
        self._copy(inside, outside)

    @staticmethod
    def _copy(source, target):
        try:
            while part := source.recv(64 * 1024):
                target.sendall(part)
        except OSError:
            pass
        for side in (source, target):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


@pytest.fixture
def server(start_server, tmp_path):
    """Of its own: others leave keys that cannot be listed."""
    return start_server(tmp_path / "data")


@pytest.fixture
def behind_tls(server, tmp_path):
    authority = trustme.CA()
    roots = tmp_path / "roots.pem"
    authority.cert_pem.write_to_path(roots)
    address = urllib.parse.urlsplit(server.url)
    proxy = TlsProxy(authority.issue_cert("127.0.0.1"), (address.hostname, address.port))
    yield proxy.url, roots
    proxy.close()


def run(server, roots, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HOMEPORT_", "SSL_CERT_"))}
    environment |= {"HOMEPORT_ADMIN_TOKEN": server.admin_token, "SSL_CERT_FILE": str(roots)}
    command = [os.environ["HOMEPORT_BIN"], *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=COMMAND_SECS_MAX)


def test_keys_are_made_and_listed_over_tls(server, behind_tls):
    url, roots = behind_tls
    made = run(server, roots, "keys", "create", "--all", "--url", url, "--description", "over-tls")
    assert made.returncode == 0, made.stderr
    listed = run(server, roots, "keys", "list", "--url", url)
    assert "over-tls" in listed.stdout, listed


def test_a_simulated_fleet_sends_over_tls(server, behind_tls):
    url, roots = behind_tls
    sent = run(server, roots, "simulate", "--url", url, "--fleet", "sensors", "--sensors", "5", "--readings-per-sensor", "10")
    assert sent.returncode == 0, sent


def test_a_certificate_of_a_stranger_is_refused(server, behind_tls, tmp_path):
    url, _ = behind_tls
    stranger = tmp_path / "stranger.pem"
    trustme.CA().cert_pem.write_to_path(stranger)
    refused = run(server, stranger, "keys", "list", "--url", url)
    assert refused.returncode != 0
    assert "certificate" in refused.stderr, refused
