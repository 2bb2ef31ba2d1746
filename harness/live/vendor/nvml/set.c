#include "harness/live/vendor/nvml/inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* off_w: tolerance of the value read back. */
static fl_status set_limit(fl_nvml_host *h, fl_nvml_gpu *g, unsigned mw, double off_w, fl_diag *d) {
    unsigned now = 0;
    int code = FL_NVML_CALL(h, set_limit, g->handle, mw);
    if (code)
        return fl_nvml_failed(h, g, "setting the power limit", code, d);
    if ((code = FL_NVML_CALL(h, limit, g->handle, &now))) {
        fl_nvml_failed(h, g, "reading the power limit back", code, d);
        if (d) /* never report "nothing changed": the value was set */
            d->status = FL_HARDWARE;
        return FL_HARDWARE;
    }
    if (fabs((double)now - mw) > off_w * 1e3)
        return fl_error(d, FL_HARDWARE, "GPU %u: power limit reads back as %u mW after %u mW was set", g->index, now,
                        mw);
    return FL_OK;
}

fl_status fl_nvml_set(void *self, uint32_t i, int control, double value, const fl_record *prior, fl_diag *d) {
    fl_nvml_host *h = self;
    fl_nvml_gpu *g = &h->gpu[i];
    const bool back = value == FL_DEFAULT;
    const unsigned whole = back ? 0 : (unsigned)lrint(control == FL_SET_POWER_LIMIT_W ? value * 1e3 : value);
    int code = 0;
    switch (control) {
    case FL_SET_SM_MHZ:
        code = back ? FL_NVML_CALL(h, reset_sm, g->handle) : FL_NVML_CALL(h, lock_sm, g->handle, whole, whole);
        return code ? fl_nvml_failed(h, g, back ? "unlocking the SM clock" : "locking the SM clock", code, d) : FL_OK;
    case FL_SET_MEM_MHZ:
        code = back ? FL_NVML_CALL(h, reset_mem, g->handle) : FL_NVML_CALL(h, lock_mem, g->handle, whole, whole);
        return code ? fl_nvml_failed(h, g, back ? "unlocking the memory clock" : "locking the memory clock", code, d)
                    : FL_OK;
    case FL_SET_POWER_LIMIT_W: {
        unsigned standard = 0;
        const fl_prior *was = fl_record_find(prior, FL_PRIOR_LIMIT_MW);
        if (!back)
            return set_limit(h, g, whole, FL_LIMIT_OFF_W, d);
        if (was && was->value >= 0)
            return set_limit(h, g, (unsigned)was->value, 0, d);
        code = FL_NVML_CALL(h, limit_default, g->handle, &standard);
        return code ? fl_nvml_failed(h, g, "reading the default power limit", code, d)
                    : set_limit(h, g, standard, 0, d);
    }
    default:
        code = h->set_records ? h->set_records(g->index, value) : FL_NVML_OK;
        return code ? fl_nvml_failed(h, g, "kernel records", code, d) : FL_OK;
    }
}

fl_status fl_nvml_prior(void *self, uint32_t i, uint64_t drives, fl_record *r, fl_diag *d) {
    fl_nvml_host *h = self;
    fl_nvml_gpu *g = &h->gpu[i];
    fl_status s = FL_OK;
    snprintf(r->unit, sizeof r->unit, "%s", g->unit);
    if (drives & FL_BIT(FL_SET_SM_MHZ))
        s = fl_record_add(r, FL_PRIOR_SM_LOCK, -1, d);
    if (!s && drives & FL_BIT(FL_SET_MEM_MHZ))
        s = fl_record_add(r, FL_PRIOR_MEM_LOCK, -1, d);
    if (!s && drives & FL_BIT(FL_SET_POWER_LIMIT_W)) {
        unsigned mw = 0;
        int code = FL_NVML_CALL(h, limit, g->handle, &mw);
        s = code ? fl_nvml_failed(h, g, "reading the power limit", code, d)
                 : fl_record_add(r, FL_PRIOR_LIMIT_MW, mw, d);
    }
    return s;
}

/* A control that the board does not support cannot have been set either. */
static fl_status unlock(fl_nvml_host *h, fl_nvml_gpu *g, const char *what, int code, fl_diag *d) {
    bool fine = !code || code == FL_NVML_NOT_SUPPORTED || code == FL_NVML_FUNCTION_NOT_FOUND;
    return fine ? FL_OK : fl_nvml_failed(h, g, what, code, d);
}

fl_status fl_nvml_restore(void *self, uint32_t i, const fl_record *r, fl_diag *d) {
    fl_nvml_host *h = self;
    fl_nvml_gpu *g = &h->gpu[i];
    fl_status first = FL_OK;
    for (size_t k = 0; k < r->count; k++) {
        const char *key = r->prior[k].key;
        fl_status s = FL_OK;
        fl_diag *where = first ? NULL : d;
        if (!strcmp(key, FL_PRIOR_SM_LOCK))
            s = unlock(h, g, "unlocking the SM clock", FL_NVML_CALL(h, reset_sm, g->handle), where);
        else if (!strcmp(key, FL_PRIOR_MEM_LOCK))
            s = unlock(h, g, "unlocking the memory clock", FL_NVML_CALL(h, reset_mem, g->handle), where);
        else if (!strcmp(key, FL_PRIOR_LIMIT_MW))
            s = set_limit(h, g, (unsigned)r->prior[k].value, 0, where);
        first = first ? first : s;
    }
    return first;
}
