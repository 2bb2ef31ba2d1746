/* A folder of its own for a fuzzer, in $TMPDIR (best in memory), and the files of one input in it. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FUZZ_PART = 0x1c /* ends a part of an input: each part is a file of its own */ };

static char fuzz_folder[300];

static inline void fuzz_clear(void) {
    DIR *d = opendir(".");
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlink(e->d_name);
    if (d)
        closedir(d);
}

static inline int fuzz_remove(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline void fuzz_leave(void) {
    if (!chdir("/"))
        nftw(fuzz_folder, fuzz_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* Goes into a new folder, which is removed at the end. Ends the program where there can be none. */
static inline void fuzz_enter(void) {
    const char *base = getenv("TMPDIR");
    snprintf(fuzz_folder, sizeof fuzz_folder, "%.250s/fuzz-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(fuzz_folder) || chdir(fuzz_folder)) {
        fprintf(stderr, "cannot make a folder in %s\n", fuzz_folder);
        exit(1);
    }
    atexit(fuzz_leave);
}

static inline bool fuzz_write(const char *name, const void *bytes, size_t size) {
    const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool ok = fd >= 0 && write(fd, bytes, size) == (ssize_t)size;
    return fd >= 0 && !close(fd) && ok;
}

/* The next part of what is left; false at the end. */
static inline bool fuzz_part(const uint8_t **data, size_t *size, const uint8_t **part, size_t *part_size) {
    if (!*data)
        return false;
    const uint8_t *end = *size ? memchr(*data, FUZZ_PART, *size) : NULL;
    *part = *data;
    *part_size = end ? (size_t)(end - *data) : *size;
    *size -= end ? *part_size + 1 : *size;
    *data = end ? end + 1 : NULL;
    return true;
}

/* Ends the program in a way that libFuzzer reports. */
static inline void fuzz_broken(const char *what, const char *message) {
    fprintf(stderr, "%s (%s)\n", what, message);
    abort();
}
