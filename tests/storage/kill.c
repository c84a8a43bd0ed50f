/* Ends a process in the middle of its work, for tests: preloaded, it counts the calls that change what is
 * below one folder, and kills the process in place of one of them.
 *
 * KILL_FOLDER  the folder that is watched; without it nothing is done
 * KILL_AT      the number of the call that is not made, from 1 on
 * KILL_CALLS   a file that gets a letter for each call: w(rite), t(runcate), s(ync), o(pen anew), u(nlink),
 *              r(ename), l(ink), m(ake a folder), d(elete a folder)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static const char *folder;
static long left;
static int calls_fd = -1;

#define REAL(name, type, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void start(void) {
    const char *at = getenv("KILL_AT"), *calls = getenv("KILL_CALLS");
    if (at) left = atol(at);
    if (calls) calls_fd = open(calls, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    folder = getenv("KILL_FOLDER");
}

static ssize_t plain_write(int fd, const void *bytes, size_t length) {
    REAL("write", ssize_t, int, const void *, size_t);
    return real(fd, bytes, length);
}

/* Counts a call; the one that is waited for does not return. */
static void count(char letter) {
    pthread_mutex_lock(&order);
    if (calls_fd >= 0 && plain_write(calls_fd, &letter, 1) != 1) abort();
    if (left > 0 && --left == 0) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    pthread_mutex_unlock(&order);
}

static void count_path(char letter, const char *path) {
    if (folder && !strncmp(path, folder, strlen(folder))) count(letter);
}

static void count_file(char letter, int fd) {
    char link[64], path[4096];
    if (!folder || fd == calls_fd) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    count_path(letter, path);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    count_file('w', fd);
    return plain_write(fd, bytes, length);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    REAL("pwrite64", ssize_t, int, const void *, size_t, off64_t);
    count_file('w', fd);
    return real(fd, bytes, length, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    return pwrite64(fd, bytes, length, offset);
}

int ftruncate64(int fd, off64_t size) {
    REAL("ftruncate64", int, int, off64_t);
    count_file('t', fd);
    return real(fd, size);
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int fsync(int fd) {
    REAL("fsync", int, int);
    count_file('s', fd);
    return real(fd);
}

int fdatasync(int fd) {
    REAL("fdatasync", int, int);
    count_file('s', fd);
    return real(fd);
}

int unlink(const char *path) {
    REAL("unlink", int, const char *);
    count_path('u', path);
    return real(path);
}

int unlinkat(int at, const char *path, int flags) {
    REAL("unlinkat", int, int, const char *, int);
    if (at == AT_FDCWD) count_path('u', path);
    else count_file('u', at);
    return real(at, path, flags);
}

int rename(const char *from, const char *to) {
    REAL("rename", int, const char *, const char *);
    count_path('r', to);
    return real(from, to);
}

int link(const char *from, const char *to) {
    REAL("link", int, const char *, const char *);
    count_path('l', to);
    return real(from, to);
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    REAL("linkat", int, int, const char *, int, const char *, int);
    count_path('l', to);
    return real(from_at, from, to_at, to, flags);
}

int mkdir(const char *path, mode_t mode) {
    REAL("mkdir", int, const char *, mode_t);
    count_path('m', path);
    return real(path, mode);
}

int rmdir(const char *path) {
    REAL("rmdir", int, const char *);
    count_path('d', path);
    return real(path);
}

int open64(const char *path, int flags, ...) {
    REAL("open64", int, const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (flags & (O_CREAT | O_TRUNC)) count_path('o', path);
    return real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open64(path, flags, mode);
}
