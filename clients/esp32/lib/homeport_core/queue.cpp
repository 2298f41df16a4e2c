#include "queue.h"

#include <algorithm>

#include "crc32.h"

namespace homeport {

namespace {

const char *const LOG = "/queue.log";
const char *const NEW_LOG = "/queue.new";
const uint8_t MAGIC = 0xA7;
const uint8_t TYPE_READING = 1;
const uint8_t TYPE_SETTLED = 2;
const size_t HEADER_BYTES = 10;
// Sequence and length of the id.
const size_t READING_BYTES_MIN = 6;
const size_t ID_BYTES_MAX = 256;
// A reading has at most 64 values.
const size_t PAYLOAD_BYTES_MAX = 64 * 1024;
const size_t SETTLED_PER_RECORD_MAX = PAYLOAD_BYTES_MAX / 4;
// Compaction collects this much per write, because each write costs a block of flash.
const size_t COPY_BYTES_MIN = 4 * 1024;
// Compaction needs at least this much waste.
const size_t WASTE_BYTES_MIN = 4 * 1024;

void put_u16(std::string &out, uint16_t value) {
    out.push_back(static_cast<char>(value & 0xFF));
    out.push_back(static_cast<char>(value >> 8));
}

void put_u32(std::string &out, uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) {
        out.push_back(static_cast<char>((value >> shift) & 0xFF));
    }
}

uint32_t get_u32(const uint8_t *bytes) {
    return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 | static_cast<uint32_t>(bytes[2]) << 16 |
           static_cast<uint32_t>(bytes[3]) << 24;
}

uint16_t get_u16(const uint8_t *bytes) { return static_cast<uint16_t>(bytes[0] | bytes[1] << 8); }

std::string make_record(uint8_t type, const std::string &payload) {
    std::string record;
    record.reserve(HEADER_BYTES + payload.size());
    record.push_back(static_cast<char>(MAGIC));
    record.push_back(static_cast<char>(type));
    put_u32(record, static_cast<uint32_t>(payload.size()));
    uint32_t crc = crc32(0, reinterpret_cast<const uint8_t *>(record.data()) + 1, 5);
    crc = crc32(crc, reinterpret_cast<const uint8_t *>(payload.data()), payload.size());
    put_u32(record, crc);
    record += payload;
    return record;
}

enum class Record { Whole, Damaged, Unread };

// Reads the payload of the record at `offset`, which ends at `end` at the latest.
Record read_record(Storage &storage, size_t offset, size_t end, uint8_t &type, std::vector<uint8_t> &payload) {
    uint8_t header[HEADER_BYTES];
    if (end - offset < HEADER_BYTES) {
        return Record::Damaged;
    }
    if (!storage.read(LOG, offset, header, HEADER_BYTES)) {
        return Record::Unread;
    }
    type = header[1];
    size_t length = get_u32(header + 2);
    if (header[0] != MAGIC || (type != TYPE_READING && type != TYPE_SETTLED) || length > PAYLOAD_BYTES_MAX ||
        length > end - offset - HEADER_BYTES) {
        return Record::Damaged;
    }
    payload.resize(length);
    if (length > 0 && !storage.read(LOG, offset + HEADER_BYTES, payload.data(), length)) {
        return Record::Unread;
    }
    bool is_whole = crc32(crc32(0, header + 1, 5), payload.data(), length) == get_u32(header + 6);
    return is_whole ? Record::Whole : Record::Damaged;
}

} // namespace

Queue::Queue(Storage &storage, QueueLimits limits) : storage_(storage), limits_(limits) {}

bool Queue::open() {
    is_open_ = false;
    is_uncertain_ = false;
    entries_.clear();
    dropped_ = 0;
    next_sequence_ = 1;
    compact_from_waste_ = 0;
    bool is_clean = true;
    if (!scan(is_clean)) {
        return false;
    }
    is_open_ = true;
    // Delete the result of an interrupted compaction; the old log is still valid.
    storage_.remove(NEW_LOG);
    // Flash may be too full to compact. Readings are then served from the log as it is, and make room once they are delivered.
    if (is_clean) {
        compact_if_worthwhile();
    } else {
        compact();
    }
    return true;
}

// Loads the index of the log; the index stays unchanged if a read fails.
bool Queue::scan(bool &is_clean) {
    size_t log_bytes = 0;
    if (!storage_.size(LOG, log_bytes)) {
        return false;
    }
    std::deque<Entry> found;
    uint32_t next_sequence = next_sequence_;
    bool has_sequence = is_open_;
    size_t offset = 0;
    std::vector<uint8_t> payload;
    while (offset < log_bytes) {
        uint8_t type = 0;
        Record record = read_record(storage_, offset, log_bytes, type, payload);
        if (record == Record::Unread) {
            return false;
        }
        if (record == Record::Damaged) {
            is_clean = false;
            offset += 1;
            continue;
        }
        size_t length = HEADER_BYTES + payload.size();
        if (type == TYPE_READING && payload.size() >= READING_BYTES_MIN) {
            uint32_t sequence = get_u32(payload.data());
            found.push_back(Entry{sequence, static_cast<uint32_t>(offset), static_cast<uint32_t>(length), false});
            // Sequences wrap around: the later of two is ahead by less than half of the range.
            if (!has_sequence || static_cast<int32_t>(sequence + 1 - next_sequence) > 0) {
                next_sequence = sequence + 1;
                has_sequence = true;
            }
        } else if (type == TYPE_SETTLED) {
            std::vector<uint32_t> sequences;
            for (size_t at = 0; at + 4 <= payload.size(); at += 4) {
                sequences.push_back(get_u32(payload.data() + at));
            }
            remove_sequences(found, sequences);
        }
        offset += length;
    }
    entries_.swap(found);
    next_sequence_ = next_sequence;
    log_bytes_ = log_bytes;
    count_live_bytes();
    return true;
}

// Returns whether the index matches the log. If that is uncertain, reloads the log; settled readings stay settled.
bool Queue::is_ready() {
    if (!is_open_ || !is_uncertain_) {
        return is_open_;
    }
    std::vector<uint32_t> known;
    for (const Entry &entry : entries_) {
        known.push_back(entry.sequence);
    }
    bool is_clean = true;
    if (!scan(is_clean)) {
        return false;
    }
    std::sort(known.begin(), known.end());
    auto is_forgotten = [&](const Entry &entry) { return !std::binary_search(known.begin(), known.end(), entry.sequence); };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_forgotten), entries_.end());
    count_live_bytes();
    is_uncertain_ = false;
    return true;
}

bool Queue::push(const std::string &batch_id, const std::string &body) {
    size_t length = HEADER_BYTES + READING_BYTES_MIN + batch_id.size() + body.size();
    if (batch_id.size() > ID_BYTES_MAX || length > HEADER_BYTES + PAYLOAD_BYTES_MAX || length > limits_.bytes_max || !is_ready()) {
        return false;
    }
    // A failure uses up the sequence too, because the whole record may be in the log.
    uint32_t sequence = next_sequence_++;
    std::string payload;
    put_u32(payload, sequence);
    put_u16(payload, static_cast<uint16_t>(batch_id.size()));
    payload += batch_id;
    payload += body;
    bool is_written = append_record(TYPE_READING, payload);
    // If flash is full, compaction may make room.
    if (!is_written && waste() > 0 && waste() >= compact_from_waste_ && compact()) {
        is_written = append_record(TYPE_READING, payload);
    }
    if (!is_written) {
        return false;
    }
    entries_.push_back(Entry{sequence, static_cast<uint32_t>(log_bytes_ - length), static_cast<uint32_t>(length), false});
    live_bytes_ += length;
    drop_excess();
    return true;
}

// Enforces the limits. The newest reading is already in flash, so nothing is dropped without a replacement.
void Queue::drop_excess() {
    std::vector<uint32_t> excess;
    size_t bytes = live_bytes_;
    for (size_t at = 0; at < entries_.size(); ++at) {
        if (entries_.size() - at <= limits_.readings_max && bytes <= limits_.bytes_max) {
            break;
        }
        excess.push_back(entries_[at].sequence);
        bytes -= entries_[at].length;
    }
    settle(excess);
    dropped_ += excess.size();
}

std::vector<QueuedReading> Queue::oldest(size_t count, size_t bytes_max) {
    std::vector<QueuedReading> readings;
    std::vector<uint32_t> damaged;
    if (!is_ready() || !gather(false, count, bytes_max, readings, damaged) || !gather(true, count, bytes_max, readings, damaged)) {
        return readings;
    }
    // A reading in damaged flash must not block the others forever.
    if (!damaged.empty()) {
        settle(damaged);
        dropped_ += damaged.size();
    }
    return readings;
}

// Appends either the postponed or the other readings; returns false if one cannot be read.
bool Queue::gather(bool is_postponed, size_t count, size_t bytes_max, std::vector<QueuedReading> &readings,
                   std::vector<uint32_t> &damaged) {
    size_t bytes = 0;
    for (const QueuedReading &reading : readings) {
        bytes += reading.body.size();
    }
    for (const Entry &entry : entries_) {
        if (readings.size() >= count) {
            break;
        }
        if (entry.is_postponed != is_postponed) {
            continue;
        }
        QueuedReading reading;
        Loaded loaded = load(entry, reading);
        if (loaded == Loaded::Unread) {
            return false;
        }
        if (loaded == Loaded::Damaged) {
            damaged.push_back(entry.sequence);
            continue;
        }
        bytes += reading.body.size();
        if (!readings.empty() && bytes > bytes_max) {
            break;
        }
        readings.push_back(reading);
    }
    return true;
}

bool Queue::settle(const std::vector<uint32_t> &sequences) {
    if (sequences.empty()) {
        return true;
    }
    bool is_written = is_ready();
    for (size_t at = 0; at < sequences.size() && is_written; at += SETTLED_PER_RECORD_MAX) {
        std::string payload;
        for (size_t of = at; of < std::min(sequences.size(), at + SETTLED_PER_RECORD_MAX); ++of) {
            put_u32(payload, sequences[of]);
        }
        is_written = append_record(TYPE_SETTLED, payload);
    }
    remove_sequences(entries_, sequences);
    count_live_bytes();
    if (!is_written) {
        // If flash is too full for the record, a compacted log without these readings may fit; without any readings, the log is deleted.
        return compact();
    }
    compact_if_worthwhile();
    return true;
}

void Queue::postpone(const std::vector<uint32_t> &sequences) {
    for (Entry &entry : entries_) {
        bool is_named = std::find(sequences.begin(), sequences.end(), entry.sequence) != sequences.end();
        entry.is_postponed = entry.is_postponed || is_named;
    }
}

bool Queue::append_record(uint8_t type, const std::string &payload) {
    std::string record = make_record(type, payload);
    if (storage_.append(LOG, reinterpret_cast<const uint8_t *>(record.data()), record.size())) {
        log_bytes_ += record.size();
        return true;
    }
    // Any part of the record may be in the log.
    is_uncertain_ = !storage_.size(LOG, log_bytes_);
    return false;
}

size_t Queue::waste() const { return log_bytes_ - std::min(log_bytes_, live_bytes_); }

void Queue::compact_if_worthwhile() {
    if (waste() >= std::max({WASTE_BYTES_MIN, live_bytes_ / 2, compact_from_waste_})) {
        compact();
    }
}

// Writes the live records to a new log, which then replaces the old one. If that fails, the old one stays.
bool Queue::compact() {
    if (!is_ready() || !storage_.remove(NEW_LOG)) {
        return false;
    }
    std::deque<Entry> moved;
    size_t bytes = 0;
    bool is_copied = copy_live(moved, bytes);
    if (is_copied && (moved.empty() ? storage_.remove(LOG) : storage_.replace(NEW_LOG, LOG))) {
        entries_.swap(moved);
        log_bytes_ = bytes;
        compact_from_waste_ = 0;
        return true;
    }
    // Every attempt wears flash, so the next one waits for more waste.
    compact_from_waste_ = waste() + WASTE_BYTES_MIN;
    // After a failed rename, either log may have the name.
    is_uncertain_ = is_uncertain_ || is_copied;
    // A partial log must not use room that readings need.
    storage_.remove(NEW_LOG);
    return false;
}

// Copies the live records to the new log, and returns their offsets and its length.
bool Queue::copy_live(std::deque<Entry> &moved, size_t &bytes) {
    std::vector<uint8_t> chunk;
    auto write = [&] {
        bool is_written = chunk.empty() || storage_.append(NEW_LOG, chunk.data(), chunk.size());
        chunk.clear();
        return is_written;
    };
    for (const Entry &entry : entries_) {
        size_t at = chunk.size();
        chunk.resize(at + entry.length);
        if (!storage_.read(LOG, entry.offset, chunk.data() + at, entry.length)) {
            return false;
        }
        moved.push_back(entry);
        moved.back().offset = static_cast<uint32_t>(bytes);
        bytes += entry.length;
        if (chunk.size() >= COPY_BYTES_MIN && !write()) {
            return false;
        }
    }
    return write();
}

void Queue::remove_sequences(std::deque<Entry> &entries, const std::vector<uint32_t> &sequences) {
    auto is_named = [&](const Entry &entry) {
        return std::find(sequences.begin(), sequences.end(), entry.sequence) != sequences.end();
    };
    entries.erase(std::remove_if(entries.begin(), entries.end(), is_named), entries.end());
}

void Queue::count_live_bytes() {
    live_bytes_ = 0;
    for (const Entry &entry : entries_) {
        live_bytes_ += entry.length;
    }
}

Queue::Loaded Queue::load(const Entry &entry, QueuedReading &reading) {
    uint8_t type = 0;
    std::vector<uint8_t> payload;
    Record record = read_record(storage_, entry.offset, entry.offset + entry.length, type, payload);
    if (record == Record::Unread) {
        return Loaded::Unread;
    }
    bool is_entry = record == Record::Whole && type == TYPE_READING && payload.size() == entry.length - HEADER_BYTES &&
                    get_u32(payload.data()) == entry.sequence;
    size_t id_length = is_entry ? get_u16(payload.data() + 4) : 0;
    if (!is_entry || id_length > payload.size() - READING_BYTES_MIN) {
        return Loaded::Damaged;
    }
    const char *text = reinterpret_cast<const char *>(payload.data()) + READING_BYTES_MIN;
    reading.sequence = entry.sequence;
    reading.batch_id.assign(text, id_length);
    reading.body.assign(text + id_length, payload.size() - READING_BYTES_MIN - id_length);
    return Loaded::Whole;
}

} // namespace homeport
