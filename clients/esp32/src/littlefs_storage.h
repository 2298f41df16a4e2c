// Storage in the device's flash. LittleFS makes appends durable when the file is synced, and renames atomically.
#pragma once

#include "file_storage.h"

// The mount point and the partition of LittleFS, both Arduino's defaults.
static const char *const LITTLEFS_PATH = "/littlefs";
static const char *const LITTLEFS_PARTITION = "spiffs";

class LittleFsStorage : public homeport::FileStorage {
public:
    LittleFsStorage() : FileStorage(LITTLEFS_PATH) {}
};
