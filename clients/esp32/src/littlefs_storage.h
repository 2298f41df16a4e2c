// Storage in the flash of the device. LittleFS makes an append durable when the file is closed, and renames atomically.
#pragma once

#include <LittleFS.h>

#include "storage.h"

class LittleFsStorage : public homeport::Storage {
public:
    size_t size(const char *name) override {
        if (!LittleFS.exists(name)) {
            return 0;
        }
        File file = LittleFS.open(name, FILE_READ);
        return file ? file.size() : 0;
    }

    bool read(const char *name, size_t offset, uint8_t *into, size_t length) override {
        File file = LittleFS.open(name, FILE_READ);
        return file && file.seek(offset) && file.read(into, length) == length;
    }

    bool append(const char *name, const uint8_t *bytes, size_t length) override {
        size_t before = size(name);
        File file = LittleFS.open(name, FILE_APPEND);
        bool is_written = file && file.write(bytes, length) == length;
        file.close();
        // Closing says nothing about a full or failing flash; the length does.
        return is_written && size(name) == before + length;
    }

    bool replace(const char *from, const char *to) override { return LittleFS.rename(from, to); }

    bool remove(const char *name) override { return !LittleFS.exists(name) || LittleFS.remove(name); }
};
