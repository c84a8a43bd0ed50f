/* What lies between a process and its disk, for tests: preloaded, it stands in for the calls by which
 * SQLite opens, reads and writes, for files below one folder only.
 *
 * STORAGE_FOLDER   the folder that is watched; without it nothing is done
 * STORAGE_LOG      every write, truncation, sync and removal is appended there, in order
 * STORAGE_NO_SYNC  syncs are neither done nor logged: what `synchronous = OFF` is to a disk
 * STORAGE_FAULT    a file; while it holds a number, writes fail with that errno, as new files do that
 *                  a write would make
 * STORAGE_READS    a file; while it holds a number, reads fail with that errno
 * STORAGE_OPENS    a file; while it holds a number, opening for writing fails with that errno
 *
 * The log is lines ("." is the folder), "W NAME OFFSET LENGTH" followed by the bytes, "T NAME LENGTH", "S NAME", "U NAME".
 * The shared-memory file is left out: it is made anew at every open.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static const char *folder, *fault, *reads, *opens;
static int log_fd = -1, no_sync;

static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static ssize_t (*real_read)(int, void *, size_t);
static int (*real_open)(const char *, int, ...);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);

__attribute__((constructor)) static void start(void) {
    real_pwrite = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
    real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    real_pread = (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread64");
    real_read = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    real_open = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    real_ftruncate = (int (*)(int, off_t))dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    real_unlink = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
    folder = getenv("STORAGE_FOLDER");
    fault = getenv("STORAGE_FAULT");
    reads = getenv("STORAGE_READS");
    opens = getenv("STORAGE_OPENS");
    no_sync = getenv("STORAGE_NO_SYNC") != NULL;
    const char *log = getenv("STORAGE_LOG");
    if (folder && log) log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* The name below the watched folder, "." for the folder itself, or NULL for any other file. */
static const char *name_of(const char *path) {
    size_t length = strlen(folder);
    if (strncmp(path, folder, length)) return NULL;
    if (!path[length]) return ".";
    if (path[length] != '/') return NULL;
    const char *name = path + length + 1;
    size_t end = strlen(name);
    if (end > 4 && !strcmp(name + end - 4, "-shm")) return NULL;
    return strchr(name, ' ') ? NULL : name;
}

static const char *name_of_file(int fd, char *path, size_t size) {
    if (!folder || fd == log_fd) return NULL;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, size - 1);
    if (length <= 0) return NULL;
    path[length] = 0;
    return name_of(path);
}

/* The errno that a control file asks for; 0 for none. */
static int asked(const char *control) {
    if (!control) return 0;
    char text[16] = {0};
    int fd = real_open(control, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = real_read(fd, text, sizeof text - 1);
    close(fd);
    return length > 0 ? atoi(text) : 0;
}

static void note(const char *line, const void *bytes, size_t length) {
    if (log_fd < 0) return;
    struct iovec parts[2] = {{(void *)line, strlen(line)}, {(void *)bytes, length}};
    ssize_t written = writev(log_fd, parts, bytes ? 2 : 1);
    if (written != (ssize_t)(strlen(line) + length)) abort();
}

static ssize_t noted_write(int fd, const void *bytes, size_t length, off_t offset, int appends) {
    char path[4096], line[4200];
    int error = errno;
    const char *name = name_of_file(fd, path, sizeof path);
    errno = error;
    if (!name) return appends ? real_write(fd, bytes, length) : real_pwrite(fd, bytes, length, offset);
    pthread_mutex_lock(&order);
    ssize_t written = -1;
    int refused = asked(fault);
    if (refused) errno = refused;
    else written = appends ? real_write(fd, bytes, length) : real_pwrite(fd, bytes, length, offset);
    error = errno;
    if (written > 0) {
        if (appends) offset = lseek(fd, 0, SEEK_CUR) - written;
        snprintf(line, sizeof line, "W %s %lld %zd\n", name, (long long)offset, written);
        note(line, bytes, (size_t)written);
    }
    pthread_mutex_unlock(&order);
    errno = error;
    return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    return noted_write(fd, bytes, length, offset, 0);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    return noted_write(fd, bytes, length, offset, 0);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    return noted_write(fd, bytes, length, 0, 1);
}

/* Whether a read of that file fails now, with errno set. */
static int fails_to_read(int fd) {
    char path[4096];
    int before = errno, refused = reads ? asked(reads) : 0;
    if (refused && name_of_file(fd, path, sizeof path)) {
        errno = refused;
        return 1;
    }
    errno = before;
    return 0;
}

ssize_t pread(int fd, void *bytes, size_t length, off_t offset) {
    return fails_to_read(fd) ? -1 : real_pread(fd, bytes, length, offset);
}

ssize_t pread64(int fd, void *bytes, size_t length, off64_t offset) {
    return fails_to_read(fd) ? -1 : real_pread(fd, bytes, length, offset);
}

ssize_t read(int fd, void *bytes, size_t length) {
    return fails_to_read(fd) ? -1 : real_read(fd, bytes, length);
}

static int noted_open(const char *path, int flags, mode_t mode) {
    int refused = 0, may_write = (flags & O_ACCMODE) != O_RDONLY;
    if (folder && may_write && name_of(path)) {
        refused = asked(opens);
        if (!refused && (flags & O_CREAT) && access(path, F_OK)) refused = asked(fault);
    }
    if (refused) {
        errno = refused;
        return -1;
    }
    return real_open(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return noted_open(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return noted_open(path, flags, mode);
}

static int noted_truncate(int fd, off_t size) {
    char path[4096], line[4200];
    const char *name = name_of_file(fd, path, sizeof path);
    if (!name) return real_ftruncate(fd, size);
    pthread_mutex_lock(&order);
    int result = real_ftruncate(fd, size), error = errno;
    if (!result) {
        snprintf(line, sizeof line, "T %s %lld\n", name, (long long)size);
        note(line, NULL, 0);
    }
    pthread_mutex_unlock(&order);
    errno = error;
    return result;
}

int ftruncate(int fd, off_t size) { return noted_truncate(fd, size); }
int ftruncate64(int fd, off64_t size) { return noted_truncate(fd, size); }

static int noted_sync(int fd, int (*real)(int)) {
    char path[4096], line[4200];
    const char *name = name_of_file(fd, path, sizeof path);
    if (!name) return real(fd);
    if (no_sync) return 0;
    pthread_mutex_lock(&order);
    int refused = asked(fault), result = -1;
    if (refused) errno = refused;
    else result = real(fd);
    int error = errno;
    if (!result) {
        snprintf(line, sizeof line, "S %s\n", name);
        note(line, NULL, 0);
    }
    pthread_mutex_unlock(&order);
    errno = error;
    return result;
}

int fsync(int fd) { return noted_sync(fd, real_fsync); }
int fdatasync(int fd) { return noted_sync(fd, real_fdatasync); }

int unlink(const char *path) {
    char line[4200];
    const char *name = folder ? name_of(path) : NULL;
    if (!name) return real_unlink(path);
    pthread_mutex_lock(&order);
    int result = real_unlink(path), error = errno;
    if (!result) {
        snprintf(line, sizeof line, "U %s\n", name);
        note(line, NULL, 0);
    }
    pthread_mutex_unlock(&order);
    errno = error;
    return result;
}
