// Writes the JSON of readings, and parses the server's response to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace homeport {

struct Value {
    std::string name;
    double number; // omitted if not finite
};

struct Status {
    std::string sensor;
    bool is_ok;
};

struct Identity {
    std::string hardware_id;
    std::string boot_id;
    std::string firmware_version;
};

struct Window {
    int64_t start_ms;
    int64_t end_ms;
};

std::string batch_id(const Identity &identity, const Window &window);
std::string reading_json(const Identity &identity, const Window &window, const std::vector<Value> &values,
                         const std::vector<Status> &statuses);
std::string registration_json(const Identity &identity, const std::vector<std::string> &sensors);
// {"readings":[…]} from bodies that are already JSON.
std::string request_json(const std::vector<std::string> &bodies);

struct Rejected {
    std::string batch_id;
    std::string code;
};

struct Answer {
    // Stored by this request or an earlier one.
    std::vector<std::string> delivered;
    std::vector<Rejected> rejected;
};

// Returns false if the text is not a complete response; then ignore all of it.
bool parse_answer(const std::string &text, Answer &answer);

} // namespace homeport
