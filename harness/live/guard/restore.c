/* What this user may set, and the restore of GPUs from their records. */
#include "harness/live/guard/inside.h"

#include "harness/live/guard/guard.h"
#include "harness/live/vendor/vendor.h"
#include "traces/io/io.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FL_VENDORS_MAX 3

/* ---- what this user may set ---- */

enum { CAP_SYS_ADMIN_BIT = 21 };

bool fl_privilege_capable(const char *status) {
    char line[256];
    uint64_t caps = 0;
    FILE *f = fopen(status, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "CapEff: %" SCNx64, &caps) == 1)
            break;
    if (f)
        fclose(f);
    return caps >> CAP_SYS_ADMIN_BIT & 1;
}

/* The initial namespace maps every id to itself: 0 0 4294967295. No other may. */
bool fl_privilege_maps_all(const char *uid_map) {
    uint64_t inside = 1, outside = 1, count = 0;
    FILE *f = fopen(uid_map, "re");
    if (!f)
        return true;
    const bool read = fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside, &count) == 3;
    fclose(f);
    return read && !inside && !outside && count == UINT32_MAX;
}

bool fl_privilege_initial(void) { return fl_privilege_maps_all("/proc/self/uid_map"); }

bool fl_privilege_admin(void) { return fl_privilege_capable("/proc/self/status") && fl_privilege_initial(); }

/* ---- restore ---- */

#define WAIT_NS INT64_C(30000000000)

static const char CPU[] = "cpu";

fl_status fl_restore_record(const fl_record *r, const fl_gpus *gpus, fl_diag *d) {
    if (!strcmp(r->unit, CPU))
        return fl_cpu_restore(r, d);
    const int i = gpus && gpus->back ? fl_gpus_find(gpus, r->unit) : -1;
    return i >= 0 ? gpus->back->restore(gpus->self, (uint32_t)i, r, d)
                  : fl_error(d, FL_HARDWARE, "%s: no such GPU now, or it does not answer", r->unit);
}

fl_status fl_restore_unit(const char *state, const char *unit, const fl_gpus *gpus, bool *restored, fl_diag *d) {
    fl_record r = {0};
    bool found = false;
    if (restored)
        *restored = false;
    fl_status s = fl_record_read(state, unit, &r, &found, d);
    if (s)
        return s;
    if (!found) /* one of an earlier boot is void */
        return fl_record_remove(state, unit, d);
    s = fl_restore_record(&r, gpus, d);
    fl_record_free(&r);
    if (!s)
        s = fl_record_remove(state, unit, d);
    if (!s && restored)
        *restored = true;
    return s;
}

static fl_status restore_one(const char *state, const char *unit, const fl_gpus *gpus, fl_restore_result *r,
                             fl_diag *d) {
    fl_lock lock;
    bool restored = false;
    fl_status s = fl_lock_take(state, unit, FL_LOCK_RESTORE, WAIT_NS, &lock, d);
    if (s)
        return s;
    s = fl_restore_unit(state, unit, gpus, &restored, d);
    r->restored += restored;
    if (!s)
        fl_lock_unlink(state, &lock);
    fl_lock_close(&lock);
    return s;
}

typedef struct opened { /* the vendors whose units have records, each opened when its first one comes */
    fl_gpus gpus[FL_VENDORS_MAX];
    bool failed[FL_VENDORS_MAX];
    fl_diag missing; /* the first GPU that does not answer; it does not hold up the others */
} opened;

/* NULL for the CPU; *s is why it cannot be opened, told once. */
static const fl_gpus *gpus_of(opened *o, const char *unit, fl_status *s, fl_diag *d) {
    size_t v = 0;
    if (!strcmp(unit, CPU))
        return NULL;
    while (v + 1 < fl_vendor_count() && strcmp(fl_vendor_name(v), fl_vendor_of(unit)) != 0)
        v++;
    if (!o->gpus[v].self && !o->failed[v]) {
        fl_diag missing;
        *s = fl_vendor_open(&o->gpus[v], fl_vendor_name(v), NULL, &missing, d);
        o->failed[v] = *s != FL_OK;
        if (!o->missing.status)
            o->missing = missing;
    }
    return &o->gpus[v];
}

fl_status fl_restore_all(fl_restore_result *r, fl_diag *d) {
    const char *state = fl_state_folder();
    char **unit = NULL;
    opened o = {0};
    fl_status first = fl_record_units(state, &unit, &r->records, d);
    r->restored = r->failed = 0;
    for (size_t i = 0; i < r->records; i++) {
        fl_status s = FL_OK;
        const fl_gpus *gpus = gpus_of(&o, unit[i], &s, first ? NULL : d);
        if (!gpus || gpus->self)
            s = restore_one(state, unit[i], gpus, r, first ? NULL : d);
        first = first ? first : s;
        r->failed += s || (gpus && !gpus->self);
    }
    if (first && o.missing.status && d) {
        const fl_diag told = *d;
        fl_fail(d, first, *told.file ? told.file : NULL, told.line, told.column, "%.500s; %.400s", told.message,
                o.missing.message);
    }
    for (size_t i = 0; i < FL_VENDORS_MAX; i++)
        fl_gpus_close(&o.gpus[i]);
    for (size_t i = 0; i < r->records; i++)
        free(unit[i]);
    free(unit);
    return first;
}
