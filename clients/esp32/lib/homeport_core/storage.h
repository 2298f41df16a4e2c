// What the queue needs of a file system. `file_storage.h` has it for files, `host/memory_storage.h` for tests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace homeport {

class Storage {
public:
    virtual ~Storage() = default;

    // The length of a file in bytes, 0 when there is none; false when that cannot be told.
    virtual bool size(const char *name, size_t &bytes) = 0;
    // Reads exactly `length` bytes of those that `size` told of; false when it fails, which says nothing about what is stored.
    virtual bool read(const char *name, size_t offset, uint8_t *into, size_t length) = 0;
    // Adds bytes at the end. They survive a power cut when this returns true; when it returns false, any part of them may be
    // in the file.
    virtual bool append(const char *name, const uint8_t *bytes, size_t length) = 0;
    // Gives a file the name of another, which is replaced. A power cut or a failure leaves the old one or the new one.
    virtual bool replace(const char *from, const char *to) = 0;
    // True as well when there is no such file.
    virtual bool remove(const char *name) = 0;
};

} // namespace homeport
