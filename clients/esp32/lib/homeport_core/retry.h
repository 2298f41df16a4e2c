// Delays between retries.
#pragma once

#include <algorithm>
#include <cstdint>

namespace homeport {

// Exponential backoff. The delay is random in its upper half, so that devices that failed together (a router restarted) do not retry
// together.
class RetryPolicy {
public:
    static const uint32_t FIRST_MS = 1000;
    static const uint32_t LONGEST_MS = 300000;

    void succeeded() { failures_ = 0; }

    // `chance` is any random number; `retry_after_secs` is the server's Retry-After, or 0.
    uint32_t failed_ms(uint32_t chance, uint32_t retry_after_secs) {
        uint32_t longest = failures_ < 9 ? std::min(FIRST_MS << failures_, uint32_t(LONGEST_MS)) : uint32_t(LONGEST_MS);
        failures_ += failures_ < 9 ? 1 : 0;
        uint32_t asked = std::min<uint32_t>(retry_after_secs, LONGEST_MS / 1000) * 1000;
        return asked + longest / 2 + chance % (longest / 2 + 1);
    }

private:
    uint32_t failures_ = 0;
};

} // namespace homeport
