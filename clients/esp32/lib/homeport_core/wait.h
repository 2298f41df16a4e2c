// A timer on a 32-bit clock that overflows, as `millis` does after 49 days.
#pragma once

#include <cstdint>

namespace homeport {

// Stores the start instead of the end, so that a late check never takes the end for a time in the future. If the clock has wrapped
// around in the meantime, the timer may run once more.
class Wait {
public:
    void begin(uint32_t now_ms, uint32_t length_ms) {
        begun_ms_ = now_ms;
        length_ms_ = length_ms;
    }

    // Also true before the first `begin`.
    bool is_over(uint32_t now_ms) const { return now_ms - begun_ms_ >= length_ms_; }

private:
    uint32_t begun_ms_ = 0;
    uint32_t length_ms_ = 0;
};

} // namespace homeport
