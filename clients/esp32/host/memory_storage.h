// In-memory files that fail like flash, and helpers shared by the tests of the core.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "queue.h"

using namespace homeport;

#define CHECK(condition)                                                                                                              \
    do {                                                                                                                          \
        if (!(condition)) {                                                                                                           \
            fprintf(stderr, "%s:%d: %s: check failed: %s\n", __FILE__, __LINE__, __func__, #condition);                              \
            exit(1);                                                                                                              \
        }                                                                                                                         \
    } while (false)

// In-memory files. After `bytes_left` more bytes or `steps_left` more changes the power fails: the write stops in the middle, and
// every later call fails. The other faults last until they are reset.
class MemoryStorage : public Storage {
public:
    std::map<std::string, std::string> files;
    size_t bytes_left = SIZE_MAX;
    size_t steps_left = SIZE_MAX;
    size_t bytes_written = 0;
    size_t steps = 0;
    bool is_off = false;
    // The number of reads before reads fail.
    size_t reads_left = SIZE_MAX;
    bool is_size_unknown = false;
    // The limit of all files together. An append beyond it fails and writes what fits, or nothing, as LittleFS does.
    size_t capacity = SIZE_MAX;
    bool is_full_append_torn = true;
    // The number of appends that write half and fail.
    size_t torn_appends = 0;
    bool is_replace_refused = false;
    // Replaces, but returns false.
    bool is_replace_doubtful = false;
    size_t replacements = 0;

    bool size(const char *name, size_t &bytes) override {
        auto file = files.find(name);
        bytes = file == files.end() ? 0 : file->second.size();
        return !is_off && !is_size_unknown;
    }

    bool read(const char *name, size_t offset, uint8_t *into, size_t length) override {
        auto file = files.find(name);
        if (is_off || reads_left == 0 || file == files.end() || offset > file->second.size() ||
            length > file->second.size() - offset) {
            return false;
        }
        reads_left -= reads_left == SIZE_MAX ? 0 : 1;
        std::copy_n(file->second.data() + offset, length, into);
        return true;
    }

    bool append(const char *name, const uint8_t *bytes, size_t length) override {
        if (!step()) {
            return false;
        }
        if (torn_appends > 0) {
            torn_appends -= 1;
            files[name].append(reinterpret_cast<const char *>(bytes), length / 2);
            return false;
        }
        size_t room = capacity - std::min(capacity, used());
        if (room < length) {
            files[name].append(reinterpret_cast<const char *>(bytes), is_full_append_torn ? room : 0);
            bytes_written += room;
            return false;
        }
        size_t count = std::min(length, bytes_left);
        files[name].append(reinterpret_cast<const char *>(bytes), count);
        bytes_left -= bytes_left == SIZE_MAX ? 0 : count;
        bytes_written += count;
        is_off = is_off || count < length;
        return count == length;
    }

    bool replace(const char *from, const char *to) override {
        if (!step() || is_replace_refused || files.count(from) == 0) {
            return false;
        }
        files[to] = files[from];
        files.erase(from);
        replacements += 1;
        return !is_replace_doubtful;
    }

    bool remove(const char *name) override {
        if (!step()) {
            return false;
        }
        files.erase(name);
        return true;
    }

    size_t used() const {
        size_t bytes = 0;
        for (const auto &file : files) {
            bytes += file.second.size();
        }
        return bytes;
    }

    void power_up() {
        is_off = false;
        bytes_left = steps_left = SIZE_MAX;
    }

private:
    bool step() {
        if (is_off || steps_left == 0) {
            is_off = true;
            return false;
        }
        steps_left -= steps_left == SIZE_MAX ? 0 : 1;
        steps += 1;
        return true;
    }
};

inline std::vector<std::string> ids_of(Queue &queue) {
    std::vector<std::string> ids;
    for (const QueuedReading &reading : queue.oldest(1000000, SIZE_MAX)) {
        ids.push_back(reading.batch_id);
        CHECK(reading.body == "{\"of\":\"" + reading.batch_id + "\"}");
    }
    return ids;
}

inline bool push(Queue &queue, const std::string &id) { return queue.push(id, "{\"of\":\"" + id + "\"}"); }

inline uint32_t sequence_of(Queue &queue, size_t at) { return queue.oldest(at + 1, SIZE_MAX)[at].sequence; }

using Ids = std::vector<std::string>;
