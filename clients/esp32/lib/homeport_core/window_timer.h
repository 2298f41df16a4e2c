// When a window of averages begins and ends.
#pragma once

#include "json.h"
#include "wait.h"

namespace homeport {

// 2024-01-01: a clock that shows less has not been set.
const int64_t CLOCK_SET_AFTER_MS = 1704067200000LL;

inline bool is_clock_set(int64_t now_ms) { return now_ms >= CLOCK_SET_AFTER_MS; }

enum class WindowEvent {
    None,
    // What was measured before belongs to no window.
    Begun,
    // The caller keeps the reading and says `kept`, or `failed`.
    Ended,
};

class WindowTimer {
public:
    // A reading that flash does not take is offered again after this; each attempt wears flash.
    static const uint32_t AGAIN_MS = 60000;

    explicit WindowTimer(int64_t window_ms) : window_ms_(window_ms) {}

    // `now_ms` is the time of day. Before it is set there are no windows: a reading without a time would be worth nothing.
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

    // The window goes on, and takes in what is measured until the next attempt.
    void failed(uint32_t uptime_ms) { again_.begin(uptime_ms, AGAIN_MS); }

private:
    int64_t window_ms_;
    int64_t start_ms_ = 0;
    Wait again_;
};

} // namespace homeport
