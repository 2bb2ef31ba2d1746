/* Covers the parts of a real driver on this machine, in namespaces of the command. */
#include "harness/emulate/driver/driver.h"

#include "traces/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the parts of a driver on this machine ---- */

/* Device nodes, and the files that replace them. */
static const char *const places[] = {
    "/dev/nvidia*", "/dev/nvhost*", "/dev/nvgpu*",         "/dev/dri",
    "/dev/dxg",     "/dev/kfd",     "/proc/driver/nvidia", "/run/nvidia*",
};

static const char *const libraries[] = {"libnvidia-ml.so*", "libcuda.so*", "libcudadebugger.so*"};

/* Folders that contain libraries without an entry in the linker's cache. */
static const char *const folders[] = {
    "/lib",
    "/lib64",
    "/lib/*-linux-gnu*",
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/*-linux-gnu*",
    "/usr/lib/nvidia*",
    "/usr/lib/*-linux-gnu*/nvidia*",
    "/usr/lib/wsl/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/lib/*-linux-gnu*",
    "/usr/local/nvidia/lib*",
    "/usr/local/cuda*/compat",
    "/usr/local/cuda*/lib64",
    "/run/opengl-driver/lib",
    "/opt/nvidia*/lib*",
};

static bool is_library(const char *path) {
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (!fnmatch(libraries[i], slash ? slash + 1 : path, 0))
            return true;
    return false;
}

/* Adds a file by its real path, once: behind a link lies its target. A file that does not exist needs no cover. */
static fl_status add(fl_covers *c, const char *path, const char *spare, fl_diag *d) {
    char *real = realpath(path, NULL);
    if (!real)
        return errno == ENOMEM ? fl_no_memory(d, "what is covered") : FL_OK;
    const size_t n = strlen(spare);
    bool known = !strncmp(real, spare, n) && (real[n] == '/' || !real[n]);
    for (size_t i = 0; !known && i < c->count; i++)
        known = !strcmp(c->path[i], real);
    if (!known && !fl_grow(&c->path, &c->room, c->count + 1, sizeof *c->path)) {
        c->path[c->count++] = real;
        return FL_OK;
    }
    free(real);
    return known ? FL_OK : fl_no_memory(d, "what is covered");
}

/* Adds what matches a pattern that begins with '/', found from `folder` downwards (empty: from the root). Each call
 * resolves one component with a wildcard. The C library's glob frees one list twice where it finds no memory (glibc
 * 2.36). */
static fl_status add_matches(fl_covers *c, const char *folder, const char *pattern, const char *spare, fl_diag *d) {
    char path[PATH_MAX], name[NAME_MAX + 1];
    const char *wild = strpbrk(pattern, "*?[");
    const size_t above = wild ? (size_t)((const char *)memrchr(pattern, '/', (size_t)(wild - pattern)) - pattern) : 0;
    const char *begin = pattern + above + 1, *rest = wild ? strchr(wild, '/') : NULL;
    const size_t size = rest ? (size_t)(rest - begin) : strlen(begin);
    if (!wild)
        return snprintf(path, sizeof path, "%s%s", folder, pattern) < (int)sizeof path ? add(c, path, spare, d) : FL_OK;
    if (size >= sizeof name || snprintf(path, sizeof path, "%s%.*s/", folder, (int)above, pattern) >= (int)sizeof path)
        return FL_OK;
    memcpy(name, begin, size);
    name[size] = 0;
    const size_t end = strlen(path);
    DIR *all = opendir(path);
    fl_status s = !all && errno == ENOMEM ? fl_no_memory(d, "what is covered") : FL_OK;
    for (const struct dirent *e; all && !s && (e = readdir(all));)
        if (!fnmatch(name, e->d_name, FNM_PERIOD) &&
            snprintf(path + end, sizeof path - end, "%s", e->d_name) < (int)(sizeof path - end))
            s = rest ? add_matches(c, path, rest, spare, d) : add(c, path, spare, d);
    if (all)
        closedir(all);
    return s;
}

/* `folder` may be relative, as one of LD_LIBRARY_PATH. */
static fl_status add_libraries(fl_covers *c, const char *folder, const char *spare, fl_diag *d) {
    const bool whole = *folder == '/';
    char pattern[PATH_MAX];
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < sizeof libraries / sizeof *libraries; i++)
        if (snprintf(pattern, sizeof pattern, "%s%s/%s", whole ? "" : "/", folder, libraries[i]) < (int)sizeof pattern)
            s = add_matches(c, whole ? "" : ".", pattern, spare, d);
    return s;
}

/* Adds the files wherever the linker would look. Its cache holds paths as strings, one after the other. */
static fl_status add_cached(fl_covers *c, const char *spare, fl_diag *d) {
    char path[PATH_MAX];
    size_t n = 0;
    fl_status s = FL_OK;
    FILE *f = fopen("/etc/ld.so.cache", "re");
    for (int byte; f && !s && (byte = getc(f)) != EOF;) {
        if (byte && n + 1 < sizeof path) {
            path[n++] = (char)byte;
            continue;
        }
        path[n] = 0;
        if (n && path[0] == '/' && is_library(path))
            s = add(c, path, spare, d);
        n = 0;
    }
    if (f)
        fclose(f);
    return s;
}

static fl_status find_all(fl_covers *c, const char *spare, fl_diag *d) {
    char *list = strdup(getenv("LD_LIBRARY_PATH") ? getenv("LD_LIBRARY_PATH") : ""), *save = NULL;
    fl_status s = list ? add_cached(c, spare, d) : fl_no_memory(d, "what is covered");
    for (size_t i = 0; !s && i < sizeof places / sizeof *places; i++)
        s = add_matches(c, "", places[i], spare, d);
    for (size_t i = 0; !s && i < sizeof folders / sizeof *folders; i++)
        s = add_libraries(c, folders[i], spare, d);
    for (char *one = list ? strtok_r(list, ":", &save) : NULL; !s && one; one = strtok_r(NULL, ":", &save))
        s = add_libraries(c, one, spare, d);
    free(list);
    return s;
}

static bool make_socket(const char *path) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    const bool made = fd >= 0 && !bind(fd, (const struct sockaddr *)&at, sizeof at);
    if (fd >= 0)
        close(fd);
    return made;
}

fl_status fl_covers_open(fl_covers *c, const char *session, const char *spare, fl_diag *d) {
    char *real = realpath(spare, NULL);
    *c = (fl_covers){0};
    fl_status s = find_all(c, real ? real : spare, d);
    free(real);
    if (s || !c->count)
        return s;
    snprintf(c->file, sizeof c->file, "%s/covered", session);
    snprintf(c->folder, sizeof c->folder, "%s/empty", session);
    if (!make_socket(c->file) || mkdir(c->folder, 0755))
        return fl_error(d, FL_IO, "%s: %s", c->file, fl_reason(errno));
    return FL_OK;
}

void fl_covers_close(fl_covers *c) {
    for (size_t i = 0; i < c->count; i++)
        free(c->path[i]);
    free(c->path);
    if (c->file[0]) {
        unlink(c->file);
        rmdir(c->folder);
    }
    *c = (fl_covers){0};
}

/* ---- namespaces ---- */

static bool write_text(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return done;
}

/* Each id maps to itself. A process that may map all ids does so, so that su and setpriv keep working; any other maps
 * its own id only. */
static bool write_map(pid_t pid, const char *kind, unsigned own) {
    char path[64], text[4096] = "";
    unsigned long inside, outside, count;
    size_t used = 0;
    snprintf(path, sizeof path, "/proc/self/%s_map", kind);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%lu %lu %lu", &inside, &outside, &count) == 3 && used + 64 < sizeof text)
        used += (size_t)snprintf(text + used, sizeof text - used, "%lu %lu %lu\n", inside, inside, count);
    if (f)
        fclose(f);
    snprintf(path, sizeof path, "/proc/%d/%s_map", (int)pid, kind);
    if (used && write_text(path, text))
        return true;
    snprintf(text, sizeof text, "%u %u 1\n", own, own);
    return write_text(path, text);
}

/* A child that stays outside writes the maps of a new user namespace. */
static bool map_ids(pid_t pid, unsigned uid, unsigned gid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/setgroups", (int)pid);
    if (!write_map(pid, "uid", uid))
        return false;
    return write_map(pid, "gid", gid) || (write_text(path, "deny") && write_map(pid, "gid", gid));
}

/* True: the process has namespaces of its own, with its ids mapped. False and errno 0: it is separated, but its ids are
 * not mapped. */
static bool unshare_mapped(void) {
    int wire[2], status = 0;
    char go;
    const pid_t me = getpid();
    const unsigned uid = geteuid(), gid = getegid();
    if (pipe2(wire, O_CLOEXEC))
        return false;
    const pid_t helper = fork();
    if (!helper) {
        close(wire[1]);
        _exit(read(wire[0], &go, 1) == 1 && map_ids(me, uid, gid) ? 0 : 1);
    }
    close(wire[0]);
    const bool apart = helper > 0 && !unshare(CLONE_NEWUSER | CLONE_NEWNS);
    const int error = apart ? 0 : errno;
    const bool told = apart && write(wire[1], "", 1) == 1;
    close(wire[1]);
    while (helper > 0 && waitpid(helper, &status, 0) < 0 && errno == EINTR) {
    }
    errno = error;
    return told && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* A process with the right (root of a container, for example) gets its own mounts without a user namespace of its own.
 */
static bool stand_apart(char *why, size_t size) {
    if (unshare_mapped())
        return true;
    const int error = errno;
    if (error && !unshare(CLONE_NEWNS))
        return true;
    snprintf(why, size, "no user namespace: %s", error ? fl_reason(error) : "its ids cannot be mapped");
    return false;
}

bool fl_confine_enter(const fl_covers *c, char *why, size_t size) {
    if (!stand_apart(why, size))
        return false;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
        snprintf(why, size, "no mounts of its own: %s", fl_reason(errno));
        return false;
    }
    for (size_t i = 0; i < c->count; i++) {
        struct stat st;
        if (stat(c->path[i], &st))
            continue; /* the file has disappeared since */
        if (mount(S_ISDIR(st.st_mode) ? c->folder : c->file, c->path[i], NULL, MS_BIND, NULL)) {
            snprintf(why, size, "cannot cover %.100s: %s", c->path[i], fl_reason(errno));
            return false;
        }
    }
    return true;
}

bool fl_confine_try(const fl_covers *c, char *why, size_t size) {
    int wire[2];
    if (pipe2(wire, O_CLOEXEC)) {
        snprintf(why, size, "pipe: %s", fl_reason(errno));
        return false;
    }
    const pid_t child = fork();
    if (!child) {
        char text[256] = "";
        const bool works = fl_confine_enter(c, text, sizeof text);
        const ssize_t n = works ? 0 : write(wire[1], text, strlen(text));
        _exit(works ? 0 : n > 0 ? 1 : 2);
    }
    close(wire[1]);
    int status = 1;
    ssize_t n = 0;
    if (child > 0)
        while ((n = read(wire[0], why, size - 1)) < 0 && errno == EINTR) {
        }
    close(wire[0]);
    why[n > 0 ? n : 0] = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!why[0])
        snprintf(why, size, "%s", child < 0 ? fl_reason(errno) : "the trial ended");
    return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}
