// A wait on a clock of 32 bits that overflows, as `millis` does after 49 days.
#pragma once

#include <cstdint>

namespace homeport {

// Keeps when it began instead of when it ends: however late somebody asks, it is not taken for one in the future. Where the
// clock has gone around meanwhile, it may seem to last once more.
class Wait {
public:
    void begin(uint32_t now_ms, uint32_t length_ms) {
        begun_ms_ = now_ms;
        length_ms_ = length_ms;
    }

    // True before the first `begin` too.
    bool is_over(uint32_t now_ms) const { return now_ms - begun_ms_ >= length_ms_; }

private:
    uint32_t begun_ms_ = 0;
    uint32_t length_ms_ = 0;
};

} // namespace homeport
