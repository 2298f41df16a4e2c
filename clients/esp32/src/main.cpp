// A sensor that stores readings in flash until Homeport acknowledges them. Code that needs no hardware is in lib/homeport_core.

#include <Arduino.h>
#include <HTTPClient.h>
#include <WiFi.h>
#include <WiFiClientSecure.h>
#include <esp_mac.h>
#include <esp_random.h>
#include <sys/time.h>

#include "config.h"
#include "dead_letters.h"
#include "delivery.h"
#include "json.h"
#include "littlefs_storage.h"
#include "littlefs_volume.h"
#include "queue.h"
#include "retry.h"
#include "wait.h"
#include "window_timer.h"

using namespace homeport;

static const char *const FIRMWARE_VERSION = "1.0.0";
static const int MOISTURE_PIN = 34;
static const uint32_t SAMPLE_EVERY_MS = 5000;
static const uint32_t WINDOW_MS = 300000;
static const uint32_t HTTP_TIMEOUT_MS = 20000;
static const uint32_t RESTART_AFTER_MS = 10000;
// A request must fit into memory together with TLS.
static const size_t REQUEST_READINGS = 20;
static const size_t REQUEST_BYTES_MAX = 8 * 1024;
// The response must fit too; it has less than 1 KiB per reading.
static const int RESPONSE_BYTES_MAX = 24 * 1024;

static LittleFsStorage storage;
static LittleFsVolume volume;
static Queue queue(storage);
static DeadLetters dead_letters(storage);
static RetryPolicy retry;
static Identity identity;
static WiFiClientSecure tls;
static bool is_registered = false;
static Wait attempt_wait;

// The average of a value in one window. A value without any finite sample is omitted from the reading.
struct Average {
    double sum = 0;
    uint32_t count = 0;

    void add(double value) {
        if (isfinite(value)) {
            sum += value;
            count += 1;
        }
    }
    double mean() const { return count == 0 ? NAN : sum / count; }
};

static Average chip_temperature;
static Average moisture;
static WindowTimer window_timer(WINDOW_MS);
static Wait sample_wait;

static int64_t now_ms() {
    timeval now;
    gettimeofday(&now, nullptr);
    return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_usec / 1000;
}

static std::string mac_address() {
    uint8_t mac[6];
    esp_read_mac(mac, ESP_MAC_WIFI_STA);
    char text[18];
    snprintf(text, sizeof text, "%02X:%02X:%02X:%02X:%02X:%02X", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
    return text;
}

// A version 4 UUID. Call it after the radio is on, which is the chip's source of randomness.
static std::string random_uuid() {
    uint8_t bytes[16];
    esp_fill_random(bytes, sizeof bytes);
    bytes[6] = (bytes[6] & 0x0F) | 0x40;
    bytes[8] = (bytes[8] & 0x3F) | 0x80;
    std::string text;
    for (int at = 0; at < 16; ++at) {
        char digits[4];
        snprintf(digits, sizeof digits, at == 4 || at == 6 || at == 8 || at == 10 ? "-%02x" : "%02x", bytes[at]);
        text += digits;
    }
    return text;
}

static Response post(const char *path, const std::string &body) {
    Response response;
    HTTPClient http;
    http.setTimeout(HTTP_TIMEOUT_MS);
    http.setConnectTimeout(HTTP_TIMEOUT_MS);
    if (!http.begin(tls, String(HOMEPORT_URL) + path)) {
        return response;
    }
    const char *header_names[] = {"Retry-After"};
    http.collectHeaders(header_names, 1);
    http.addHeader("Content-Type", "application/json");
    http.addHeader("X-API-Key", HOMEPORT_API_KEY);
    response.status = http.POST(reinterpret_cast<uint8_t *>(const_cast<char *>(body.data())), body.size());
    if (response.status > 0) {
        response.retry_after_secs = http.header("Retry-After").toInt();
        // A longer response is not from Homeport. Its body stays empty, which is invalid.
        if (http.getSize() <= RESPONSE_BYTES_MAX) {
            response.body = http.getString().c_str();
        }
    }
    http.end();
    return response;
}

static bool keep_dead_letter(const QueuedReading &reading, const std::string &code) {
    Serial.printf("rejected: %s %s\n", code.c_str(), reading.body.c_str());
    return dead_letters.keep(reading, code);
}

static void sample() {
    if (!sample_wait.is_over(millis())) {
        return;
    }
    sample_wait.begin(millis(), SAMPLE_EVERY_MS);
    chip_temperature.add(temperatureRead());
    moisture.add(100.0 * (4095 - analogRead(MOISTURE_PIN)) / 4095);
}

// Ends a window and puts its averages into the queue.
static void end_window() {
    Window window;
    WindowEvent event = window_timer.poll(now_ms(), millis(), window);
    if (event == WindowEvent::Begun) {
        chip_temperature = moisture = Average();
    }
    if (event != WindowEvent::Ended) {
        return;
    }
    std::string body = reading_json(identity, window,
                                    {{"chip_temp_c", chip_temperature.mean()}, {"soil_moisture_pct", moisture.mean()}},
                                    {{"chip", chip_temperature.count > 0}, {"soil_moisture", moisture.count > 0}});
    if (!queue.push(batch_id(identity, window), body)) {
        Serial.println("cannot write the reading to flash");
        window_timer.failed(millis());
        return;
    }
    window_timer.kept(window);
    chip_temperature = moisture = Average();
}

static void deliver_oldest() {
    if (WiFi.status() != WL_CONNECTED || !is_clock_set(now_ms()) || !attempt_wait.is_over(millis())) {
        return;
    }
    Response response;
    Outcome outcome = Outcome::Again;
    if (!is_registered) {
        response = post("/v1/sensors/register", registration_json(identity, {"chip", "soil_moisture"}));
        is_registered = response.status == 200;
    }
    if (is_registered) {
        auto send = [](const std::string &body) { return post("/v1/sensors/data", body); };
        outcome = deliver(queue, REQUEST_READINGS, REQUEST_BYTES_MAX, send, keep_dead_letter, response);
    }
    if (outcome == Outcome::Empty || outcome == Outcome::Delivered) {
        retry.succeeded();
        attempt_wait.begin(millis(), outcome == Outcome::Empty ? SAMPLE_EVERY_MS : 0);
        return;
    }
    uint32_t wait_ms = retry.failed_ms(esp_random(), response.retry_after_secs);
    Serial.printf("delivery failed (%d); next attempt in %u ms, %u readings queued\n", response.status, wait_ms,
                  static_cast<unsigned>(queue.length()));
    attempt_wait.begin(millis(), wait_ms);
}

// A restart loses no readings and may clear the error; meanwhile the message is visible on the serial line.
static void restart_after(const char *error) {
    Serial.printf("%s; restarting\n", error);
    delay(RESTART_AFTER_MS);
    ESP.restart();
}

void setup() {
    Serial.begin(115200);
    if (!mount_or_format(volume)) {
        restart_after("cannot mount the file system, and flash is not blank: see the README");
    }
    if (!queue.open()) {
        restart_after("cannot read flash");
    }
    WiFi.mode(WIFI_STA);
    WiFi.setAutoReconnect(true);
    WiFi.begin(WIFI_SSID, WIFI_PASSWORD);
    tls.setCACert(HOMEPORT_CA_CERTIFICATE);
    configTime(0, 0, "pool.ntp.org", "time.nist.gov");
    identity = Identity{mac_address(), random_uuid(), FIRMWARE_VERSION};
    Serial.printf("%s, %u readings queued\n", identity.hardware_id.c_str(), static_cast<unsigned>(queue.length()));
}

void loop() {
    sample();
    end_window();
    deliver_oldest();
    delay(10);
}
