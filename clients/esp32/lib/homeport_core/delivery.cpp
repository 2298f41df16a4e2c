#include "delivery.h"

#include <algorithm>

namespace homeport {

// Whether the code rejects the reading itself. An out-of-scope key may be replaced, and an unknown outcome may mean stored.
static bool rejects_reading(const std::string &code) { return code != "OUT_OF_SCOPE" && code != "UNKNOWN"; }

Outcome deliver(Queue &queue, size_t count, size_t bytes_max, const Post &post, const DeadLetter &dead_letter, Response &response) {
    std::vector<QueuedReading> readings = queue.oldest(std::min(count, READINGS_PER_REQUEST_MAX), bytes_max);
    if (readings.empty()) {
        // Queued readings that are not returned cannot be read at the moment.
        return queue.length() == 0 ? Outcome::Empty : Outcome::Again;
    }
    std::vector<std::string> bodies;
    for (const QueuedReading &reading : readings) {
        bodies.push_back(reading.body);
    }
    response = post(request_json(bodies));
    if (response.status < 200 || response.status > 299) {
        return is_temporary(response.status) ? Outcome::Again : Outcome::Refused;
    }
    Answer answer;
    if (!parse_answer(response.body, answer)) {
        return Outcome::Again;
    }
    std::vector<uint32_t> settled;
    std::vector<uint32_t> waiting;
    for (const QueuedReading &reading : readings) {
        bool is_delivered = std::find(answer.delivered.begin(), answer.delivered.end(), reading.batch_id) != answer.delivered.end();
        auto rejected = std::find_if(answer.rejected.begin(), answer.rejected.end(),
                                     [&](const Rejected &result) { return result.batch_id == reading.batch_id; });
        bool is_rejected = rejected != answer.rejected.end() && rejects_reading(rejected->code);
        bool is_done = is_delivered || (is_rejected && dead_letter(reading, rejected->code));
        (is_done ? settled : waiting).push_back(reading.sequence);
    }
    // If settling fails, the readings are sent again after a restart, and the server reports them as duplicates.
    queue.settle(settled);
    queue.postpone(waiting);
    return settled.empty() ? Outcome::Again : Outcome::Delivered;
}

} // namespace homeport
