// Readings that the server rejected, kept for inspection: one line each with the server's error code.
#pragma once

#include <string>

#include "queue.h"
#include "storage.h"

namespace homeport {

class DeadLetters {
public:
    // The limit of each of the two files. The older file is deleted when the newer one is full.
    static const size_t FILE_BYTES_MAX = 32 * 1024;

    explicit DeadLetters(Storage &storage) : storage_(storage) {}

    // Returns false if the write failed; the reading must then stay in the queue.
    bool keep(const QueuedReading &reading, const std::string &code) {
        size_t bytes = 0;
        if (!storage_.size(NEWER, bytes) || (bytes >= FILE_BYTES_MAX && !storage_.replace(NEWER, OLDER))) {
            return false;
        }
        // Starts a new line, because an interrupted write may have left a partial one.
        std::string line = "\n" + code + " " + reading.body;
        // If flash is full, deleting the older file makes room.
        return append(line) || (storage_.remove(OLDER) && append(line));
    }

private:
    static constexpr const char *NEWER = "/rejected.log";
    static constexpr const char *OLDER = "/rejected.old";

    bool append(const std::string &line) {
        return storage_.append(NEWER, reinterpret_cast<const uint8_t *>(line.data()), line.size());
    }

    Storage &storage_;
};

} // namespace homeport
