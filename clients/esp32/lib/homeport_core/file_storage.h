// Storage in a directory, with calls that both POSIX and ESP-IDF's virtual file system support.
//
// The error code distinguishes a missing file from one that cannot be opened at the moment, for example for lack of memory.
#pragma once

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "storage.h"

namespace homeport {

class FileStorage : public Storage {
public:
    explicit FileStorage(const std::string &directory) : directory_(directory) {}

    bool size(const char *name, size_t &bytes) override {
        struct stat status;
        bytes = 0;
        if (stat(path(name).c_str(), &status) != 0) {
            return errno == ENOENT;
        }
        bytes = static_cast<size_t>(status.st_size);
        return true;
    }

    bool read(const char *name, size_t offset, uint8_t *into, size_t length) override {
        int file = open(path(name).c_str(), O_RDONLY);
        if (file < 0) {
            return false;
        }
        bool is_read = lseek(file, static_cast<off_t>(offset), SEEK_SET) == static_cast<off_t>(offset) &&
                       ::read(file, into, length) == static_cast<ssize_t>(length);
        close(file);
        return is_read;
    }

    bool append(const char *name, const uint8_t *bytes, size_t length) override {
        int file = open(path(name).c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (file < 0) {
            return false;
        }
        bool is_written = write(file, bytes, length) == static_cast<ssize_t>(length) && fsync(file) == 0;
        bool is_closed = close(file) == 0;
        return is_written && is_closed && sync_names();
    }

    bool replace(const char *from, const char *to) override {
        return rename(path(from).c_str(), path(to).c_str()) == 0 && sync_names();
    }

    bool remove(const char *name) override { return unlink(path(name).c_str()) == 0 || errno == ENOENT; }

protected:
    const std::string &directory() const { return directory_; }

    // Makes new, changed and removed file names durable on systems where syncing a file does not.
    virtual bool sync_names() { return true; }

private:
    std::string path(const char *name) const { return directory_ + name; }

    std::string directory_;
};

} // namespace homeport
