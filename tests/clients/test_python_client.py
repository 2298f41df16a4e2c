"""The Python client against a server process: what was added arrives once, whatever is killed in between."""

import json
import pathlib
import random
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from between import Between, page, problem
from conftest import CLIENTS, free_port
import homeport_client
from homeport_client import (
    Buffer,
    BufferFull,
    Capabilities,
    Client,
    Device,
    Refused,
    Reading,
    RetryPolicy,
    Sender,
    Unavailable,
    WhenFull,
)

# Recent enough to be kept.
START_MS = time.time_ns() // 1_000_000 - 30 * 24 * 3600 * 1000
WINDOW_MS = 300_000
SECS_MAX = 120


class LosesAnswers(Client):
    """The server gets every request; every other answer does not come back."""

    requests = 0

    def send(self, bodies):
        answer = super().send(bodies)
        self.requests += 1
        if self.requests % 2 == 1:
            raise Unavailable("the connection broke")
        return answer


def make_device(number):
    hardware_id = f"02:00:00:00:00:{number:02X}"
    return Device(hardware_id, "1.0.16", capabilities=Capabilities(["bme280"], {"offline_buffering": True}))


def make_reading(device, window):
    start_ms = START_MS + window * WINDOW_MS
    return device.reading(start_ms, start_ms + WINDOW_MS, {"bme280_temp_c": 20 + window / 100}, {"bme280": "ok"})


def ids(readings):
    return [reading["batch_id"] for reading in readings]


def waiting(buffer):
    return [reading.batch_id for reading in buffer.oldest(1000)]


def test_readings_arrive_in_batches_and_leave_the_buffer(server, tmp_path):
    device = make_device(1)
    with Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(server.url, server.make_key()), buffer, device)
        added = [make_reading(device, window) for window in range(250)]
        for reading in added:
            sender.add(reading)
        assert sender.flush() == 250
        assert len(buffer) == 0
    stored = server.readings(device.hardware_id)
    assert ids(stored) == [reading.batch_id for reading in added]
    assert stored[7]["sensors"] == {"bme280_temp_c": 20.07}
    shown = server.as_operator("GET", f"/v1/sensors/devices/{device.hardware_id}")
    assert shown["last_boot_id"] == device.boot_id
    assert shown["capabilities"]["features"] == {"offline_buffering": True}


def test_readings_whose_answers_got_lost_are_sent_again_and_stored_once(server, tmp_path):
    device = make_device(2)
    with Buffer(tmp_path / "buffer.db") as buffer:
        client = LosesAnswers(server.url, server.make_key())
        sender = Sender(client, buffer, device, batch=10)
        for window in range(50):
            sender.add(make_reading(device, window))
        failures = 0
        for _ in range(20):
            try:
                sender.flush()
            except Unavailable:
                failures += 1
        assert len(buffer) == 0
        assert failures == 5
    stored = ids(server.readings(device.hardware_id))
    assert len(stored) == 50 and len(set(stored)) == 50


def test_what_the_server_rejects_goes_to_the_dead_letters_and_stops_nothing(server, tmp_path):
    device, other = make_device(3), make_device(4)
    key = server.make_key()
    with Buffer(tmp_path / "other.db") as buffer:
        sender = Sender(Client(server.url, key), buffer, other)
        sender.add(make_reading(other, 0))
        sender.flush()
        claimed = ids(server.readings(other.hardware_id))[0]
    with Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(server.url, key), buffer, device)
        good = make_reading(device, 1)
        stolen = type(good)(**{**vars(make_reading(device, 0)), "batch_id": claimed})
        sender.add(stolen)
        sender.add(good)
        assert sender.flush() == 1
        assert len(buffer) == 0
        (letter,) = buffer.dead_letters()
        assert (letter.batch_id, letter.code) == (claimed, "BATCH_ID_CONFLICT")
        assert json.loads(letter.body)["hardware_id"] == device.hardware_id
    with Buffer(tmp_path / "buffer.db") as buffer:
        assert len(buffer.dead_letters()) == 1, "kept over a restart"
        buffer.clear_dead_letters()
        assert buffer.dead_letters() == []
    assert ids(server.readings(device.hardware_id)) == [good.batch_id]


def test_a_wrong_key_is_told_and_nothing_is_lost(server, tmp_path):
    device = make_device(5)
    with Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(server.url, "0" * 64), buffer, device)
        sender.add(make_reading(device, 0))
        with pytest.raises(Refused) as caught:
            sender.flush()
        assert (caught.value.status, caught.value.code) == (401, "KEY_INVALID")
        assert len(buffer) == 1


def test_a_server_that_goes_and_comes_back_gets_everything_once(start_server, tmp_path):
    device = make_device(6)
    port = free_port()
    server = start_server(tmp_path / "data", http_port=port)
    key = server.make_key()
    failed, stop = threading.Event(), threading.Event()
    buffer = Buffer(tmp_path / "buffer.db")
    retry = RetryPolicy(first_secs=0.01, longest_secs=0.1)
    sender = Sender(Client(server.url, key), buffer, device, batch=7, retry=retry)
    runner = threading.Thread(target=sender.run, args=(stop, 0.01, lambda _: failed.set()))
    runner.start()
    try:
        for window in range(200):
            sender.add(make_reading(device, window))
            if window in (50, 100, 150):
                server.kill()
                failed.clear()
                assert failed.wait(SECS_MAX), "the sender noticed nothing"
                server = start_server(tmp_path / "data", http_port=port)
        wait_until_empty(buffer)
    finally:
        stop.set()
        runner.join(SECS_MAX)
        buffer.close()
    stored = ids(server.readings(device.hardware_id))
    server.stop()
    assert len(stored) == 200 and len(set(stored)) == 200


def wait_until_empty(buffer):
    ticks = threading.Event()
    for _ in range(SECS_MAX * 100):
        if len(buffer) == 0:
            return
        ticks.wait(0.01)
    raise AssertionError(f"{len(buffer)} readings are still there")


ADDING = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from homeport_client import Buffer, Client, Device, Sender

url, key, path, first = sys.argv[2:6]
device = Device("02:00:00:00:00:07", "1.0.16")
sender = Sender(Client(url, key), Buffer(path), device, batch=3)
threading.Thread(target=sender.run, args=(threading.Event(), 0.001), daemon=True).start()
for window in range(int(first), int(first) + 100_000):
    start_ms = {start_ms} + window * 1000
    reading = device.reading(start_ms, start_ms + 1000, {{"t": window}})
    sender.add(reading)
    print(reading.batch_id, flush=True)
""".format(start_ms=START_MS)


def test_a_client_that_is_killed_loses_nothing_that_it_had_added(server, tmp_path):
    key = server.make_key()
    path = tmp_path / "buffer.db"
    chance = random.Random(7)
    added = []
    for round_number in range(6):
        client = subprocess.Popen(
            [sys.executable, "-c", ADDING, str(CLIENTS / "python" / "src"), server.url, key, str(path), str(round_number * 1000)],
            stdout=subprocess.PIPE,
            text=True,
        )
        watchdog = threading.Timer(SECS_MAX, client.kill)
        watchdog.start()
        for _ in range(chance.randrange(20, 60)):
            added.append(client.stdout.readline().strip())
        client.kill()
        # What it printed before it died was added before it died.
        added += client.stdout.read().split("\n")[:-1]
        client.wait(timeout=SECS_MAX)
        watchdog.cancel()
    with Buffer(path) as buffer:
        left = len(buffer)
        Sender(Client(server.url, key), buffer, make_device(7)).flush()
        assert len(buffer) == 0
    stored = ids(server.readings("02:00:00:00:00:07"))
    assert len(stored) == len(set(stored))
    assert set(added) <= set(stored)
    assert len(stored) > left, "the client sent nothing by itself"


def test_the_servers_wish_to_be_left_alone_is_kept_to(start_server, tmp_path):
    server = start_server(tmp_path / "data", options=("--rate-per-second", "1"))
    device = make_device(8)
    with Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(server.url, server.make_key()), buffer, device, batch=1)
        for window in range(20):
            sender.add(make_reading(device, window))
        with pytest.raises(Unavailable) as caught:
            for _ in range(20):
                sender.flush()
    server.stop()
    assert caught.value.retry_after_secs == 1
    assert RetryPolicy(first_secs=0.01).failed(caught.value.retry_after_secs) >= 1


def test_waits_grow_to_a_limit_and_begin_anew_after_a_success():
    policy = RetryPolicy(first_secs=1, longest_secs=60, random=random.Random(1))
    waits = [policy.failed() for _ in range(2000)]
    assert 0.5 <= waits[0] <= 1 and 30 <= waits[-1] <= 60
    assert max(waits) <= 60
    policy.succeeded()
    assert policy.failed() <= 1
    assert policy.failed(1e9) <= 3602


def test_a_full_buffer_refuses_or_drops_the_oldest_as_it_was_told(tmp_path):
    device = make_device(9)
    readings = [make_reading(device, window) for window in range(6)]
    with Buffer(tmp_path / "refuse.db", readings_max=3) as buffer:
        for reading in readings[:3]:
            buffer.add(reading)
        buffer.add(readings[0])
        with pytest.raises(BufferFull):
            buffer.add(readings[3])
        assert waiting(buffer) == [reading.batch_id for reading in readings[:3]]
        assert buffer.dropped == 0
    with Buffer(tmp_path / "drop.db", readings_max=3, when_full=WhenFull.DROP_OLDEST) as buffer:
        for reading in readings:
            buffer.add(reading)
        assert waiting(buffer) == [reading.batch_id for reading in readings[3:]]
        assert buffer.dropped == 3


def test_a_write_that_was_cut_off_leaves_the_buffer_as_it_was(tmp_path):
    """The files as a power cut leaves them: the database is half overwritten, its journal is still there."""
    device = make_device(10)
    path = tmp_path / "buffer.db"
    with Buffer(path) as buffer:
        kept = make_reading(device, 0)
        buffer.add(kept)
        whole = path.read_bytes()
        cut = tmp_path / "cut.db"
        buffer._db.execute("PRAGMA cache_size = 1")
        buffer._db.execute("BEGIN IMMEDIATE")
        for window in range(1, 2000):
            # A cache of one page makes SQLite write to the database before the commit.
            buffer._db.execute(
                "INSERT INTO readings (batch_id, body) VALUES (?, ?)", (f"{window}", "x" * 1000)
            )
        cut.write_bytes(path.read_bytes())
        journal = pathlib.Path(f"{path}-journal").read_bytes()
        pathlib.Path(f"{cut}-journal").write_bytes(journal)
        assert cut.read_bytes()[: len(whole)] != whole, "nothing was overwritten, so that nothing is tested"
        buffer._db.execute("ROLLBACK")
    with Buffer(cut) as buffer:
        assert waiting(buffer) == [kept.batch_id]


def test_a_commit_that_fails_leaves_the_buffer_as_it_was_and_usable(tmp_path):
    device = make_device(17)
    first, second = make_reading(device, 0), make_reading(device, 1)
    with Buffer(tmp_path / "buffer.db") as buffer:
        buffer.add(first)
        buffer._db.execute("PRAGMA busy_timeout = 0")
        # Who reads does not hinder a transaction from beginning, but from being committed.
        reader = sqlite3.connect(tmp_path / "buffer.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM readings").fetchall()
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="database is locked"):
                buffer.add(second)
            assert waiting(buffer) == [first.batch_id]
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            buffer.settle(buffer.oldest(1), {})
        assert waiting(buffer) == [first.batch_id]
        reader.close()
        buffer.add(second)
        assert waiting(buffer) == [first.batch_id, second.batch_id]


def test_a_full_disk_is_told_as_such_and_the_buffer_goes_on_when_there_is_room(tmp_path):
    device = make_device(17)
    with Buffer(tmp_path / "buffer.db") as buffer:
        pages = buffer._db.execute("PRAGMA page_count").fetchone()[0]
        buffer._db.execute(f"PRAGMA max_page_count = {pages}")
        added = []
        with pytest.raises(sqlite3.OperationalError, match="database or disk is full"):
            for window in range(1000):
                buffer.add(make_reading(device, window))
                added.append(make_reading(device, window).batch_id)
        assert waiting(buffer) == added
        buffer._db.execute("PRAGMA max_page_count = 1000000")
        buffer.add(make_reading(device, 1000))
        assert len(buffer) == len(added) + 1


def test_what_an_interrupt_left_uncommitted_is_neither_sent_nor_in_the_way(tmp_path):
    device = make_device(17)
    with Buffer(tmp_path / "buffer.db") as buffer:
        buffer._db.execute("BEGIN IMMEDIATE")
        buffer._db.execute("INSERT INTO readings (batch_id, body) VALUES ('half', '{}')")
        assert waiting(buffer) == []
        buffer._db.execute("BEGIN IMMEDIATE")
        buffer.add(make_reading(device, 0))
        assert len(buffer) == 1


def test_another_reading_with_an_id_that_is_taken_is_not_lost_in_silence(tmp_path):
    reading = make_reading(make_device(17), 0)
    with Buffer(tmp_path / "buffer.db") as buffer:
        buffer.add(reading)
        with pytest.raises(ValueError, match="another reading"):
            buffer.add(Reading(**{**vars(reading), "sensors": {"bme280_temp_c": 99}}))
        buffer.add(reading)
        assert len(buffer) == 1


def test_a_reading_that_took_the_place_of_a_delivered_one_is_kept(tmp_path):
    """Two senders got the same answer; between them the id came again."""
    reading = make_reading(make_device(17), 0)
    with Buffer(tmp_path / "buffer.db") as buffer:
        buffer.add(reading)
        delivered = buffer.oldest(1)
        buffer.settle(delivered, {})
        buffer.add(Reading(**{**vars(reading), "sensors": {"bme280_temp_c": 99}}))
        buffer.settle(delivered, {})
        buffer.settle([], {delivered[0]: ("CODE", "reason")})
        assert len(buffer) == 1 and buffer.dead_letters() == []


def test_dead_letters_are_bounded_and_those_that_go_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("homeport_client.buffer.DEAD_LETTERS_MAX", 3)
    device = make_device(17)
    with Buffer(tmp_path / "buffer.db") as buffer:
        for window in range(5):
            buffer.add(make_reading(device, window))
            buffer.settle([], {buffer.oldest(1)[0]: ("CODE", f"{window}")})
        assert [letter.reason for letter in buffer.dead_letters()] == ["2", "3", "4"]
        assert (len(buffer), buffer.dead_letters_dropped, buffer.dropped) == (0, 2, 0)


SHARING = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from homeport_client import Buffer, Client, Device, Sender

url, key, path, number = sys.argv[2:6]
device = Device(f"02:00:00:00:01:{{int(number):02X}}", "1.0.16")
stop = threading.Event()
sender = Sender(Client(url, key), Buffer(path), device, batch=5)
runner = threading.Thread(target=sender.run, args=(stop, 0.001))
runner.start()
for window in range({count}):
    start_ms = {start_ms} + window * 1000
    sender.add(device.reading(start_ms, start_ms + 1000, {{"t": window}}))
stop.set()
runner.join()
""".format(start_ms=START_MS, count=100)


def test_processes_that_share_a_buffer_lose_nothing(server, tmp_path):
    key, path = server.make_key(), tmp_path / "buffer.db"
    arguments = [sys.executable, "-c", SHARING, str(CLIENTS / "python" / "src"), server.url, key, str(path)]
    processes = [subprocess.Popen([*arguments, str(number)]) for number in range(3)]
    try:
        assert [process.wait(timeout=SECS_MAX) for process in processes] == [0, 0, 0]
    finally:
        for process in processes:
            process.kill()
    with Buffer(path) as buffer:
        Sender(Client(server.url, key), buffer, make_device(18)).flush()
        assert len(buffer) == 0 and buffer.dead_letters() == []
    for number in range(3):
        stored = server.readings(f"02:00:00:00:01:{number:02X}")
        assert [reading["sensors"]["t"] for reading in stored] == list(range(100))


def put_raw(buffer, batch_id, body):
    """A reading that this version would not make, as another may have left it in the buffer."""
    buffer._db.execute("INSERT INTO readings (batch_id, body) VALUES (?, ?)", (batch_id, body))


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "ok"},
        {"acknowledged_batch_ids": "all", "duplicate_batch_ids": [], "results": []},
        {"acknowledged_batch_ids": [["x"]], "duplicate_batch_ids": [], "results": []},
        {"acknowledged_batch_ids": [], "duplicate_batch_ids": []},
        {"acknowledged_batch_ids": [], "duplicate_batch_ids": [], "results": ["rejected"]},
        {"acknowledged_batch_ids": [], "duplicate_batch_ids": [], "results": [{"batch_id": "x"}]},
        {"acknowledged_batch_ids": [], "duplicate_batch_ids": [], "results": [{"status": "rejected", "batch_id": ["x"]}]},
        [],
        "[" * 100_000,
    ],
    ids=range(9),
)
def test_an_answer_of_another_form_is_no_answer(server, tmp_path, answer):
    device = make_device(20)
    text = answer if isinstance(answer, str) else json.dumps(answer)
    with Between(server, lambda *_: (200, "application/json", text.encode())) as portal, Buffer(tmp_path / "buffer.db") as buffer:
        client = Client(portal.url, "key")
        with pytest.raises(Unavailable):
            client.register(device)
        with pytest.raises(Unavailable):
            sender = Sender(client, buffer, device)
            sender._is_registered = True
            sender.add(make_reading(device, 0))
            sender.flush()
        assert len(buffer) == 1 and buffer.dead_letters() == []


@pytest.mark.parametrize("value", ["9" * 400, "9" * 5000, "Fri, 99 Nov 99999999999 00:00:00 GMT", "soon", "-1", "1e5", "²"])
def test_a_strange_retry_after_is_no_failure_of_its_own(value):
    wait_secs = RetryPolicy(first_secs=1).failed(homeport_client.client._retry_after_secs(value))
    assert 0 < wait_secs <= 3601


def run_through_failures(sender, failures, mend):
    """Runs the sender until it has failed so often, mends what is wrong and waits until everything is delivered."""
    seen, stop = [], threading.Event()

    def on_failure(error):
        seen.append(error)
        if len(seen) == failures:
            mend()
        raise RuntimeError("the caller's own mistake")

    runner = threading.Thread(target=sender.run, args=(stop, 0.01, on_failure))
    runner.start()
    try:
        wait_until_empty(sender._buffer)
        assert runner.is_alive()
    finally:
        stop.set()
        runner.join(SECS_MAX)
    assert len(seen) >= failures
    return seen


def quick():
    return RetryPolicy(first_secs=0.001, longest_secs=0.01)


def test_a_portal_that_answers_in_the_servers_place_does_not_end_the_sender(server, tmp_path):
    device, is_open = make_device(21), threading.Event()
    portal = lambda *_: None if is_open.is_set() else (200, "application/json", b'{"status":"ok"}')
    with Between(server, portal) as between, Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(between.url, server.make_key()), buffer, device, retry=quick())
        sender.add(make_reading(device, 0))
        seen = run_through_failures(sender, 3, is_open.set)
    assert isinstance(seen[0], Unavailable)
    assert len(server.readings(device.hardware_id)) == 1


def test_a_buffer_that_cannot_be_written_does_not_end_the_sender(server, tmp_path):
    device = make_device(22)
    with Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(server.url, server.make_key()), buffer, device, retry=quick())
        sender.add(make_reading(device, 0))
        buffer._db.execute("PRAGMA busy_timeout = 0")
        other = sqlite3.connect(tmp_path / "buffer.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        seen = run_through_failures(sender, 3, lambda: other.execute("ROLLBACK"))
        other.close()
    assert isinstance(seen[0], sqlite3.OperationalError)
    assert len(server.readings(device.hardware_id)) == 1


def test_a_mistake_that_nobody_thought_of_does_not_end_the_sender(server, tmp_path, monkeypatch):
    device = make_device(23)
    with Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(server.url, server.make_key()), buffer, device, retry=quick())
        sender.add(make_reading(device, 0))
        with monkeypatch.context() as patch:
            patch.setattr(Client, "send", lambda *_: {}["nothing"])
            run_through_failures(sender, 3, patch.undo)


def test_a_key_that_no_header_can_carry_is_refused_at_once():
    for key in ("", "a\nb", "schlüssel"):
        with pytest.raises(ValueError):
            Client("http://127.0.0.1:1", key)


def test_a_request_is_bounded_in_bytes(server, tmp_path):
    device = make_device(24)
    names = [f"{number:02}".rjust(64, "n") for number in range(64)]
    with Between(server, lambda *_: None) as between, Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(between.url, server.make_key()), buffer, device)
        for window in range(100):
            sensors = {name: 10**125 for name in names}
            sender.add(device.reading(START_MS + window, START_MS + window + 1, sensors, dict.fromkeys(names, "error")))
        assert sender.flush() == 100
        sizes = [len(body) for path, body in between.requests if path.endswith("/data")]
    assert sum(sizes) > 1_048_576 >= max(sizes) > 1_000_000
    assert len(sizes) == 2


def test_a_proxy_with_a_smaller_limit_gets_smaller_requests(server, tmp_path):
    device = make_device(25)
    with Between(server, lambda _, body: page(413) if len(body) > 10_000 else None) as between, Buffer(tmp_path / "b.db") as buffer:
        sender = Sender(Client(between.url, server.make_key()), buffer, device)
        for window in range(200):
            sender.add(make_reading(device, window))
        assert sender.flush() == 200
        assert len(between.sent()) < 40
    assert len(server.readings(device.hardware_id)) == 200


def test_a_reading_that_a_proxy_finds_too_large_waits_and_holds_nothing_up(server, tmp_path):
    device = make_device(33)
    large = make_reading(device, 7)
    with Between(server, lambda _, body: page(413) if large.batch_id.encode() in body else None) as between:
        with Buffer(tmp_path / "buffer.db") as buffer:
            sender = Sender(Client(between.url, server.make_key()), buffer, device)
            for window in range(20):
                sender.add(make_reading(device, window))
            with pytest.raises(Refused):
                sender.flush()
            assert waiting(buffer) == [large.batch_id] and buffer.dead_letters() == []
    assert len(server.readings(device.hardware_id)) == 19


def test_a_reading_for_which_a_request_is_refused_becomes_a_dead_letter_alone(server, tmp_path):
    device = make_device(26)
    with Between(server, lambda *_: None) as between, Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(between.url, server.make_key()), buffer, device)
        for window in range(150):
            if window in (0, 60, 61, 149):
                put_raw(buffer, f"bad-{window}", '{"batch_id":]')
            sender.add(make_reading(device, window))
        put_raw(buffer, "large", json.dumps({"firmware_version": "x" * 1_100_000}))
        assert sender.flush() == 150
        assert len(buffer) == 0
        letters = {letter.batch_id: letter.code for letter in buffer.dead_letters()}
        assert len(between.requests) < 60
    assert letters == {
        **{f"bad-{window}": "INVALID_REQUEST" for window in (0, 60, 61, 149)},
        "large": "BODY_TOO_LARGE",
    }
    assert len(server.readings(device.hardware_id)) == 150


def test_a_reading_that_is_refused_alone_waits_until_the_server_takes_another(server, tmp_path):
    device = make_device(26)
    with Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(server.url, server.make_key()), buffer, device)
        put_raw(buffer, "bad", "}")
        with pytest.raises(Refused):
            sender.flush()
        assert len(buffer) == 1 and buffer.dead_letters() == []
        sender.add(make_reading(device, 200))
        assert sender.flush() == 1
        assert len(buffer) == 0 and len(buffer.dead_letters()) == 1


def test_a_proxy_that_begins_to_spoil_bodies_does_not_empty_the_buffer_into_the_dead_letters(server, tmp_path):
    device, requests = make_device(32), []

    def spoil_later(path, _):
        requests.append(path)
        return problem(400) if len(requests) > 3 else None

    with Between(server, spoil_later) as between, Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(between.url, server.make_key()), buffer, device, batch=5)
        for window in range(40):
            sender.add(make_reading(device, window))
        for _ in range(5):
            with pytest.raises(Refused):
                sender.flush()
        assert len(buffer.dead_letters()) <= 1
        assert len(buffer) + len(buffer.dead_letters()) == 30


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path, _: page(400),
        lambda path, _: page(413),
        lambda path, _: (400, "application/json", b'{"code": "X", "detail": "of another service"}'),
        # A proxy that spoils bodies makes Homeport itself refuse them.
        lambda path, _: problem(400),
        lambda path, _: problem(401, "KEY_INVALID"),
        lambda path, _: problem(403, "OUT_OF_SCOPE"),
        lambda path, _: problem(404, "NOT_FOUND"),
        lambda path, _: page(302),
    ],
    ids=["page 400", "page 413", "other json", "every body spoiled", "401", "403", "404", "302"],
)
def test_a_refusal_that_no_reading_is_to_blame_for_makes_no_dead_letters(server, tmp_path, spoil):
    device = make_device(27)
    data_only = lambda path, body: spoil(path, body) if path.endswith("/data") else None
    with Between(server, data_only) as between, Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(between.url, server.make_key()), buffer, device)
        for window in range(20):
            sender.add(make_reading(device, window))
        for _ in range(3):
            with pytest.raises(Refused):
                sender.flush()
        assert len(buffer) == 20 and buffer.dead_letters() == []
        assert len(between.sent()) <= 3 * 12


def test_a_registration_that_is_refused_does_not_hold_readings_up(server, tmp_path):
    device = make_device(28)
    with Buffer(tmp_path / "buffer.db") as buffer:
        for window, refusal in enumerate((problem(400), page(400))):
            with Between(server, lambda path, _: refusal if path.endswith("/register") else None) as between:
                sender = Sender(Client(between.url, server.make_key()), buffer, device)
                sender.add(make_reading(device, window))
                assert sender.flush() == 1
        with Between(server, lambda path, _: problem(403) if path.endswith("/register") else None) as between:
            sender = Sender(Client(between.url, server.make_key()), buffer, device)
            sender.add(make_reading(device, 2))
            with pytest.raises(Refused):
                sender.flush()
            assert between.sent() == []
    shown = server.as_operator("GET", f"/v1/sensors/devices/{device.hardware_id}")
    assert shown["last_boot_id"] == device.boot_id


def test_readings_that_another_key_may_bring_wait_for_it_and_hold_nothing_up(server, tmp_path):
    device, other = make_device(29), make_device(30)
    scope = {"description": "tests", "scopes": [device.hardware_id]}
    scoped = server.as_operator("POST", "/v1/api-keys", scope)["api_key"]
    with Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(server.url, scoped), buffer, device, batch=5)
        for window in range(12):
            sender.add(make_reading(other, window))
        sender.add(make_reading(device, 0))
        with pytest.raises(Refused) as caught:
            sender.flush()
        assert caught.value.code == "OUT_OF_SCOPE"
        assert len(buffer) == 12 and buffer.dead_letters() == []
        assert len(server.readings(device.hardware_id)) == 1
        assert Sender(Client(server.url, server.make_key()), buffer, other).flush() == 12


def test_a_reading_whose_fate_the_server_does_not_know_is_sent_again(server, tmp_path):
    device = make_device(31)
    unknown = lambda batch_id: {"batch_id": batch_id, "status": "rejected", "code": "UNKNOWN"}

    def half(path, body):
        if not path.endswith("/data"):
            return None
        first, second = [reading["batch_id"] for reading in json.loads(body)["readings"]]
        answer = {"acknowledged_batch_ids": [first], "duplicate_batch_ids": [], "results": [unknown(second)]}
        return 200, "application/json", json.dumps(answer).encode()

    with Between(server, half) as between, Buffer(tmp_path / "buffer.db") as buffer:
        sender = Sender(Client(between.url, server.make_key()), buffer, device)
        sender.add(make_reading(device, 0))
        sender.add(make_reading(device, 1))
        with pytest.raises(Unavailable):
            sender.flush()
        assert waiting(buffer) == [make_reading(device, 1).batch_id] and buffer.dead_letters() == []


def test_an_hour_of_the_servers_retry_after_is_heeded():
    policy = RetryPolicy(first_secs=0.01)
    assert 3600 <= policy.failed(3600) < 3601
    assert 3600 <= policy.failed(1e9) < 3601


def test_values_that_cannot_be_are_refused_at_once():
    device = make_device(11)
    for sensors, status in [({"t": float("nan")}, {}), ({"a b": 1}, {}), ({"t": True}, {}), ({"t": 1}, {"t": "fine"})]:
        with pytest.raises(ValueError):
            device.reading(START_MS, START_MS + 1, sensors, status)
    with pytest.raises(ValueError):
        device.reading(0, 1, {"t": 1})
    with pytest.raises(ValueError):
        Device("aa:bb:cc:dd:ee:ff", "1")


@pytest.mark.parametrize(
    "wrong",
    [
        {"timestamp_ms": float(START_MS)},
        {"timestamp_ms": True},
        {"boot_id": "550e8400e29b41d4a716446655440000"},
        {"boot_id": "550e8400-e29b-41d4-c716-446655440000"},
        {"boot_id": None},
        {"firmware_version": ""},
        {"firmware_version": "x" * 65},
        {"sensors": {"t": 10**126}},
        {"sensors": {"t": -(10**400)}},
        {"sensors": {"t": 10**5000}},
        {"sensors": {"t": int("1" * 39)}},
        {"sensors": {"t": 1e126}},
        {"sensors": {"t": 9.9e-131}},
        {"sensors": {"t": None}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_reading_that_the_server_would_reject_cannot_be_made(wrong):
    good = vars(make_reading(make_device(11), 0))
    Reading(**good)
    with pytest.raises(ValueError):
        Reading(**{**good, **wrong})


def test_numbers_at_the_ends_of_the_range_are_stored_and_beyond_them_rejected(server):
    device, client = make_device(13), Client(server.url, server.make_key())
    numbers = [0, -0.0, 1e-130, -1e-130, 9.99e125, 10**125, int("9" * 38), int("9" * 38) * 10**88, 0.1, 5e-7]
    sent = [device.reading(START_MS, START_MS + 1, {"t": number}) for number in numbers]
    assert client.send([json.dumps(reading.to_json()) for reading in sent]).rejected == {}
    beyond = ["9.9e-131", "1e126", "1" * 39]
    bodies = [json.dumps({**sent[0].to_json(), "batch_id": f"beyond-{text}", "sensors": {}}) for text in beyond]
    bodies = [body.replace('"sensors": {}', f'"sensors": {{"t": {text}}}') for body, text in zip(bodies, beyond)]
    assert len(client.send(bodies).rejected) == len(beyond), "the client refuses what the server would take"


@pytest.mark.parametrize(
    "wrong",
    [
        {"friendly_name": ""},
        {"friendly_name": "  "},
        {"friendly_name": "a\tb"},
        {"friendly_name": "é" * 65},
        {"friendly_name": "\ud800"},
        {"boot_id": "550e8400e29b41d4a716446655440000"},
        {"boot_id": "{550e8400-e29b-41d4-a716-446655440000}"},
        {"boot_id": "550e8400-e29b-11d4-a716-446655440000"},
        {"sensors": [f"s{number}" for number in range(65)]},
        {"sensors": "bme280"},
        {"features": {f"f{number}": True for number in range(65)}},
        {"features": {"tft_display": 1}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_device_that_the_server_would_refuse_cannot_be_made(wrong):
    with pytest.raises(ValueError):
        capabilities = {name: wrong[name] for name in ("sensors", "features") if name in wrong}
        others = {name: value for name, value in wrong.items() if name not in capabilities}
        Device("02:00:00:00:00:0E", "1.0.16", capabilities=Capabilities(**capabilities), **others)


def test_a_device_at_every_limit_is_registered(server):
    names = [f"{number:02}".rjust(64, "n") for number in range(64)]
    device = Device(
        "02:00:00:00:00:0F",
        " " * 64,
        "550E8400-E29B-41D4-A716-446655440000",
        "é" * 64,
        Capabilities(names, {name: False for name in names}),
    )
    assert Client(server.url, server.make_key()).register(device)


def test_the_key_is_not_shown():
    assert "secret" not in repr(Client("http://127.0.0.1:1", "secret"))
