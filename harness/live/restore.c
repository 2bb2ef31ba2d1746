#include "harness/live/restore.h"

#include "harness/live/cpu_host.h"
#include "harness/live/gpu_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS INT64_C(30000000000)

static const char CPU[] = "cpu";

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
    if (!strcmp(unit, CPU)) {
        s = fl_cpu_restore(&r, d);
    } else {
        int i = gpus && gpus->back ? fl_gpus_find(gpus, unit) : -1;
        s = i >= 0 ? gpus->back->restore(gpus->self, (uint32_t)i, &r, d)
                   : fl_fail(d, FL_HARDWARE, NULL, 0, 0, "%s: no such GPU now, or it does not answer", unit);
    }
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

fl_status fl_restore_all(fl_restore_result *r, fl_diag *d) {
    const char *state = fl_state_folder();
    char **unit = NULL;
    fl_gpus gpus = {0};
    fl_diag missing = {0};
    fl_status first = fl_record_units(state, &unit, &r->records, d);
    r->restored = 0;
    for (size_t i = 0; !first && i < r->records && !gpus.self; i++)
        if (strcmp(unit[i], CPU) != 0)
            first = fl_gpu_host_open_working(&gpus, NULL, &missing, d);
    for (size_t i = 0; i < r->records; i++) {
        fl_status s =
            gpus.self || !strcmp(unit[i], CPU) ? restore_one(state, unit[i], &gpus, r, first ? NULL : d) : FL_OK;
        first = first ? first : s;
    }
    if (first && gpus.self && missing.status && d) {
        const fl_diag told = *d;
        fl_fail(d, first, *told.file ? told.file : NULL, told.line, told.column, "%.500s; %.400s", told.message,
                missing.message);
    }
    fl_gpus_close(&gpus);
    for (size_t i = 0; i < r->records; i++)
        free(unit[i]);
    free(unit);
    return first;
}
