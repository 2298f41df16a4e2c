// Storage in a directory, for the host.
#pragma once

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "storage.h"

class PosixStorage : public homeport::Storage {
public:
    explicit PosixStorage(const std::string &directory) : directory_(directory) {}

    size_t size(const char *name) override {
        struct stat status;
        return stat(path(name).c_str(), &status) == 0 ? static_cast<size_t>(status.st_size) : 0;
    }

    bool read(const char *name, size_t offset, uint8_t *into, size_t length) override {
        int file = open(path(name).c_str(), O_RDONLY);
        if (file < 0) {
            return false;
        }
        ssize_t count = pread(file, into, length, static_cast<off_t>(offset));
        close(file);
        return count == static_cast<ssize_t>(length);
    }

    bool append(const char *name, const uint8_t *bytes, size_t length) override {
        int file = open(path(name).c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (file < 0) {
            return false;
        }
        bool is_written = write(file, bytes, length) == static_cast<ssize_t>(length) && fsync(file) == 0;
        close(file);
        return is_written && sync_directory();
    }

    bool replace(const char *from, const char *to) override {
        return rename(path(from).c_str(), path(to).c_str()) == 0 && sync_directory();
    }

    bool remove(const char *name) override { return unlink(path(name).c_str()) == 0 || errno == ENOENT; }

private:
    std::string path(const char *name) const { return directory_ + name; }

    bool sync_directory() {
        int directory = open(directory_.c_str(), O_RDONLY);
        bool is_synced = directory >= 0 && fsync(directory) == 0;
        if (directory >= 0) {
            close(directory);
        }
        return is_synced;
    }

    std::string directory_;
};
