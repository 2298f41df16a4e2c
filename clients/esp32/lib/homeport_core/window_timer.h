// The start and end of averaging windows.
#pragma once

#include "json.h"
#include "wait.h"

namespace homeport {

// 2024-01-01: an earlier time means that the clock is not set.
const int64_t CLOCK_SET_AFTER_MS = 1704067200000LL;

inline bool is_clock_set(int64_t now_ms) { return now_ms >= CLOCK_SET_AFTER_MS; }

enum class WindowEvent {
    None,
    // Earlier measurements belong to no window.
    Begun,
    // The caller stores the reading and calls `kept` or `failed`.
    Ended,
};

class WindowTimer {
public:
    // The delay before a failed write to flash is retried; each attempt wears flash.
    static const uint32_t AGAIN_MS = 60000;

    explicit WindowTimer(int64_t window_ms) : window_ms_(window_ms) {}

    // `now_ms` is the wall-clock time. Until it is set there are no windows, because a reading needs a valid time.
    WindowEvent poll(int64_t now_ms, uint32_t uptime_ms, Window &window) {
        if (!is_clock_set(now_ms)) {
            return WindowEvent::None;
        }
        if (start_ms_ == 0 || now_ms < start_ms_) {
            start_ms_ = now_ms;
            return WindowEvent::Begun;
        }
        if (now_ms - start_ms_ < window_ms_ || !again_.is_over(uptime_ms)) {
            return WindowEvent::None;
        }
        window = Window{start_ms_, now_ms};
        return WindowEvent::Ended;
    }

    void kept(const Window &window) { start_ms_ = window.end_ms; }

    // Extends the window to the next attempt.
    void failed(uint32_t uptime_ms) { again_.begin(uptime_ms, AGAIN_MS); }

private:
    int64_t window_ms_;
    int64_t start_ms_ = 0;
    Wait again_;
};

} // namespace homeport
