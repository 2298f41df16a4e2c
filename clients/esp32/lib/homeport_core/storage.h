// The file system operations that the queue needs. `file_storage.h` implements them with files, `host/memory_storage.h` for tests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace homeport {

class Storage {
public:
    virtual ~Storage() = default;

    // The length of a file in bytes, 0 if it does not exist. Returns false on an error.
    virtual bool size(const char *name, size_t &bytes) = 0;
    // Reads exactly `length` bytes within the size of the file. Returns false on an error, which does not mean damage.
    virtual bool read(const char *name, size_t offset, uint8_t *into, size_t length) = 0;
    // Appends bytes. If it returns true, they survive a power cut; if false, any part of them may be in the file.
    virtual bool append(const char *name, const uint8_t *bytes, size_t length) = 0;
    // Renames a file over another one. A power cut or a failure leaves the old or the new one.
    virtual bool replace(const char *from, const char *to) = 0;
    // Deletes a file; returns true if it does not exist.
    virtual bool remove(const char *name) = 0;
};

} // namespace homeport
