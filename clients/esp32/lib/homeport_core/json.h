// JSON as it is sent and as the answer is read: a writer for readings, and a reader for the one answer that a sensor gets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace homeport {

struct Value {
    std::string name;
    double number; // a value that is not finite is left out
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
// {"readings":[…]} of bodies that are JSON already.
std::string request_json(const std::vector<std::string> &bodies);

struct Rejected {
    std::string batch_id;
    std::string code;
};

struct Answer {
    // In either list: stored now, or stored before.
    std::vector<std::string> delivered;
    std::vector<Rejected> rejected;
};

// False when the text is not the whole answer: then nothing in it may be believed.
bool parse_answer(const std::string &text, Answer &answer);

} // namespace homeport
