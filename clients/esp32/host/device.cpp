// The device's program on the host: creates readings and delivers them to a local server, with its queue in a directory.
// Usage: device PORT API_KEY DIRECTORY HARDWARE_ID FIRST COUNT
// Prints the id of each reading once it is in the queue, and "delivered" when the queue is empty.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "delivery.h"
#include "http_post.h"
#include "json.h"
#include "posix_storage.h"
#include "queue.h"
#include "retry.h"

using namespace homeport;

int main(int argc, char **argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: device PORT API_KEY DIRECTORY HARDWARE_ID FIRST COUNT\n");
        return 2;
    }
    int port = atoi(argv[1]);
    std::string api_key = argv[2];
    PosixStorage storage(argv[3]);
    Identity identity{argv[4], "7c9e6679-7425-40de-944b-e07fc1f90ae7", "host-1"};
    int64_t first_ms = strtoll(argv[5], nullptr, 10);
    int64_t count = strtoll(argv[6], nullptr, 10);

    Queue queue(storage);
    if (!queue.open()) {
        fprintf(stderr, "cannot open the queue\n");
        return 1;
    }
    auto post = [&](const std::string &body) { return http_post(port, "/v1/sensors/data", api_key, body); };
    auto dead_letter = [](const QueuedReading &reading, const std::string &code) {
        fprintf(stderr, "rejected %s: %s\n", reading.batch_id.c_str(), code.c_str());
        return true;
    };
    std::mt19937 chance(1);
    RetryPolicy retry;
    bool is_registered = false;
    for (int64_t made = 0; made < count || queue.length() > 0;) {
        if (made < count) {
            Window window{first_ms + made * 1000, first_ms + (made + 1) * 1000};
            double temperature = 20.0 + 3.0 * std::sin(static_cast<double>(made) / 20.0);
            std::string body = reading_json(identity, window, {{"bme280_temp_c", temperature}}, {{"bme280", true}});
            if (!queue.push(batch_id(identity, window), body)) {
                fprintf(stderr, "cannot add to the queue\n");
                return 1;
            }
            printf("%s\n", batch_id(identity, window).c_str());
            fflush(stdout);
            made += 1;
            if (made % 5 != 0 && made < count) {
                continue;
            }
        }
        Response response;
        Outcome outcome = Outcome::Again;
        if (!is_registered) {
            response = http_post(port, "/v1/sensors/register", api_key, registration_json(identity, {"bme280"}));
            is_registered = response.status == 200;
        }
        if (is_registered) {
            outcome = deliver(queue, 4, 16 * 1024, post, dead_letter, response);
        }
        if (outcome == Outcome::Refused || (response.status >= 400 && !is_temporary(response.status))) {
            fprintf(stderr, "the server rejected the request: %d %s\n", response.status, response.body.c_str());
            return 1;
        }
        if (outcome != Outcome::Again) {
            retry.succeeded();
        } else if (made == count) {
            // While readings are created, the next one triggers the retry.
            uint32_t wait_ms = retry.failed_ms(static_cast<uint32_t>(chance()), response.retry_after_secs);
            std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms / 10));
        }
    }
    puts("delivered");
    return 0;
}
