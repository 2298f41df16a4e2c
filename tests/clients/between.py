"""What may stand between a client and its server: proxies and portals that answer in its place."""

import http.server
import json
import threading
import urllib.error
import urllib.request

SECS_MAX = 120


class Between:
    """What stands between client and server. `spoil` gets path and body of a request, and answers in the server's place with
    status, type and body, or lets the request pass with None."""

    def __init__(self, server, spoil):
        requests = self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append((self.path, body))
                spoiled = spoil(self.path, body)
                if spoiled is None:
                    spoiled = forward(server, self.path, body, self.headers["X-API-Key"])
                status, content_type, answer = spoiled
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._http.shutdown()
        self._http.server_close()

    def sent(self):
        """How many readings each request had."""
        return [len(json.loads(body)["readings"]) for path, body in self.requests if path.endswith("/data")]


def forward(server, path, body, key):
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    request = urllib.request.Request(server.url + path, data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=SECS_MAX) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read()


def problem(status, code="INVALID_REQUEST"):
    body = {"type": "about:blank", "title": "", "status": status, "detail": "no", "code": code, "request_id": "x"}
    return status, "application/problem+json", json.dumps(body).encode()


def page(status):
    return status, "text/html", b"<html>no</html>"
