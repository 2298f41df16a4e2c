// One attempt to deliver the oldest readings. The caller supplies the function that sends a request.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "json.h"
#include "queue.h"

namespace homeport {

const size_t READINGS_PER_REQUEST_MAX = 100;

struct Response {
    int status = 0; // 0 or less: no response
    uint32_t retry_after_secs = 0;
    std::string body;
};

enum class Outcome {
    // The queue is empty.
    Empty,
    // At least one reading left the queue.
    Delivered,
    // Retry later.
    Again,
    // The server rejects requests until an operator acts, for example because of an invalid key.
    Refused,
};

using Post = std::function<Response(const std::string &body)>;
// Stores a rejected reading; returns false if that failed.
using DeadLetter = std::function<bool(const QueuedReading &reading, const std::string &code)>;

// Removes acknowledged and duplicate readings, and rejected ones once `dead_letter` has stored them. Readings without a final result
// move behind the others, so that they do not block them. `response` receives the server's response.
Outcome deliver(Queue &queue, size_t count, size_t bytes_max, const Post &post, const DeadLetter &dead_letter, Response &response);

// No response, a timeout (408), too early (425), too many requests (429) or a server error.
inline bool is_temporary(int status) {
    return status <= 0 || status == 408 || status == 425 || status == 429 || status >= 500;
}

} // namespace homeport
