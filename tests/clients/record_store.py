"""The record store over HTTP, as an operator uses it."""

import json
import urllib.error
import urllib.request

from conftest import ADMIN_TOKEN

TABLE = "awsh-recordstore-dev"
REQUEST_SECS_MAX = 60


class RecordStore:
    def __init__(self, server):
        self.address = server.http

    def send(self, method, path, body=None, headers=None):
        """Sends a request; its status and its body as JSON."""
        request = urllib.request.Request(
            self.address + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers=headers or {"Authorization": f"Bearer {ADMIN_TOKEN}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECS_MAX) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def __call__(self, method, path, body=None, headers=None):
        """Sends a request that must succeed; what is in the envelope."""
        status, answer = self.send(method, path, body, headers)
        assert status in (200, 201), answer
        assert set(answer) == {"status", "response"} and answer["status"] == "OK"
        return answer["response"]

    def number(self, tag, encoded):
        """The number behind an encoded id, as keys hold it."""
        return self("POST", "/v1/ids/decode", {"idtag": tag, "encoded": encoded})["id"]

    def add_group(self, **more):
        """A new group: its address and its number."""
        gid = self("POST", "/v1/groups", {"name": "home", **more})["gid"]
        return f"/v1/groups/{gid}", self.number("gid", gid)

    def add_device(self, group, **more):
        did = self("POST", f"{group}/devices", {"name": "roof", **more})["did"]
        return f"{group}/devices/{did}", self.number("did", did)

    def add_journal(self, device):
        jid = self("POST", f"{device}/journals", {"name": "outside", "data_type": "number"})["jid"]
        return f"{device}/journals/{jid}", self.number("jid", jid)

    def add_record(self, journal, value, timestamp):
        body = {"value": value, "unit": "C", "type": "temperature", "timestamp": timestamp}
        return self("POST", f"{journal}/records", body)

    def metric(self, name):
        """The value of a metric, 0 when it was never counted."""
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=REQUEST_SECS_MAX) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(f"{name} "):
                    return float(line.split()[1])
        return 0.0
