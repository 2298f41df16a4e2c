// Readings in flash until the server has them: an append-only log with a checksum on every record.
//
// A record is MAGIC, type, length (4 bytes), CRC-32 of type, length and payload (4 bytes), payload; numbers are little-endian.
//   type 1, a reading:  sequence (4), length of the id (2), id, JSON body
//   type 2, settled:    sequences (4 each): these readings need no more sending
// Whatever is not a whole record with a right checksum is passed over, byte by byte, so that neither a write that was cut off
// nor a damaged one takes its neighbours along. A read that fails is no damage: it stops the call, and nothing is dropped for it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "storage.h"

namespace homeport {

struct QueueLimits {
    // Readings that are kept; each costs 16 bytes of memory.
    size_t readings_max = 2000;
    // Bytes of readings that are kept. Flash for two and a half times as much is needed, for the log and its rewriting.
    size_t bytes_max = 256 * 1024;
};

struct QueuedReading {
    uint32_t sequence;
    std::string batch_id;
    std::string body;
};

class Queue {
public:
    Queue(Storage &storage, QueueLimits limits = QueueLimits());

    // Reads the log. When this returns false, flash could not be read: the log is as it was, and the queue takes and gives
    // nothing until another call succeeds.
    bool open();

    // Keeps a reading; it is in flash when this returns true. Where that exceeds the limits, the oldest readings go: `dropped`
    // counts them. Full flash takes none, and drops none.
    bool push(const std::string &batch_id, const std::string &body);

    // Up to `count` readings with up to `bytes_max` bytes of bodies (but one in any case), the oldest first. Fewer, or none, when
    // flash cannot be read.
    std::vector<QueuedReading> oldest(size_t count, size_t bytes_max);

    // Forgets readings, in any order. When this returns false, flash could not be written and they may come back after a restart.
    bool settle(const std::vector<uint32_t> &sequences);

    // Lets the other readings go first in `oldest`, until a restart.
    void postpone(const std::vector<uint32_t> &sequences);

    size_t length() const { return entries_.size(); }
    // Readings that had to go for newer ones since `open`.
    size_t dropped() const { return dropped_; }

private:
    struct Entry {
        uint32_t sequence;
        uint32_t offset; // of the record
        uint32_t length; // of the whole record
        bool is_postponed;
    };

    enum class Loaded { Whole, Damaged, Unread };

    bool scan(bool &is_clean);
    bool is_ready();
    bool gather(bool is_postponed, size_t count, size_t bytes_max, std::vector<QueuedReading> &readings,
                std::vector<uint32_t> &damaged);
    bool append_record(uint8_t type, const std::string &payload);
    void drop_excess();
    size_t waste() const;
    bool compact();
    void compact_if_worthwhile();
    bool copy_live(std::deque<Entry> &moved, size_t &bytes);
    static void remove_sequences(std::deque<Entry> &entries, const std::vector<uint32_t> &sequences);
    void count_live_bytes();
    Loaded load(const Entry &entry, QueuedReading &reading);

    Storage &storage_;
    QueueLimits limits_;
    std::deque<Entry> entries_;
    bool is_open_ = false;
    // A call failed in a way that leaves open what the log holds and how long it is.
    bool is_uncertain_ = false;
    uint32_t next_sequence_ = 1;
    size_t log_bytes_ = 0;
    size_t live_bytes_ = 0;
    // Waste below this is left alone, whatever share of the log it is.
    size_t compact_from_waste_ = 0;
    size_t dropped_ = 0;
};

} // namespace homeport
