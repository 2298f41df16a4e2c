#include "json.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace homeport {

namespace {

const int DEPTH_MAX = 16;

std::string quoted(const std::string &text) {
    std::string out = "\"";
    for (char c : text) {
        unsigned char byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(c);
        } else if (byte < 0x20) {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", byte);
            out += escaped;
        } else {
            out.push_back(c);
        }
    }
    out.push_back('"');
    return out;
}

std::string integer(int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%lld", static_cast<long long>(number));
    return text;
}

std::string decimal(double number) {
    char text[32];
    // Seven digits exceed the precision of any sensor.
    snprintf(text, sizeof text, "%.7g", number);
    return text;
}

// Reads one JSON text from left to right. After an error `is_good` stays false and every call returns at once.
class Reader {
public:
    explicit Reader(const std::string &text) : text_(text) {}

    bool is_good() const { return is_good_; }

    bool is_at_end() {
        skip_space();
        return at_ == text_.size();
    }

    // Consumes `c` if it is the next character.
    bool take(char c) {
        skip_space();
        if (is_good_ && at_ < text_.size() && text_[at_] == c) {
            ++at_;
            return true;
        }
        return false;
    }

    void expect(char c) {
        if (!take(c)) {
            is_good_ = false;
        }
    }

    std::string string() {
        std::string out;
        expect('"');
        while (is_good_) {
            if (at_ == text_.size()) {
                is_good_ = false;
                break;
            }
            char c = text_[at_++];
            if (c == '"') {
                return out;
            }
            if (static_cast<unsigned char>(c) < 0x20) {
                is_good_ = false;
            } else if (c == '\\') {
                escape(out);
            } else {
                out.push_back(c);
            }
        }
        return out;
    }

    // Calls `member` with each name of an object; it must read the value.
    template <typename Member> void object(Member member) {
        expect('{');
        if (take('}')) {
            return;
        }
        do {
            std::string name = string();
            expect(':');
            if (is_good_) {
                member(name);
            }
        } while (is_good_ && take(','));
        expect('}');
    }

    // Calls `element` for each element of an array; it must read it.
    template <typename Element> void array(Element element) {
        expect('[');
        if (take(']')) {
            return;
        }
        do {
            if (is_good_) {
                element();
            }
        } while (is_good_ && take(','));
        expect(']');
    }

    // Reads a string; any other value is skipped and returned as empty.
    std::string string_or_skip() {
        skip_space();
        if (at_ < text_.size() && text_[at_] == '"') {
            return string();
        }
        skip(0);
        return std::string();
    }

    void skip(int depth) {
        skip_space();
        if (depth > DEPTH_MAX || at_ == text_.size()) {
            is_good_ = false;
            return;
        }
        char c = text_[at_];
        if (c == '"') {
            string();
        } else if (c == '{') {
            object([&](const std::string &) { skip(depth + 1); });
        } else if (c == '[') {
            array([&] { skip(depth + 1); });
        } else if (!word("true") && !word("false") && !word("null")) {
            number();
        }
    }

private:
    void skip_space() {
        while (at_ < text_.size() && strchr(" \t\r\n", text_[at_]) != nullptr && text_[at_] != '\0') {
            ++at_;
        }
    }

    bool word(const char *word) {
        size_t length = strlen(word);
        if (text_.compare(at_, length, word) != 0) {
            return false;
        }
        at_ += length;
        return true;
    }

    void number() {
        size_t start = at_;
        while (at_ < text_.size() && text_[at_] != '\0' && strchr("+-.eE0123456789", text_[at_]) != nullptr) {
            ++at_;
        }
        if (at_ == start) {
            is_good_ = false;
        }
    }

    void escape(std::string &out) {
        static const char *const NAMES = "\"\\/bfnrt";
        static const char *const MEANINGS = "\"\\/\b\f\n\r\t";
        char c = at_ < text_.size() ? text_[at_++] : '\0';
        const char *name = c == '\0' ? nullptr : strchr(NAMES, c);
        if (name != nullptr) {
            out.push_back(MEANINGS[name - NAMES]);
        } else if (c == 'u' && text_.size() - at_ >= 4) {
            std::string digits = text_.substr(at_, 4);
            is_good_ = is_good_ && digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
            at_ += 4;
            utf8(out, static_cast<uint32_t>(strtoul(digits.c_str(), nullptr, 16)));
        } else {
            is_good_ = false;
        }
    }

    // Ids are ASCII. Surrogate pairs in a reason become two placeholders, which are never compared.
    static void utf8(std::string &out, uint32_t code) {
        if (code >= 0xD800 && code < 0xE000) {
            code = 0xFFFD;
        }
        if (code < 0x80) {
            out.push_back(static_cast<char>(code));
        } else if (code < 0x800) {
            out.push_back(static_cast<char>(0xC0 | code >> 6));
            out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
        } else {
            out.push_back(static_cast<char>(0xE0 | code >> 12));
            out.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
            out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
        }
    }

    const std::string &text_;
    size_t at_ = 0;
    bool is_good_ = true;
};

} // namespace

std::string batch_id(const Identity &identity, const Window &window) {
    return identity.hardware_id + "_" + identity.boot_id + "_" + integer(window.start_ms) + "_" + integer(window.end_ms);
}

std::string reading_json(const Identity &identity, const Window &window, const std::vector<Value> &values,
                         const std::vector<Status> &statuses) {
    std::string out = "{\"batch_id\":" + quoted(batch_id(identity, window)) + ",\"hardware_id\":" + quoted(identity.hardware_id) +
                      ",\"boot_id\":" + quoted(identity.boot_id) +
                      ",\"firmware_version\":" + quoted(identity.firmware_version) +
                      ",\"timestamp_ms\":" + integer(window.end_ms) + ",\"sensors\":{";
    const char *separator = "";
    for (const Value &value : values) {
        if (std::isfinite(value.number)) {
            out += separator + quoted(value.name) + ":" + decimal(value.number);
            separator = ",";
        }
    }
    out += "},\"sensor_status\":{";
    separator = "";
    for (const Status &status : statuses) {
        out += separator + quoted(status.sensor) + (status.is_ok ? ":\"ok\"" : ":\"error\"");
        separator = ",";
    }
    return out + "}}";
}

std::string registration_json(const Identity &identity, const std::vector<std::string> &sensors) {
    std::string out = "{\"hardware_id\":" + quoted(identity.hardware_id) + ",\"boot_id\":" + quoted(identity.boot_id) +
                      ",\"firmware_version\":" + quoted(identity.firmware_version) + ",\"capabilities\":{\"sensors\":[";
    const char *separator = "";
    for (const std::string &sensor : sensors) {
        out += separator + quoted(sensor);
        separator = ",";
    }
    return out + "],\"features\":{\"offline_buffering\":true}}}";
}

std::string request_json(const std::vector<std::string> &bodies) {
    std::string out = "{\"readings\":[";
    const char *separator = "";
    for (const std::string &body : bodies) {
        out += separator;
        out += body;
        separator = ",";
    }
    return out + "]}";
}

bool parse_answer(const std::string &text, Answer &answer) {
    answer = Answer();
    bool has_acknowledged = false;
    bool has_duplicate = false;
    Reader reader(text);
    auto take_ids = [&] { answer.delivered.push_back(reader.string()); };
    auto take_result = [&] {
        Rejected result;
        std::string status;
        reader.object([&](const std::string &name) {
            std::string value = reader.string_or_skip();
            if (name == "batch_id") {
                result.batch_id = value;
            } else if (name == "status") {
                status = value;
            } else if (name == "code") {
                result.code = value;
            }
        });
        if (status == "rejected" && !result.batch_id.empty()) {
            answer.rejected.push_back(result);
        }
    };
    reader.object([&](const std::string &name) {
        if (name == "acknowledged_batch_ids") {
            has_acknowledged = true;
            reader.array(take_ids);
        } else if (name == "duplicate_batch_ids") {
            has_duplicate = true;
            reader.array(take_ids);
        } else if (name == "results") {
            reader.array(take_result);
        } else {
            reader.skip(0);
        }
    });
    if (!reader.is_good() || !reader.is_at_end() || !has_acknowledged || !has_duplicate) {
        answer = Answer();
        return false;
    }
    return true;
}

} // namespace homeport
