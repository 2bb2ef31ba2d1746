#include "harness/live/vendor/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

void fl_record_free(fl_record *r) {
    free(r->prior);
    *r = (fl_record){0};
}

const char *fl_state_folder(void) {
    const char *asked = getenv("FOLDLINE_STATE");
    return asked && *asked ? asked : "/var/lib/foldline";
}

fl_status fl_state_open(const char **state, fl_diag *d) {
    *state = fl_state_folder();
    if (mkdir(*state, 0700) && errno != EEXIST)
        return fl_error(d, FL_IO, "cannot make the state folder %s: %s", *state, fl_reason(errno));
    return FL_OK;
}

bool fl_state_path(const char *state, const char *unit, const char *ending, char *buf, size_t size) {
    if (!*unit || *unit == '.' || strchr(unit, '/') || strlen(unit) >= FL_UNIT_MAX)
        return false;
    return (size_t)snprintf(buf, size, "%s/%s%s", state, unit, ending) < size;
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

static fl_status bad_unit(const char *unit, fl_diag *d) {
    return fl_refuse(d, "'%.60s' cannot be the name of a record", unit);
}

/* The entry in the folder must be on disk too, or a crash could take the new name back. */
static bool sync_folder(const char *state) {
    int fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && !fsync(fd);
    if (fd >= 0)
        close(fd);
    return ok;
}

fl_status fl_record_write(const char *state, const fl_record *r, fl_diag *d) {
    char path[512], temporary[512], boot[64];
    fl_status s = boot_id(boot, sizeof boot, d);
    if (s)
        return s;
    if (!fl_state_path(state, r->unit, ENDING, path, sizeof path) ||
        !fl_state_path(state, r->unit, ".new", temporary, sizeof temporary))
        return bad_unit(r->unit, d);
    FILE *f = fopen(temporary, "we");
    if (f) {
        fprintf(f, "foldline-record 1\nboot %s\nunit %s\n", boot, r->unit);
        for (size_t i = 0; i < r->count; i++)
            fprintf(f, "prior %" PRId64 " %s\n", r->prior[i].value, r->prior[i].key);
        fputs("end\n", f);
    }
    bool ok = f && !fflush(f) && !fsync(fileno(f));
    if (f)
        ok = !fclose(f) && ok;
    if (ok && !rename(temporary, path) && sync_folder(state))
        return FL_OK;
    int error = errno;
    unlink(temporary);
    return fl_fail(d, FL_IO, path, 0, 0, "cannot write the record of prior values: %s", fl_reason(error));
}

static fl_status parse(FILE *f, const char *path, fl_record *r, char *boot, size_t boot_size, fl_diag *d) {
    char line[512];
    bool ended = false;
    int64_t number = 0;
    while (!ended && fgets(line, sizeof line, f)) {
        fl_prior p;
        line[strcspn(line, "\n")] = '\0';
        number++;
        if (number == 1 ? strcmp(line, "foldline-record 1") != 0 : false)
            break;
        if (!strncmp(line, "boot ", 5)) {
            snprintf(boot, boot_size, "%.60s", line + 5);
        } else if (!strcmp(line, "end")) {
            ended = true;
        } else if (sscanf(line, "prior %" SCNd64 " %255s", &p.value, p.key) == 2) {
            fl_status s = fl_record_add(r, p.key, p.value, d);
            if (s)
                return s;
        } else if (number > 1 && strncmp(line, "unit ", 5) != 0) {
            break;
        }
    }
    return ended ? FL_OK : fl_fail(d, FL_BAD_INPUT, path, number, 0, "no complete record of prior values");
}

fl_status fl_record_read(const char *state, const char *unit, fl_record *r, bool *found, fl_diag *d) {
    char path[512], now[64], boot[64] = "";
    *r = (fl_record){0};
    *found = false;
    if (!fl_state_path(state, unit, ENDING, path, sizeof path))
        return bad_unit(unit, d);
    FILE *f = fopen(path, "re");
    if (!f)
        return errno == ENOENT ? FL_OK : fl_fail(d, FL_IO, path, 0, 0, "cannot read: %s", fl_reason(errno));
    snprintf(r->unit, sizeof r->unit, "%s", unit);
    fl_status s = parse(f, path, r, boot, sizeof boot, d);
    fclose(f);
    if (!s)
        s = boot_id(now, sizeof now, d);
    if (!s && strcmp(boot, now) != 0) {
        fl_record_free(r);
        return FL_OK;
    }
    *found = !s;
    if (s)
        fl_record_free(r);
    return s;
}

fl_status fl_record_remove(const char *state, const char *unit, fl_diag *d) {
    char path[512];
    if (!fl_state_path(state, unit, ENDING, path, sizeof path))
        return bad_unit(unit, d);
    if (unlink(path))
        return errno == ENOENT ? FL_OK : fl_fail(d, FL_IO, path, 0, 0, "cannot remove: %s", fl_reason(errno));
    sync_folder(state);
    return FL_OK;
}

fl_status fl_record_units(const char *state, char ***units, size_t *count, fl_diag *d) {
    size_t room = 0;
    *units = NULL;
    *count = 0;
    DIR *folder = opendir(state);
    if (!folder)
        return errno == ENOENT ? FL_OK : fl_fail(d, FL_IO, state, 0, 0, "cannot read: %s", fl_reason(errno));
    fl_status s = FL_OK;
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
