// The LittleFS partition. The formatting mark is in the settings partition (NVS).
#pragma once

#include <LittleFS.h>
#include <Preferences.h>
#include <algorithm>
#include <esp_partition.h>

#include "littlefs_storage.h"
#include "volume.h"

class LittleFsVolume : public homeport::Volume {
public:
    bool mount() override { return LittleFS.begin(false, LITTLEFS_PATH, OPEN_FILES_MAX, LITTLEFS_PARTITION); }

    bool is_blank() override {
        const esp_partition_t *partition =
            esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_ANY, LITTLEFS_PARTITION);
        if (partition == nullptr) {
            return false;
        }
        uint8_t bytes[READ_BYTES];
        for (size_t offset = 0; offset < partition->size; offset += READ_BYTES) {
            size_t count = std::min<size_t>(READ_BYTES, partition->size - offset);
            if (esp_partition_read(partition, offset, bytes, count) != ESP_OK ||
                !std::all_of(bytes, bytes + count, [](uint8_t byte) { return byte == ERASED; })) {
                return false;
            }
        }
        return true;
    }

    bool format() override { return LittleFS.format(); }

    bool has_mark() override {
        Preferences settings;
        bool has = settings.begin(NAMESPACE, true) && settings.getBool(MARK, false);
        settings.end();
        return has;
    }

    bool set_mark() override {
        Preferences settings;
        bool is_set = settings.begin(NAMESPACE, false) && settings.putBool(MARK, true) > 0;
        settings.end();
        return is_set;
    }

    bool clear_mark() override {
        Preferences settings;
        bool is_clear = settings.begin(NAMESPACE, false) && settings.remove(MARK);
        settings.end();
        return is_clear;
    }

private:
    static constexpr uint8_t OPEN_FILES_MAX = 4;
    static constexpr size_t READ_BYTES = 1024;
    static constexpr uint8_t ERASED = 0xFF;
    static constexpr const char *NAMESPACE = "homeport";
    static constexpr const char *MARK = "formatting";
};
