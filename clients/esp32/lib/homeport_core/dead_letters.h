// Readings that the server will never take, kept for whoever looks after the device: a line each with the server's code.
#pragma once

#include <string>

#include "queue.h"
#include "storage.h"

namespace homeport {

class DeadLetters {
public:
    // Of one file. There are two, and the older one goes when the newer is full.
    static const size_t FILE_BYTES_MAX = 32 * 1024;

    explicit DeadLetters(Storage &storage) : storage_(storage) {}

    // False when flash did not take it: then the reading has to stay in the queue.
    bool keep(const QueuedReading &reading, const std::string &code) {
        size_t bytes = 0;
        if (!storage_.size(NEWER, bytes) || (bytes >= FILE_BYTES_MAX && !storage_.replace(NEWER, OLDER))) {
            return false;
        }
        // It begins on a line of its own, whatever a write that was cut off has left.
        std::string line = "\n" + code + " " + reading.body;
        // Full flash has room without the older file.
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
