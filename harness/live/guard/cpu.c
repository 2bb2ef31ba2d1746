/* The node's CPU: cpufreq, RAPL, /proc/stat and perf events. */
#include "harness/live/guard/inside.h"

#include "harness/live/guard/guard.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Retired micro-operations have no generic event: AMD PMCx0C1, Intel UOPS_RETIRED.RETIRE_SLOTS (0xC2, mask 2). */
typedef enum fl_perf_event { FL_PERF_CYCLES, FL_PERF_UOPS_AMD, FL_PERF_UOPS_INTEL } fl_perf_event;

typedef struct fl_perf { /* one event, a file per CPU */
    int *fd;
    uint32_t count; /* 0 = not to be had */
} fl_perf;

/* ---- perf events ---- */

static const struct {
    uint32_t type;
    uint64_t config;
} EVENT[] = {[FL_PERF_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
             [FL_PERF_UOPS_AMD] = {PERF_TYPE_RAW, 0x00c1},
             [FL_PERF_UOPS_INTEL] = {PERF_TYPE_RAW, 0x02c2}};

static void fl_perf_open(fl_perf *k, uint32_t cores, fl_perf_event event) {
    if (!(k->fd = calloc(cores + 1, sizeof *k->fd)))
        return;
    for (uint32_t i = 0; i < cores; i++) {
        struct perf_event_attr a = {.type = EVENT[event].type, .size = sizeof a, .config = EVENT[event].config};
        long fd = syscall(SYS_perf_event_open, &a, -1, (int)i, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0)
            break;
        k->fd[k->count++] = (int)fd;
    }
    if (k->count < cores) /* a part of the CPUs would look like an idle machine */
        while (k->count)
            close(k->fd[--k->count]);
}

/* since it was opened */
static bool fl_perf_read(const fl_perf *k, double *sum) {
    *sum = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        uint64_t value;
        if (read(k->fd[i], &value, sizeof value) != sizeof value)
            return false;
        *sum += (double)value;
    }
    return k->count > 0;
}

/* a zeroed struct is allowed */
static void fl_perf_close(fl_perf *k) {
    while (k->count)
        close(k->fd[--k->count]);
    free(k->fd);
}

/* ---- the CPU ---- */

enum { PACKAGES_MAX = 16, ZONES_MAX = 32 };

typedef struct package { /* one RAPL zone of a whole package */
    char path[256];
    int64_t last_uj, wrap_uj;
    double sum_uj;
} package;

struct fl_cpu_host {
    char root[128];
    uint64_t needs;
    char name[64];
    int32_t *mhz;
    uint32_t mhz_count, policy_count, cores;
    char **policy; /* folders of cpufreq */
    package package[PACKAGES_MAX];
    uint32_t package_count;
    fl_perf cycles, uops;
    int64_t busy, total; /* of /proc/stat at the last reading */
    bool stat_known;
};

/* ---- files of one number ---- */

static bool get_number(const char *path, int64_t *value) {
    FILE *f = fopen(path, "re");
    bool ok = f && fscanf(f, "%" SCNd64, value) == 1;
    if (f)
        fclose(f);
    return ok;
}

/* Never makes a file: what is not there is no setting. */
static fl_status put_number(const char *path, int64_t value, fl_diag *d) {
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = f && fprintf(f, "%" PRId64 "\n", value) > 0;
    int error = errno;
    if (!f && fd >= 0)
        close(fd);
    if (f && fclose(f)) { /* the kernel refuses when the text reaches it */
        ok = false;
        error = errno;
    }
    const bool refused = error == EACCES || error == EPERM || error == EROFS; /* nothing changed */
    return ok ? FL_OK : fl_fail(d, refused ? FL_IO : FL_HARDWARE, path, 0, 0, "cannot set: %s", fl_reason(error));
}

/* A control of several files: that one of them refused says "nothing changed" only while no other was written. */
static fl_status after_others(fl_status s, bool written, fl_diag *d) {
    if (s != FL_IO || !written)
        return s;
    if (d)
        d->status = FL_HARDWARE;
    return FL_HARDWARE;
}

static const char *in(char *buf, size_t size, const char *folder, const char *name) {
    snprintf(buf, size, "%s/%s", folder, name);
    return buf;
}

/* ---- what there is ---- */

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static int rising(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

static fl_status find_policies(fl_cpu_host *c, fl_diag *d) {
    char folder[256];
    size_t room = 0;
    snprintf(folder, sizeof folder, "%s/sys/devices/system/cpu/cpufreq", c->root);
    DIR *dir = opendir(folder);
    fl_status s = FL_OK;
    for (struct dirent *e; !s && dir && (e = readdir(dir));) {
        char *path = NULL;
        if (strncmp(e->d_name, "policy", 6))
            continue;
        if (asprintf(&path, "%s/%s", folder, e->d_name) < 0 ||
            fl_grow(&c->policy, &room, c->policy_count + 1, sizeof *c->policy))
            s = fl_no_memory(d, "the CPU");
        else
            c->policy[c->policy_count++] = path;
    }
    if (dir)
        closedir(dir);
    if (c->policy_count)
        qsort(c->policy, c->policy_count, sizeof *c->policy, by_name);
    return s;
}

/* The listed clocks; where the driver lists none (intel_pstate), every 100 MHz of its range. */
static fl_status find_clocks(fl_cpu_host *c, fl_diag *d) {
    char path[512];
    size_t room = 0;
    int64_t low = 0, high = 0, khz;
    if (!c->policy_count)
        return FL_OK;
    FILE *f = fopen(in(path, sizeof path, c->policy[0], "scaling_available_frequencies"), "re");
    while (f && fscanf(f, "%" SCNd64, &khz) == 1 && khz > 0 && khz < 100000000) {
        if (fl_grow(&c->mhz, &room, c->mhz_count + 1, sizeof *c->mhz)) {
            fclose(f);
            return fl_no_memory(d, "the CPU");
        }
        c->mhz[c->mhz_count++] = (int32_t)(khz / 1000);
    }
    if (f)
        fclose(f);
    if (!c->mhz_count && get_number(in(path, sizeof path, c->policy[0], "cpuinfo_min_freq"), &low) &&
        get_number(in(path, sizeof path, c->policy[0], "cpuinfo_max_freq"), &high))
        for (khz = low; khz <= high && low > 0 && high < 100000000; khz += 100000) {
            if (fl_grow(&c->mhz, &room, c->mhz_count + 1, sizeof *c->mhz))
                return fl_no_memory(d, "the CPU");
            c->mhz[c->mhz_count++] = (int32_t)(khz / 1000);
        }
    if (c->mhz_count)
        qsort(c->mhz, c->mhz_count, sizeof *c->mhz, rising);
    return FL_OK;
}

/* Of the zones intel-rapl:N those named package-...: "psys" is the whole board, packages included. intel-rapl:N:M is a
 * part of one, already counted. */
static bool is_package(const char *zone) {
    char path[512], name[32] = "";
    FILE *f = fopen(in(path, sizeof path, zone, "name"), "re");
    const bool is = f && fgets(name, sizeof name, f) && !strncmp(name, "package-", 8);
    if (f)
        fclose(f);
    return is;
}

static void find_packages(fl_cpu_host *c) {
    char path[512];
    for (uint32_t i = 0; i < ZONES_MAX && c->package_count < PACKAGES_MAX; i++) {
        package *p = &c->package[c->package_count];
        snprintf(path, sizeof path, "%s/sys/class/powercap/intel-rapl:%u", c->root, i);
        memcpy(p->path, path, sizeof p->path);
        p->path[sizeof p->path - 1] = '\0';
        if (!is_package(p->path) || !get_number(in(path, sizeof path, p->path, "energy_uj"), &p->last_uj))
            continue;
        if (!get_number(in(path, sizeof path, p->path, "max_energy_range_uj"), &p->wrap_uj))
            p->wrap_uj = 0;
        p->sum_uj = (double)p->last_uj;
        c->package_count++;
    }
}

static void find_name(fl_cpu_host *c, bool *amd) {
    char path[256], line[512];
    snprintf(path, sizeof path, "%s/proc/cpuinfo", c->root);
    snprintf(c->name, sizeof c->name, "CPU");
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *value = strstr(line, ": ");
        if (!value)
            continue;
        value[strcspn(value, "\n")] = '\0';
        c->cores += !strncmp(line, "processor", 9);
        *amd = *amd || (!strncmp(line, "vendor_id", 9) && strstr(value, "AMD"));
        if (!strncmp(line, "model name", 10))
            snprintf(c->name, sizeof c->name, "%.60s", value + 2);
    }
    if (f)
        fclose(f);
}

/* ---- reading ---- */

static void put_signal(fl_host_sample *s, int id, double value) {
    s->value[id] = value;
    s->valid |= FL_BIT(id);
    s->fresh |= FL_BIT(id);
}

uint64_t fl_cpu_host_reads(void) {
    return FL_BIT(FL_HOST_CPU_MHZ) | FL_BIT(FL_HOST_CPU_UTIL_PCT) | FL_BIT(FL_HOST_CPU_ENERGY_J) |
           FL_BIT(FL_HOST_CPU_CYCLES) | FL_BIT(FL_HOST_CPU_UOPS);
}

static bool wants(const fl_cpu_host *c, int id) { return c->needs >> id & fl_cpu_host_reads() >> id & 1; }

static void read_clock(fl_cpu_host *c, fl_host_sample *s) {
    char path[512];
    double sum = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < c->policy_count; i++) {
        int64_t khz;
        if (get_number(in(path, sizeof path, c->policy[i], "scaling_cur_freq"), &khz)) {
            sum += (double)khz / 1e3;
            known++;
        }
    }
    if (known)
        put_signal(s, FL_HOST_CPU_MHZ, sum / known);
}

static void read_use(fl_cpu_host *c, fl_host_sample *s) {
    char path[256];
    int64_t v[8] = {0}, total = 0;
    snprintf(path, sizeof path, "%s/proc/stat", c->root);
    FILE *f = fopen(path, "re");
    bool ok =
        f &&
        fscanf(f, "cpu %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
               &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) == 8;
    if (f)
        fclose(f);
    if (!ok)
        return;
    for (int i = 0; i < 8; i++)
        total += v[i];
    const int64_t busy = total - v[3] - v[4]; /* all but idle and waiting for I/O */
    if (c->stat_known && total > c->total && busy >= c->busy)
        put_signal(s, FL_HOST_CPU_UTIL_PCT, 100.0 * (double)(busy - c->busy) / (double)(total - c->total));
    c->busy = busy;
    c->total = total;
    c->stat_known = true;
}

/* Each package wraps at a range of its own. A fall without a known range is a reset: what was used is unknown. */
static void read_energy(fl_cpu_host *c, fl_host_sample *s) {
    char path[512];
    double sum = 0;
    for (uint32_t i = 0; i < c->package_count; i++) {
        package *p = &c->package[i];
        int64_t uj;
        if (!get_number(in(path, sizeof path, p->path, "energy_uj"), &uj))
            return;
        int64_t step = uj - p->last_uj;
        if (step < 0)
            step = p->wrap_uj > 0 && p->last_uj <= p->wrap_uj ? step + p->wrap_uj : 0;
        p->sum_uj += (double)step;
        p->last_uj = uj;
        sum += p->sum_uj;
    }
    if (c->package_count)
        put_signal(s, FL_HOST_CPU_ENERGY_J, sum / 1e6);
}

void fl_cpu_host_read(fl_cpu_host *c, fl_host_sample *s) {
    double value;
    if (wants(c, FL_HOST_CPU_MHZ))
        read_clock(c, s);
    if (wants(c, FL_HOST_CPU_UTIL_PCT))
        read_use(c, s);
    if (wants(c, FL_HOST_CPU_ENERGY_J))
        read_energy(c, s);
    if (wants(c, FL_HOST_CPU_CYCLES) && fl_perf_read(&c->cycles, &value))
        put_signal(s, FL_HOST_CPU_CYCLES, value);
    if (wants(c, FL_HOST_CPU_UOPS) && fl_perf_read(&c->uops, &value))
        put_signal(s, FL_HOST_CPU_UOPS, value);
}

/* ---- setting ---- */

static const char *boost_file(const fl_cpu_host *c, char *buf, size_t size, bool *inverted) {
    int64_t value;
    *inverted = false;
    snprintf(buf, size, "%s/sys/devices/system/cpu/cpufreq/boost", c->root);
    if (get_number(buf, &value))
        return buf;
    *inverted = true;
    snprintf(buf, size, "%s/sys/devices/system/cpu/intel_pstate/no_turbo", c->root);
    return get_number(buf, &value) ? buf : NULL;
}

static fl_status add_file(fl_record *r, const char *path, fl_diag *d) {
    int64_t value;
    if (!get_number(path, &value))
        return fl_fail(d, FL_IO, path, 0, 0, "cannot read its value: %s", fl_reason(errno));
    return fl_record_add(r, path, value, d);
}

fl_status fl_cpu_host_prior(const fl_cpu_host *c, uint64_t drives, fl_record *r, fl_diag *d) {
    char path[512];
    bool inverted;
    fl_status s = FL_OK;
    snprintf(r->unit, sizeof r->unit, "cpu");
    /* Boost first, and so restored first: while it is off the kernel clips the highest clock allowed. */
    if (drives & FL_BIT(FL_SET_HOST_CPU_BOOST))
        s = boost_file(c, path, sizeof path, &inverted) ? add_file(r, path, d) : fl_error(d, FL_IO, "no file for it");
    if (!s && drives & FL_BIT(FL_SET_HOST_CPU_MHZ)) {
        if (!c->policy_count)
            s = fl_error(d, FL_IO, "no cpufreq driver");
        for (uint32_t i = 0; !s && i < c->policy_count; i++)
            s = add_file(r, in(path, sizeof path, c->policy[i], "scaling_max_freq"), d);
    }
    if (!s && drives & FL_BIT(FL_SET_HOST_CPU_POWER_LIMIT_W)) {
        if (!c->package_count)
            s = fl_error(d, FL_IO, "no RAPL");
        for (uint32_t i = 0; !s && i < c->package_count; i++)
            s = add_file(r, in(path, sizeof path, c->package[i].path, "constraint_0_power_limit_uw"), d);
    }
    return s;
}

/* One file of a control: the value, or what stood in it. */
static fl_status set_file(const char *path, double value, double scale, const fl_record *prior, fl_diag *d) {
    if (value != FL_DEFAULT)
        return put_number(path, llrint(value * scale), d);
    const fl_prior *was = fl_record_find(prior, path);
    return was ? put_number(path, was->value, d) : FL_OK;
}

fl_status fl_cpu_host_set(fl_cpu_host *c, int control, double value, const fl_record *prior, fl_diag *d) {
    char path[512];
    bool inverted;
    fl_status s = FL_OK;
    switch (control) {
    case FL_SET_HOST_CPU_MHZ: /* the clock asked for is the highest allowed: every governor keeps to it */
        for (uint32_t i = 0; !s && i < c->policy_count; i++)
            s = after_others(set_file(in(path, sizeof path, c->policy[i], "scaling_max_freq"), value, 1e3, prior, d),
                             i > 0, d);
        return s;
    case FL_SET_HOST_CPU_BOOST:
        if (!boost_file(c, path, sizeof path, &inverted))
            return fl_error(d, FL_HARDWARE, "boost cannot be set: no file for it");
        return set_file(path, value == FL_DEFAULT || !inverted ? value : 1 - value, 1, prior, d);
    default: /* each package its share */
        for (uint32_t i = 0; !s && i < c->package_count; i++)
            s = after_others(set_file(in(path, sizeof path, c->package[i].path, "constraint_0_power_limit_uw"),
                                      value == FL_DEFAULT ? value : value / c->package_count, 1e6, prior, d),
                             i > 0, d);
        return s;
    }
}

fl_status fl_cpu_restore(const fl_record *r, fl_diag *d) {
    fl_status first = FL_OK;
    for (size_t i = 0; i < r->count; i++) {
        const fl_prior *p = &r->prior[i];
        int64_t now;
        fl_diag *where = first ? NULL : d;
        if (p->key[0] != '/')
            continue;
        fl_status s = put_number(p->key, p->value, where);
        if (!s && (!get_number(p->key, &now) || now != p->value))
            s = fl_fail(where, FL_HARDWARE, p->key, 0, 0, "reads back other than the %" PRId64 " that was written",
                        p->value);
        first = first ? first : s;
    }
    return first;
}

/* ---- opening, closing ---- */

void fl_cpu_host_facts(const fl_cpu_host *c, fl_host_facts *f) {
    *f = (fl_host_facts){.name = c->name, .cpu = {c->mhz, c->mhz_count}, .cores = c->cores};
}

void fl_cpu_host_close(fl_cpu_host *c) {
    if (!c)
        return;
    for (uint32_t i = 0; i < c->policy_count; i++)
        free(c->policy[i]);
    free(c->policy);
    free(c->mhz);
    fl_perf_close(&c->cycles);
    fl_perf_close(&c->uops);
    free(c);
}

fl_status fl_cpu_host_open(fl_cpu_host **out, const char *root, uint64_t needs, fl_diag *d) {
    bool amd = false;
    *out = NULL;
    fl_cpu_host *c = calloc(1, sizeof *c);
    if (!c)
        return fl_no_memory(d, "the CPU");
    root = root ? root : getenv("FOLDLINE_ROOT");
    snprintf(c->root, sizeof c->root, "%s", root ? root : "");
    c->needs = needs;
    find_name(c, &amd);
    find_packages(c);
    fl_status s = find_policies(c, d);
    if (!s)
        s = find_clocks(c, d);
    if (!s && needs & FL_BIT(FL_HOST_CPU_CYCLES))
        fl_perf_open(&c->cycles, c->cores, FL_PERF_CYCLES);
    if (!s && needs & FL_BIT(FL_HOST_CPU_UOPS))
        fl_perf_open(&c->uops, c->cores, amd ? FL_PERF_UOPS_AMD : FL_PERF_UOPS_INTEL);
    if (s) {
        fl_cpu_host_close(c);
        return s;
    }
    *out = c;
    return FL_OK;
}
