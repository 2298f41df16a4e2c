// Storage in a directory of the host.
#pragma once

#include "file_storage.h"

class PosixStorage : public homeport::FileStorage {
public:
    explicit PosixStorage(const std::string &directory) : FileStorage(directory) {}

protected:
    bool sync_names() override {
        int names = open(directory().c_str(), O_RDONLY);
        bool is_synced = names >= 0 && fsync(names) == 0;
        if (names >= 0) {
            close(names);
        }
        return is_synced;
    }
};
