/*
 * Preloaded into the program under test. Counts the operations that change the file system, below
 * the folder BUFGYM_FAULT_BELOW where they have a path, and from the BUFGYM_FAULT_AT-th on does
 * what BUFGYM_FAULT_DO says: "kill" ends the process by SIGKILL before that operation, or in the
 * middle of it where it writes; a number is the errno that every such operation then fails with.
 * Removals do not fail: a full disk allows them. BUFGYM_FAULT_COUNT names a file for the number of
 * operations, written when the process ends.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long operations;
static long at;
static int error;

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("BUFGYM_FAULT_AT");
  at = text ? atol(text) : 0;
  text = getenv("BUFGYM_FAULT_DO");
  error = text ? atoi(text) : 0;
}

__attribute__((destructor)) static void end(void) {
  const char *path = getenv("BUFGYM_FAULT_COUNT");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file) {
    fprintf(file, "%ld\n", atomic_load(&operations));
    fclose(file);
  }
}

/* 1 if this operation is the one to be killed in, -1 if it is to fail, else 0. */
static int due(void) {
  long number = atomic_fetch_add(&operations, 1) + 1;
  if (at <= 0 || number < at) return 0;
  if (error == 0) return number == at;
  errno = error;
  return -1;
}

static int in_range(const char *path) {
  const char *below = getenv("BUFGYM_FAULT_BELOW");
  return path[0] != '/' || (below && strncmp(path, below, strlen(below)) == 0);
}

static int regular(int fd) {
  struct stat found;
  return fd > 2 && fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define FAULT(result)                     \
  switch (due()) {                        \
    case 1: raise(SIGKILL); break;        \
    case -1: return result;               \
  }

#define OPEN(name)                                                          \
  int name(const char *path, int flags, ...) {                              \
    va_list rest;                                                           \
    va_start(rest, flags);                                                  \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                           \
    if ((flags & O_ACCMODE) != O_RDONLY && in_range(path)) { FAULT(-1) }    \
    return REAL(name)(path, flags, mode);                                   \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *bytes, size_t count) {
  if (regular(fd)) {
    switch (due()) {
      case 1:
        REAL(write)(fd, bytes, count / 2);
        raise(SIGKILL);
        break;
      case -1: return -1;
    }
  }
  return REAL(write)(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  if (regular(fd)) { FAULT(-1) }
  return REAL(writev)(fd, parts, count);
}

#define ON_FILE(type, name, arguments, call)  \
  int name arguments {                        \
    if (type) { FAULT(-1) }                   \
    return REAL(name) call;                   \
  }
ON_FILE(fd > 2, fsync, (int fd), (fd))
ON_FILE(fd > 2, fdatasync, (int fd), (fd))
ON_FILE(fd > 2, ftruncate, (int fd, off_t length), (fd, length))
ON_FILE(fd > 2, ftruncate64, (int fd, off64_t length), (fd, length))
ON_FILE(in_range(path), mkdir, (const char *path, mode_t mode), (path, mode))
ON_FILE(in_range(to), rename, (const char *from, const char *to), (from, to))
ON_FILE(in_range(to), link, (const char *from, const char *to), (from, to))

#define REMOVAL(test, name, arguments, call)      \
  int name arguments {                            \
    if ((test) && due() == 1) { raise(SIGKILL); } \
    return REAL(name) call;                       \
  }
REMOVAL(in_range(path), unlink, (const char *path), (path))
REMOVAL(in_range(path), rmdir, (const char *path), (path))
REMOVAL(in_range(path), unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
