/* Temporary files for tests: a folder under $TMPDIR (or /tmp) that lives until fl_temp_remove(). */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char fl_temp_folder[256];

/* Path of a file of that name in the folder; the text is valid until the next call. */
static inline const char *fl_temp_path(const char *name) {
    static char path[512];
    if (!fl_temp_folder[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(fl_temp_folder, sizeof fl_temp_folder, "%s/foldline-XXXXXX", base && *base ? base : "/tmp");
        if (!mkdtemp(fl_temp_folder)) {
            perror(fl_temp_folder);
            exit(1);
        }
    }
    snprintf(path, sizeof path, "%s/%s", fl_temp_folder, name);
    return path;
}

/* Writes the bytes to the file of that name and returns its path. */
static inline const char *fl_temp_write(const char *name, const void *bytes, size_t size) {
    const char *path = fl_temp_path(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
    return path;
}

static inline const char *fl_temp_text(const char *name, const char *text) {
    return fl_temp_write(name, text, strlen(text));
}

/* The whole file in memory (NUL-terminated; the caller frees it), or NULL. */
static inline char *fl_temp_slurp(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *bytes = NULL;
    *size = 0;
    for (size_t got = 1; got;) {
        bytes = realloc(bytes, *size + 65537);
        got = bytes ? fread(bytes + *size, 1, 65536, f) : 0;
        *size += got;
    }
    if (bytes)
        bytes[*size] = '\0';
    fclose(f);
    return bytes;
}

/* Files in the folder. */
static inline int fl_temp_count(void) {
    DIR *folder = opendir(fl_temp_folder);
    int count = 0;
    for (struct dirent *e; folder && (e = readdir(folder));)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (folder)
        closedir(folder);
    return count;
}

static inline void fl_temp_remove(void) {
    DIR *folder = fl_temp_folder[0] ? opendir(fl_temp_folder) : NULL;
    if (!folder)
        return;
    for (struct dirent *e; (e = readdir(folder));)
        unlinkat(dirfd(folder), e->d_name, 0);
    closedir(folder);
    rmdir(fl_temp_folder);
    fl_temp_folder[0] = '\0';
}
