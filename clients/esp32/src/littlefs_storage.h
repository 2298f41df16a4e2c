// Storage in the flash of the device. LittleFS makes an append durable when the file is synced, and renames atomically.
#pragma once

#include "file_storage.h"

// Where LittleFS is mounted, and the partition that it is in: both are Arduino's defaults.
static const char *const LITTLEFS_PATH = "/littlefs";
static const char *const LITTLEFS_PARTITION = "spiffs";

class LittleFsStorage : public homeport::FileStorage {
public:
    LittleFsStorage() : FileStorage(LITTLEFS_PATH) {}
};
