/* The folders of records and locks, and the record of prior values. */
#include "harness/live/vendor/inside.h"

#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- folders that no other user can have changed ---- */

enum { FILE_MAX = 1 << 20 }; /* a record of 4,096 CPUs is half of it */

const char *fl_state_folder(void) {
    const char *asked = getenv("FOLDLINE_STATE");
    return asked && *asked ? asked : "/var/lib/foldline";
}

const char *fl_run_folder(void) {
    static char own[64];
    const char *asked = getenv("FOLDLINE_RUN");
    if (asked && *asked)
        return asked;
    if (!geteuid())
        return "/run/foldline";
    snprintf(own, sizeof own, "/tmp/foldline-%u", (unsigned)geteuid());
    return own;
}

bool fl_state_path(const char *folder, const char *unit, const char *ending, char *buf, size_t size) {
    if (!*unit || *unit == '.' || strchr(unit, '/') || strlen(unit) >= FL_UNIT_MAX)
        return false;
    return (size_t)snprintf(buf, size, "%s/%s%s", folder, unit, ending) < size;
}

/* ---- folders ---- */

static fl_status check_folder(int fd, const char *folder, fl_diag *d) {
    struct stat f;
    if (fstat(fd, &f))
        return fl_error(d, FL_IO, "cannot look at the folder %s: %s", folder, fl_reason(errno));
    if (fl_mutated("folder-unchecked"))
        return FL_OK;
    if (f.st_uid != geteuid())
        return fl_error(
            d, FL_IO,
            "the folder %s belongs to user %u, and this runs as user %u: nothing in it is believed. Run it as "
            "that user, or name another folder",
            folder, (unsigned)f.st_uid, (unsigned)geteuid());
    if (f.st_mode & (S_IWGRP | S_IWOTH))
        return fl_error(d, FL_IO,
                        "others may write the folder %s (mode %03o): nothing in it is believed. Look at what is in it, "
                        "then chmod 0700 it",
                        folder, (unsigned)(f.st_mode & 0777));
    return FL_OK;
}

fl_status fl_folder_open(const char *folder, int *fd, fl_diag *d) {
    const int follow = fl_mutated("links-followed") ? 0 : O_NOFOLLOW;
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
    if (*fd < 0 && errno == ENOENT)
        return FL_OK;
    if (*fd < 0)
        return fl_error(d, FL_IO, "cannot open the folder %s: %s", folder,
                        errno == ENOTDIR || errno == ELOOP ? "it is no folder, or a link to one, which is not followed"
                                                           : fl_reason(errno));
    fl_status s = check_folder(*fd, folder, d);
    if (s) {
        close(*fd);
        *fd = -1;
    }
    return s;
}

fl_status fl_folder_make(const char *folder, fl_diag *d) {
    int fd = -1;
    if (mkdir(folder, 0700) && errno != EEXIST)
        return fl_error(d, FL_IO, "cannot make the folder %s: %s", folder, fl_reason(errno));
    fl_status s = fl_folder_open(folder, &fd, d);
    if (!s && fd < 0)
        s = fl_error(d, FL_IO, "the folder %s is gone again", folder);
    if (fd >= 0)
        close(fd);
    return s;
}

fl_status fl_state_open(const char **state, fl_diag *d) {
    *state = fl_state_folder();
    return fl_folder_make(*state, d);
}

/* ---- files ---- */

/* The reason not to trust a file; NULL = none. */
static const char *distrust(const struct stat *f) {
    if (!S_ISREG(f->st_mode))
        return fl_mutated("not-regular-taken") ? NULL : "it is no regular file";
    if (f->st_uid != geteuid())
        return fl_mutated("owner-unchecked") ? NULL : "it belongs to another user";
    if (f->st_mode & (S_IWGRP | S_IWOTH))
        return fl_mutated("mode-unchecked") ? NULL : "others may write it";
    if (f->st_nlink > 1)
        return fl_mutated("hard-link-taken") ? NULL : "it is a second name of another file";
    if (f->st_size > FILE_MAX)
        return fl_mutated("size-unbounded") ? NULL : "it is larger than any that foldline writes";
    return NULL;
}

static fl_status distrusted(const char *path, const char *why, fl_diag *d) {
    return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                   "foldline did not write it in this form: %s. foldline leaves it alone: remove it", why);
}

fl_status fl_state_file(const char *folder, const char *unit, const char *ending, int flags, int *fd, fl_diag *d) {
    char path[512];
    struct stat f;
    int at;
    *fd = -1;
    if (!fl_state_path(folder, unit, ending, path, sizeof path))
        return fl_refuse(d, "'%.60s' cannot be the name of a file of state", unit);
    fl_status s = fl_folder_open(folder, &at, d);
    if (s || at < 0)
        return s;
    const int follow = fl_mutated("links-followed") ? 0 : O_NOFOLLOW;
    const int wait = fl_mutated("fifo-waited-for") ? 0 : O_NONBLOCK;
    *fd = openat(at, path + strlen(folder) + 1, flags | O_CLOEXEC | O_NOCTTY | follow | wait, 0600);
    const int error = errno;
    close(at);
    if (*fd < 0)
        return error == ENOENT && !(flags & O_CREAT) ? FL_OK
               : error == ELOOP                      ? distrusted(path, "it is a link", d)
               : error == ENXIO || error == EISDIR   ? distrusted(path, "it is no regular file", d)
                                                   : fl_fail(d, FL_IO, path, 0, 0, "cannot open: %s", fl_reason(error));
    const char *why = fstat(*fd, &f) ? fl_reason(errno) : distrust(&f);
    if (why) {
        close(*fd);
        *fd = -1;
        return distrusted(path, why, d);
    }
    return FL_OK;
}

fl_status fl_state_remove(const char *folder, const char *unit, const char *ending, fl_diag *d) {
    char path[512];
    int at;
    if (!fl_state_path(folder, unit, ending, path, sizeof path))
        return fl_refuse(d, "'%.60s' cannot be the name of a file of state", unit);
    fl_status s = fl_folder_open(folder, &at, d);
    if (s || at < 0)
        return s;
    if (!unlinkat(at, path + strlen(folder) + 1, 0))
        fsync(at); /* the removal must be on disk too, or a crash could bring the entry back */
    else if (errno != ENOENT)
        s = fl_fail(d, FL_IO, path, 0, 0, "cannot remove: %s", fl_reason(errno));
    close(at);
    return s;
}

/* ---- the record of prior values ---- */

static const char ENDING[] = ".record";

fl_status fl_record_add(fl_record *r, const char *key, int64_t value, fl_diag *d) {
    if (fl_grow(&r->prior, &r->room, r->count + 1, sizeof *r->prior))
        return fl_no_memory(d, "the record of prior values");
    fl_prior *p = &r->prior[r->count];
    if ((size_t)snprintf(p->key, sizeof p->key, "%s", key) >= sizeof p->key)
        return fl_refuse(d, "'%.60s...' is too long for the record of prior values", key);
    p->value = value;
    r->count++;
    return FL_OK;
}

const fl_prior *fl_record_find(const fl_record *r, const char *key) {
    for (size_t i = 0; r && i < r->count; i++)
        if (!strcmp(r->prior[i].key, key))
            return &r->prior[i];
    return NULL;
}

void fl_record_free(fl_record *r) {
    free(r->prior);
    *r = (fl_record){0};
}

static fl_status boot_id(char *buf, size_t size, fl_diag *d) {
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool ok = f && fgets(buf, (int)size, f);
    if (f)
        fclose(f);
    if (!ok)
        return fl_error(d, FL_IO, "cannot read the boot id: %s", fl_reason(errno));
    buf[strcspn(buf, "\n")] = '\0';
    return FL_OK;
}

/* ---- writing ---- */

static void put_record(FILE *f, const fl_record *r, const char *boot) {
    fprintf(f, "foldline-record 1\nboot %s\nunit %s\n", boot, r->unit);
    for (size_t i = 0; i < r->count; i++)
        fprintf(f, "prior %" PRId64 " %s\n", r->prior[i].value, r->prior[i].key);
    fputs("end\n", f);
}

/* Renames to the final name in one step. The directory entry must be on disk too, or a crash could undo it. */
static bool put_in_place(const char *state, const char *temporary, const char *path) {
    int at;
    if (fl_folder_open(state, &at, NULL) || at < 0)
        return false;
    const size_t skip = strlen(state) + 1;
    const bool ok = !renameat(at, temporary + skip, at, path + skip) && !fsync(at);
    close(at);
    return ok;
}

fl_status fl_record_write(const char *state, const fl_record *r, fl_diag *d) {
    static const char NEW[] = ".new";
    char path[512], temporary[512], boot[64];
    int fd = -1;
    fl_status s = boot_id(boot, sizeof boot, d);
    if (!s) /* left by a killed controller; the unit is locked, so no one uses it. Of a link only the link goes, not its
               target */
        s = fl_state_remove(state, r->unit, NEW, d);
    const int fresh = fl_mutated("links-followed") ? 0 : O_EXCL;
    if (!s)
        s = fl_state_file(state, r->unit, NEW, O_WRONLY | O_CREAT | fresh, &fd, d);
    if (s)
        return s;
    fl_state_path(state, r->unit, ENDING, path, sizeof path);
    fl_state_path(state, r->unit, NEW, temporary, sizeof temporary);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (f)
        put_record(f, r, boot);
    else if (fd >= 0)
        close(fd);
    bool ok = f && !fflush(f) && !fsync(fileno(f));
    if (f)
        ok = !fclose(f) && ok;
    if (ok && put_in_place(state, temporary, path))
        return FL_OK;
    int error = errno;
    fl_state_remove(state, r->unit, NEW, NULL);
    return fl_fail(d, FL_IO, path, 0, 0, "cannot write the record of prior values: %s", fl_reason(error));
}

/* ---- reading ---- */

/* The keys that the back ends write (harness/live/vendor/nvml/read.c, harness/live/vendor/ze/read.c,
 * harness/live/vendor/rsmi/read.c) for units of that prefix, and the range of each control. A key that ends with a
 * colon is followed by the number of a clock domain. Level Zero's -1: no limit. */
static const struct {
    const char *prefix, *key;
    int64_t low, high;
} KEYS[] = {{"", FL_PRIOR_SM_LOCK, -1, -1},
            {"", FL_PRIOR_MEM_LOCK, -1, -1},
            {"", FL_PRIOR_LIMIT_MW, 0, INT32_MAX},
            {FL_ZE_PREFIX, "sm_min_khz:", -1, INT32_MAX},
            {FL_ZE_PREFIX, "sm_max_khz:", -1, INT32_MAX},
            {FL_ZE_PREFIX, "mem_min_khz:", -1, INT32_MAX},
            {FL_ZE_PREFIX, "mem_max_khz:", -1, INT32_MAX},
            {FL_ZE_PREFIX, FL_PRIOR_LIMIT_MW, -1, INT32_MAX},
            {FL_ZE_PREFIX, "sustained_enabled", 0, 1},
            {FL_RSMI_PREFIX, "perf_level", 0, 255},
            {FL_RSMI_PREFIX, "sm_min_mhz", 0, INT32_MAX},
            {FL_RSMI_PREFIX, "sm_max_mhz", 0, INT32_MAX},
            {FL_RSMI_PREFIX, "sm_allowed", -1, -1},
            {FL_RSMI_PREFIX, "mem_allowed", -1, -1},
            {FL_RSMI_PREFIX, "power_cap_uw", 0, INT64_C(1000000000000)}};

/* Files of the CPU (harness/live/guard/cpu.c), relative to the root of its tree. '#' stands for a number. */
static const struct {
    const char *path;
    int64_t low, high;
} FILES[] = {{"/sys/devices/system/cpu/cpufreq/boost", 0, 1},
             {"/sys/devices/system/cpu/intel_pstate/no_turbo", 0, 1},
             {"/sys/devices/system/cpu/cpufreq/policy#/scaling_max_freq", 1, 1000000000},
             {"/sys/class/powercap/intel-rapl:#/constraint_0_power_limit_uw", 0, INT64_C(1000000000000)}};

static bool is_path(const char *text, const char *form) {
    for (; *form; form++) {
        if (*form != '#') {
            if (*text++ != *form)
                return false;
            continue;
        }
        const size_t digits = strspn(text, "0123456789");
        if (!digits || digits > 6)
            return false;
        text += digits;
    }
    return !*text;
}

static bool is_key(const char *text, const char *key) {
    const size_t n = strlen(key);
    if (key[n - 1] != ':')
        return !strcmp(text, key);
    const char *number = text + n;
    return !strncmp(text, key, n) && *number && strlen(number) <= 6 && !number[strspn(number, "0123456789")];
}

static const char *prefix_of(const char *unit) {
    return !strncmp(unit, FL_ZE_PREFIX, strlen(FL_ZE_PREFIX))       ? FL_ZE_PREFIX
           : !strncmp(unit, FL_RSMI_PREFIX, strlen(FL_RSMI_PREFIX)) ? FL_RSMI_PREFIX
                                                                    : "";
}

/* False where the program does not write such a file of the CPU's settings. */
static bool range_of_file(const char *path, int64_t *low, int64_t *high) {
    const char *root = getenv("FOLDLINE_ROOT");
    const size_t skip = root ? strlen(root) : 0;
    for (size_t i = 0; (!skip || !strncmp(path, root, skip)) && i < sizeof FILES / sizeof *FILES; i++)
        if (is_path(path + skip, FILES[i].path)) {
            *low = FILES[i].low;
            *high = FILES[i].high;
            return true;
        }
    return fl_mutated("paths-unchecked");
}

/* False where the program does not write such a key for that unit; else the key's range. */
static bool range_of(const char *unit, const char *key, int64_t *low, int64_t *high) {
    *low = INT64_MIN;
    *high = INT64_MAX;
    if (!strcmp(unit, "cpu"))
        return range_of_file(key, low, high);
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (!strcmp(KEYS[i].prefix, prefix_of(unit)) && is_key(key, KEYS[i].key)) {
            *low = KEYS[i].low;
            *high = KEYS[i].high;
            return true;
        }
    return fl_mutated("unknown-keys-taken");
}

typedef struct reading {
    const char *path;
    fl_record *r;
    int64_t line;
    fl_diag *d;
} reading;

static const char WAY_OUT[] = "Nothing of this file is used: put the unit back with its vendor's tool (harness/manual/live.md), then "
                              "remove the file";

static fl_status not_ours(const reading *in, const char *what, const char *text) {
    return fl_fail(in->d, FL_BAD_INPUT, in->path, in->line, 0, "%s%s%.80s%s. %s", what, *text ? " '" : "", text,
                   *text ? "'" : "", WAY_OUT);
}

static fl_status take_prior(const reading *in, const char *text) {
    int64_t low, high;
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    char again[32];
    const int size = snprintf(again, sizeof again, "%lld ", value);
    if (end == text || *end != ' ')
        return not_ours(in, "no number, and no key behind it, in", text);
    const char *key = end + 1;
    if (!range_of(in->r->unit, key, &low, &high))
        return not_ours(in, "no control of this unit has the key", key);
    if ((errno || value < low || value > high) && !fl_mutated("values-unchecked"))
        return not_ours(in, "a value that the control cannot hold, in", text);
    if (!errno && strncmp(text, again, (size_t)size) != 0)
        return not_ours(in, "a number as nobody writes it, in", text);
    for (size_t i = 0; i < in->r->count; i++)
        if (!strcmp(in->r->prior[i].key, key))
            return not_ours(in, "a second value of the key", key);
    return fl_record_add(in->r, key, value, in->d);
}

/* Reads one line. *ended: it was the last one. */
static fl_status take_line(const reading *in, const char *text, bool *ended) {
    if (in->line == 1)
        return strcmp(text, "foldline-record 1") ? not_ours(in, "no record of this version of foldline", "") : FL_OK;
    if (in->line == 2)
        return strncmp(text, "boot ", 5) ? not_ours(in, "expected the boot, not", text) : FL_OK;
    if (in->line == 3)
        return strncmp(text, "unit ", 5) || strcmp(text + 5, in->r->unit)
                   ? not_ours(in, "expected the unit that the file is named after, not", text)
                   : FL_OK;
    if (!strncmp(text, "prior ", 6))
        return take_prior(in, text + 6);
    *ended = !strcmp(text, "end");
    return *ended || fl_mutated("unknown-keys-taken") ? FL_OK : not_ours(in, "expected prior or end, not", text);
}

/* A record of an earlier boot is void, whatever follows: *old. */
static fl_status parse(FILE *f, const char *path, fl_record *r, const char *now, bool *old, fl_diag *d) {
    char line[512];
    bool ended = false;
    reading in = {.path = path, .r = r, .d = d};
    fl_status s = FL_OK;
    while (!s && !ended && !*old && fgets(line, sizeof line, f)) {
        char *end = strchr(line, '\n');
        in.line++;
        if (!end && !fl_mutated("torn-taken")) /* truncated within a line, or longer than any line of ours */
            break;
        line[strcspn(line, "\n")] = '\0';
        s = take_line(&in, line, &ended);
        *old = !s && in.line == 2 && strcmp(line + 5, now) != 0;
    }
    if (!s && ended && fgetc(f) != EOF) {
        in.line++;
        return not_ours(&in, "something behind the end", "");
    }
    return s || ended || *old || fl_mutated("torn-taken") ? s : not_ours(&in, "no complete record of prior values", "");
}

fl_status fl_record_read(const char *state, const char *unit, fl_record *r, bool *found, fl_diag *d) {
    char path[512], now[64];
    bool old = false;
    int fd;
    *r = (fl_record){0};
    *found = false;
    fl_status s = fl_state_file(state, unit, ENDING, O_RDONLY, &fd, d);
    if (s || fd < 0)
        return s;
    FILE *f = fdopen(fd, "r");
    if (!f) {
        close(fd);
        return fl_no_memory(d, "the record of prior values");
    }
    fl_state_path(state, unit, ENDING, path, sizeof path);
    snprintf(r->unit, sizeof r->unit, "%s", unit);
    s = boot_id(now, sizeof now, d);
    if (!s)
        s = parse(f, path, r, now, &old, d);
    fclose(f);
    *found = !s && !old;
    if (!*found)
        fl_record_free(r);
    return s;
}

fl_status fl_record_remove(const char *state, const char *unit, fl_diag *d) {
    return fl_state_remove(state, unit, ENDING, d);
}

fl_status fl_record_units(const char *state, char ***units, size_t *count, fl_diag *d) {
    size_t room = 0;
    *units = NULL;
    *count = 0;
    int at;
    fl_status s = fl_folder_open(state, &at, d);
    if (s || at < 0)
        return s;
    DIR *folder = fdopendir(at);
    if (!folder) {
        close(at);
        return fl_no_memory(d, "the records");
    }
    for (struct dirent *e; !s && (e = readdir(folder));) {
        size_t size = strlen(e->d_name), ending = sizeof ENDING - 1;
        if (size <= ending || strcmp(e->d_name + size - ending, ENDING) != 0)
            continue;
        char *name = strndup(e->d_name, size - ending);
        if (!name || fl_grow(units, &room, *count + 1, sizeof **units)) {
            free(name);
            s = fl_no_memory(d, "the records");
        } else {
            (*units)[(*count)++] = name;
        }
    }
    closedir(folder);
    return s;
}
