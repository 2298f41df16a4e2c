// A preloaded library that stands between a process and the files below DISK_DIR.
//
// It can fail: the DISK_AT-th operation of the kind DISK_KIND (write, sync, journal-sync or any) and, unless
// DISK_ONCE is set, all later ones, in the way of DISK_DO: eio, enospc (the first write is cut short,
// as a filling disk does it), torn (half of the write, then the process ends) or exit (the process
// ends before the operation). DISK_TALLY names a file that gets the number of operations seen.
//
// It can record: every change goes to DISK_LOG in one total order, with the acknowledgements that the
// process appends to DISK_ACKS, eight bytes each. `power_cut.rs` reads that log.
//
// DISK_FROM and DISK_UNTIL name files: operations are counted and fail only from when the first exists, and
// do not fail any more once the second does.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define ENDED_BY_US 70
enum kind { KIND_WRITE, KIND_SYNC, KIND_OTHER };
enum verdict { GO_ON, FAIL, CUT_SHORT, TEAR };

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int ready, log_fd = -1, any_kind, wanted_kind, journals_only, once, fault_errno, ends, tears, filling;
static char root[PATH_MAX], acks[PATH_MAX], tally[PATH_MAX], from[PATH_MAX], until[PATH_MAX];
static uint64_t fault_at, seen, syncs;

#define NEXT(name) \
  static __typeof__(&name) next; \
  if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static void get(const char *name, char *into) {
  const char *value = getenv(name);
  if (value) snprintf(into, PATH_MAX, "%s", value);
}

static void prepare(void) {
  if (ready) return;
  ready = 1;
  get("DISK_DIR", root);
  get("DISK_ACKS", acks);
  get("DISK_TALLY", tally);
  get("DISK_FROM", from);
  get("DISK_UNTIL", until);
  const char *at = getenv("DISK_AT"), *how = getenv("DISK_DO"), *kind = getenv("DISK_KIND"),
             *log = getenv("DISK_LOG");
  if (at) fault_at = strtoull(at, 0, 10);
  any_kind = !kind || !strcmp(kind, "any");
  journals_only = kind && !strcmp(kind, "journal-sync");
  wanted_kind = journals_only || (kind && !strcmp(kind, "sync")) ? KIND_SYNC : KIND_WRITE;
  once = getenv("DISK_ONCE") != 0;
  filling = how && !strcmp(how, "enospc");
  fault_errno = filling ? ENOSPC : EIO;
  tears = how && !strcmp(how, "torn");
  ends = how && !strcmp(how, "exit");
  if (log) log_fd = syscall(SYS_openat, AT_FDCWD, log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
}

static int below(const char *path) {
  prepare();
  size_t len = strlen(root);
  return len && path && !strncmp(path, root, len) && (path[len] == '/' || !path[len]);
}

static int path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t len = readlink(link, path, PATH_MAX - 1);
  path[len > 0 ? len : 0] = 0;
  return len > 0;
}

static int watched(int fd) {
  char path[PATH_MAX];
  prepare();
  if (!root[0] || fd == log_fd || !path_of(fd, path) || !below(path)) return 0;
  size_t len = strlen(path);
  return !journals_only || (len > 4 && !strcmp(path + len - 4, ".jnl"));
}

static enum verdict judge(enum kind kind) {
  if (!any_kind && (int)kind != wanted_kind) return GO_ON;
  if (from[0] && syscall(SYS_faccessat, AT_FDCWD, from, F_OK)) return GO_ON;
  uint64_t number = ++seen;
  if (!fault_at || number < fault_at || (once && number > fault_at)) return GO_ON;
  if (until[0] && !syscall(SYS_faccessat, AT_FDCWD, until, F_OK)) return GO_ON;
  if (ends) _exit(ENDED_BY_US);
  if (tears) {
    if (kind == KIND_WRITE) return TEAR;
    _exit(ENDED_BY_US);
  }
  if (filling && kind == KIND_WRITE && number == fault_at) return CUT_SHORT;
  if (filling && kind == KIND_SYNC) return GO_ON;
  return FAIL;
}

__attribute__((destructor)) static void report(void) {
  if (!tally[0]) return;
  int fd = syscall(SYS_openat, AT_FDCWD, tally, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  char text[32];
  int len = snprintf(text, sizeof text, "%llu", (unsigned long long)seen);
  if (syscall(SYS_write, fd, text, len) != len) return;
  close(fd);
}

// kind(1) flags(1) unused(2) len(4) file(8) at(8) bytes
static void record(char kind, int flag, uint64_t file, uint64_t at, const void *bytes, size_t len) {
  if (log_fd < 0) return;
  struct __attribute__((packed)) { uint8_t kind, flag; uint16_t unused; uint32_t len; uint64_t file, at; } head =
      {(uint8_t)kind, (uint8_t)flag, 0, (uint32_t)len, file, at};
  struct iovec parts[2] = {{&head, sizeof head}, {(void *)bytes, len}};
  if (syscall(SYS_writev, log_fd, parts, 2) != (ssize_t)(sizeof head + len)) _exit(99);
}

static uint64_t file_of(int fd) {
  struct stat st;
  return fstat(fd, &st) ? 0 : st.st_ino;
}

static off_t position(int fd) {
  struct stat st;
  if (fcntl(fd, F_GETFL) & O_APPEND) return fstat(fd, &st) ? 0 : st.st_size;
  return lseek(fd, 0, SEEK_CUR);
}

typedef ssize_t (*put_fn)(int, const void *, size_t, off_t);

static ssize_t put(int fd, const void *bytes, size_t len, off_t at, int here, put_fn next_at,
                   ssize_t (*next_here)(int, const void *, size_t)) {
  pthread_mutex_lock(&lock);
  char path[PATH_MAX];
  prepare();
  if (acks[0] && len == 8 && path_of(fd, path) && !strcmp(path, acks)) record('A', 0, 0, 0, bytes, 8);
  int ours = watched(fd), failed = 0;
  ssize_t done = -1;
  if (ours) {
    switch (judge(KIND_WRITE)) {
      case FAIL: failed = 1; break;
      case CUT_SHORT: len = (len + 1) / 2; break;
      case TEAR:
        if (here) (void)!next_here(fd, bytes, len / 2);
        else (void)!next_at(fd, bytes, len / 2, at);
        _exit(ENDED_BY_US);
      case GO_ON: break;
    }
  }
  int problem = fault_errno;
  if (!failed) {
    if (ours && here) at = position(fd);
    done = here ? next_here(fd, bytes, len) : next_at(fd, bytes, len, at);
    problem = errno;
    if (ours && done > 0) record('W', (fcntl(fd, F_GETFL) & O_DSYNC) != 0, file_of(fd), at, bytes, done);
  }
  pthread_mutex_unlock(&lock);
  errno = problem;
  return done;
}

ssize_t write(int fd, const void *bytes, size_t len) { NEXT(write); return put(fd, bytes, len, 0, 1, 0, next); }
ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at) { NEXT(pwrite); return put(fd, bytes, len, at, 0, (put_fn)next, 0); }
ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t at) { NEXT(pwrite64); return put(fd, bytes, len, at, 0, (put_fn)next, 0); }

// Only the first part is written: a short write, which every caller must be able to take.
ssize_t writev(int fd, const struct iovec *parts, int count) {
  NEXT(writev);
  if (!watched(fd) || count < 1) return next(fd, parts, count);
  while (count > 1 && !parts->iov_len) parts++, count--;
  return write(fd, parts->iov_base, parts->iov_len);
}
static ssize_t first_at(int fd, const struct iovec *parts, int count, off_t at) {
  while (count > 1 && !parts->iov_len) parts++, count--;
  return pwrite(fd, parts->iov_base, parts->iov_len, at);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { NEXT(pwritev); return watched(fd) && count > 0 ? first_at(fd, parts, count, at) : next(fd, parts, count, at); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { NEXT(pwritev64); return watched(fd) && count > 0 ? first_at(fd, parts, count, at) : next(fd, parts, count, at); }
// These would pass us by; their callers fall back to plain writes.
ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t len, unsigned flags) {
  (void)in, (void)in_at, (void)out, (void)out_at, (void)len, (void)flags;
  errno = ENOSYS;
  return -1;
}
ssize_t sendfile64(int out, int in, off64_t *at, size_t len) {
  (void)out, (void)in, (void)at, (void)len;
  errno = ENOSYS;
  return -1;
}

// Renames may be made without us (some libraries call the kernel directly), so the sync of a
// directory says what is in it.
static void record_directory(int fd) {
  char path[PATH_MAX];
  struct stat st;
  if (log_fd < 0 || fstat(fd, &st) || !S_ISDIR(st.st_mode) || !path_of(fd, path)) return;
  DIR *directory = opendir(path);
  if (!directory) return;
  size_t len = strlen(path) + 1, room = 1 << 16;
  char *text = malloc(room);
  memcpy(text, path, len);
  struct dirent *entry;
  while ((entry = readdir(directory))) {
    if (entry->d_type != DT_REG) continue;
    size_t name = strlen(entry->d_name) + 1;
    if (len + 8 + name > room) text = realloc(text, room *= 2);
    uint64_t file = entry->d_ino;
    memcpy(text + len, &file, 8);
    memcpy(text + len + 8, entry->d_name, name);
    len += 8 + name;
  }
  closedir(directory);
  record('D', 0, 0, 0, text, len);
  free(text);
}

static int synced(int (*next)(int), int fd) {
  if (!watched(fd)) return next(fd);
  pthread_mutex_lock(&lock);
  enum verdict verdict = judge(KIND_SYNC);
  uint64_t file = file_of(fd), number = 0;
  if (verdict == GO_ON) {
    record_directory(fd);
    number = ++syncs;
    record('S', 0, file, number, 0, 0);
  }
  pthread_mutex_unlock(&lock);
  if (verdict != GO_ON) {
    errno = fault_errno;
    return -1;
  }
  int answer = next(fd), problem = errno;
  if (!answer) {
    pthread_mutex_lock(&lock);
    record('E', 0, file, number, 0, 0);
    pthread_mutex_unlock(&lock);
  }
  errno = problem;
  return answer;
}
int fsync(int fd) { NEXT(fsync); return synced(next, fd); }
int fdatasync(int fd) { NEXT(fdatasync); return synced(next, fd); }

static int refused(void) {
  if (judge(KIND_OTHER) == GO_ON) return 0;
  errno = fault_errno;
  return 1;
}

static int cut(int (*next)(int, off_t), int fd, off_t len) {
  if (!watched(fd)) return next(fd, len);
  pthread_mutex_lock(&lock);
  int answer = -1;
  if (!refused()) {
    answer = next(fd, len);
    if (!answer) record('T', 0, file_of(fd), len, 0, 0);
  }
  int problem = errno;
  pthread_mutex_unlock(&lock);
  errno = problem;
  return answer;
}
int ftruncate(int fd, off_t len) { NEXT(ftruncate); return cut((int (*)(int, off_t))next, fd, len); }
int ftruncate64(int fd, off64_t len) { NEXT(ftruncate64); return cut((int (*)(int, off_t))next, fd, len); }

#define OPEN(call) \
  va_list rest; \
  va_start(rest, flags); \
  mode_t mode = va_arg(rest, mode_t); \
  va_end(rest); \
  if (!below(path) || !(flags & (O_CREAT | O_TRUNC))) return call; \
  pthread_mutex_lock(&lock); \
  struct stat before; \
  int existed = !stat(path, &before), fd = -1; \
  if (existed || !refused()) { \
    fd = call; \
    if (fd >= 0 && !existed) record('C', 0, file_of(fd), 0, path, strlen(path) + 1); \
    else if (fd >= 0 && (flags & O_TRUNC)) record('T', 0, file_of(fd), 0, 0, 0); \
  } \
  int problem = errno; \
  pthread_mutex_unlock(&lock); \
  errno = problem; \
  return fd;
int open(const char *path, int flags, ...) { NEXT(open); OPEN(next(path, flags, mode)) }
int open64(const char *path, int flags, ...) { NEXT(open64); OPEN(next(path, flags, mode)) }
int openat(int at, const char *path, int flags, ...) { NEXT(openat); OPEN(next(at, path, flags, mode)) }
int openat64(int at, const char *path, int flags, ...) { NEXT(openat64); OPEN(next(at, path, flags, mode)) }

#define CHANGE(path, call, note) \
  if (!below(path)) return call; \
  pthread_mutex_lock(&lock); \
  int answer = -1; \
  if (!refused()) { \
    answer = call; \
    if (!answer) { note; } \
  } \
  int problem = errno; \
  pthread_mutex_unlock(&lock); \
  errno = problem; \
  return answer;

static void record_rename(const char *from, const char *to) {
  char both[PATH_MAX * 2];
  size_t len = strlen(from) + 1;
  memcpy(both, from, len);
  memcpy(both + len, to, strlen(to) + 1);
  record('N', 0, 0, 0, both, len + strlen(to) + 1);
}
int rename(const char *from, const char *to) { NEXT(rename); CHANGE(to, next(from, to), record_rename(from, to)) }
int renameat(int a, const char *from, int b, const char *to) { NEXT(renameat); CHANGE(to, next(a, from, b, to), record_rename(from, to)) }
int unlink(const char *path) { NEXT(unlink); CHANGE(path, next(path), record('U', 0, 0, 0, path, strlen(path) + 1)) }
int mkdir(const char *path, mode_t mode) { NEXT(mkdir); CHANGE(path, next(path, mode), record('M', 0, 0, 0, path, strlen(path) + 1)) }
int unlinkat(int at, const char *name, int flags) {
  NEXT(unlinkat);
  char path[PATH_MAX * 2];
  if (name[0] == '/' || at == AT_FDCWD || !path_of(at, path)) snprintf(path, sizeof path, "%s", name);
  else snprintf(path + strlen(path), PATH_MAX, "/%s", name);
  CHANGE(path, next(at, name, flags), if (!(flags & AT_REMOVEDIR)) record('U', 0, 0, 0, path, strlen(path) + 1))
}
