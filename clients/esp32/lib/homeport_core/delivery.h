// One attempt to bring the oldest readings to the server. How a request is made is the caller's business.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "json.h"
#include "queue.h"

namespace homeport {

const size_t READINGS_PER_REQUEST_MAX = 100;

struct Response {
    int status = 0; // 0 or less: no answer
    uint32_t retry_after_secs = 0;
    std::string body;
};

enum class Outcome {
    // Nothing was waiting.
    Empty,
    // At least one reading left the queue.
    Delivered,
    // Try the same again later.
    Again,
    // The server will refuse it again until somebody acts: a wrong key.
    Refused,
};

using Post = std::function<Response(const std::string &body)>;
// Keeps a reading that the server will never take; false when it could not.
using DeadLetter = std::function<bool(const QueuedReading &reading, const std::string &code)>;

// Drops what is in either list of the answer, and what was rejected once `dead_letter` has it. What the answer leaves waiting goes
// behind the others next time, so that it does not hold them up. `response` is what came back.
Outcome deliver(Queue &queue, size_t count, size_t bytes_max, const Post &post, const DeadLetter &dead_letter, Response &response);

// No answer, a timeout (408), too early (425), too many requests (429) or trouble in the server.
inline bool is_temporary(int status) {
    return status <= 0 || status == 408 || status == 425 || status == 429 || status >= 500;
}

} // namespace homeport
