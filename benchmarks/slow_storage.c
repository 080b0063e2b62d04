/* Preloaded: reading a file below $SLOW_STORAGE_FOLDER takes $SLOW_STORAGE_US microseconds longer, as on a network disk.
 * TensorFlow's file system reads with pread; other readers use read. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void wait_if_slow(int fd) {
  const char *folder = getenv("SLOW_STORAGE_FOLDER"), *wait = getenv("SLOW_STORAGE_US");
  if (fd < 3 || folder == NULL || *folder == 0 || wait == NULL) return;
  int saved = errno;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  size_t prefix = strlen(folder);
  if (length > (ssize_t)prefix && strncmp(path, folder, prefix) == 0 && path[prefix] == '/') {
    long us = atol(wait);
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
  }
  errno = saved;
}

#define SLOW(name, types, values)                                         \
  ssize_t name types {                                                    \
    static ssize_t (*original) types;                                     \
    if (original == NULL) *(void **)&original = dlsym(RTLD_NEXT, #name);  \
    wait_if_slow(fd);                                                     \
    return original values;                                               \
  }

SLOW(pread, (int fd, void *to, size_t count, off_t offset), (fd, to, count, offset))
SLOW(pread64, (int fd, void *to, size_t count, off64_t offset), (fd, to, count, offset))
SLOW(read, (int fd, void *to, size_t count), (fd, to, count))
