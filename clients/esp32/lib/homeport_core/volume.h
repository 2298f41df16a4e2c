// Mounts the file system of a board, and makes one on a board that never had one.
#pragma once

namespace homeport {

class Volume {
public:
    virtual ~Volume() = default;

    virtual bool mount() = 0;
    // Whether every byte of its flash is known to be erased.
    virtual bool is_blank() = 0;
    virtual bool format() = 0;

    // A mark outside of this flash: it is being formatted and has never held a reading.
    virtual bool has_mark() = 0;
    virtual bool set_mark() = 0;
    virtual bool clear_mark() = 0;
};

// Formats blank flash, and flash whose first formatting was cut off. Anything else that cannot be mounted may hold readings and is
// left as it is.
inline bool mount_or_format(Volume &volume) {
    if (!volume.mount()) {
        bool may_format = volume.has_mark() || (volume.is_blank() && volume.set_mark());
        if (!may_format || !volume.format() || !volume.mount()) {
            return false;
        }
    }
    // IMPORTANT: the mark goes before the first reading comes. With the mark, the readings would go at the next failure to mount.
    return !volume.has_mark() || volume.clear_mark();
}

} // namespace homeport
