// CRC-32 (IEEE 802.3) without a table: the queue is small, and flash is slower than the computation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace homeport {

// Continues from `crc`; start with 0.
inline uint32_t crc32(uint32_t crc, const uint8_t *bytes, size_t length) {
    crc = ~crc;
    for (size_t at = 0; at < length; ++at) {
        crc ^= bytes[at];
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1) ^ ((crc & 1) ? 0xEDB88320u : 0u);
        }
    }
    return ~crc;
}

} // namespace homeport
