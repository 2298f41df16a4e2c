"""The portable core of the ESP32 example, built for this machine: its own claims, and one life against a server process."""

import subprocess
import threading
import time

import pytest

from conftest import CLIENTS, free_port

SOURCES = CLIENTS / "esp32"
CORE = SOURCES / "lib" / "homeport_core"
HARDWARE_ID = "02:00:00:00:32:01"
SECS_MAX = 300


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Builds a program of `host`; where it is."""
    directory = tmp_path_factory.mktemp("esp32")

    def make(name):
        program = directory / name
        command = ["c++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{CORE}", f"-I{SOURCES / 'host'}"]
        sources = [str(source) for source in sorted(CORE.glob("*.cpp"))]
        subprocess.run([*command, *sources, str(SOURCES / "host" / f"{name}.cpp"), "-o", str(program)], check=True, timeout=SECS_MAX)
        return program

    return make


def test_the_core_keeps_its_claims(build):
    check_claims([str(build("test_core"))])


def test_the_core_keeps_its_claims_on_flash_that_fails(build, tmp_path):
    check_claims([str(build("test_faults")), str(tmp_path)])


def check_claims(command):
    finished = subprocess.run(command, capture_output=True, text=True, timeout=SECS_MAX)
    assert finished.returncode == 0, finished.stderr
    assert "all checks passed" in finished.stdout


def test_a_device_and_a_server_that_are_killed_store_every_reading_once(start_server, build, tmp_path):
    program = build("device")
    flash = tmp_path / "flash"
    flash.mkdir()
    port = free_port()
    server = start_server(tmp_path / "data", http_port=port)
    key = server.make_key()
    first_ms = time.time_ns() // 1_000_000 - 24 * 3600 * 1000
    queued = []

    def start(life, count):
        arguments = [str(port), key, str(flash), HARDWARE_ID, str(first_ms + life * 1_000_000), str(count)]
        device = subprocess.Popen([str(program), *arguments], stdout=subprocess.PIPE, text=True)
        watchdog = threading.Timer(SECS_MAX, device.kill)
        watchdog.start()
        return device, watchdog

    for life in range(4):
        device, watchdog = start(life, 1000)
        for _ in range(20 + 13 * life):
            queued.append(device.stdout.readline().strip())
        if life % 2 == 1:
            server.kill()
            # The device goes on without a server, and dies.
            queued += [device.stdout.readline().strip() for _ in range(15)]
        device.kill()
        queued += [line for line in device.stdout.read().split("\n")[:-1]]
        device.wait(timeout=SECS_MAX)
        watchdog.cancel()
        if life % 2 == 1:
            server = start_server(tmp_path / "data", http_port=port)
    device, watchdog = start(4, 10)
    printed = device.stdout.read().split()
    assert device.wait(timeout=SECS_MAX) == 0
    watchdog.cancel()
    assert printed[-1] == "delivered"
    queued += printed[:-1]
    stored = [reading["batch_id"] for reading in server.readings(HARDWARE_ID)]
    shown = server.as_operator("GET", f"/v1/sensors/devices/{HARDWARE_ID}")
    server.stop()
    assert len(stored) == len(set(stored))
    assert set(queued) <= set(stored)
    assert len(queued) > 150 and "delivered" not in queued
    assert shown["capabilities"]["sensors"] == ["bme280"]
