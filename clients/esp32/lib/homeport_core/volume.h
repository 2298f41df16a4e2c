// Mounts the board's file system, and formats flash on a new board.
#pragma once

namespace homeport {

class Volume {
public:
    virtual ~Volume() = default;

    virtual bool mount() = 0;
    // Whether every byte of the flash is erased.
    virtual bool is_blank() = 0;
    virtual bool format() = 0;

    // A mark outside of this flash: formatting has started, and the flash has never held a reading.
    virtual bool has_mark() = 0;
    virtual bool set_mark() = 0;
    virtual bool clear_mark() = 0;
};

// Formats blank flash, and flash whose first formatting was interrupted. Any other flash that cannot be mounted may hold readings and
// is left unchanged.
inline bool mount_or_format(Volume &volume) {
    if (!volume.mount()) {
        bool may_format = volume.has_mark() || (volume.is_blank() && volume.set_mark());
        if (!may_format || !volume.format() || !volume.mount()) {
            return false;
        }
    }
    // IMPORTANT: the mark must be cleared before the first reading is stored. Otherwise the next failure to mount would format the flash.
    return !volume.has_mark() || volume.clear_mark();
}

} // namespace homeport
