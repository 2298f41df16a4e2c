"""Serves moto on a free port of 127.0.0.1, one request at a time.

moto checks a condition and then writes the item without a lock, so two requests at once can both pass the same condition.
DynamoDB's writes are atomic, and the tests of racing callers rely on that.
"""

import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

LOCK = threading.Lock()
MOTO = DomainDispatcherApplication(create_backend_app)


def one_at_a_time(environ, start_response):
    with LOCK:
        return MOTO(environ, start_response)


if __name__ == "__main__":
    # With threads, because an idle connection of a client's pool must not block the others.
    run_simple("127.0.0.1", 0, one_at_a_time, threaded=True)
