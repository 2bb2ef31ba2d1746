#include "harness/fit/chip/chosen.h"

fl_status fl_fit_choose(const fl_chip *chip, fl_fit_at *at, fl_diag *d) {
    if (at->kind != FL_FIT_CHOSEN)
        return FL_OK;
    const fl_model_status s = fl_probes_choose(chip, at->choose, &at->chosen);
    if (s == FL_MODEL_NO_MEMORY)
        return fl_no_memory(d, "the probes");
    return s == FL_MODEL_OK ? FL_OK
                            : fl_refuse(d,
                                        "--at chosen:%zu of a device calibrated with %u workloads at %u settings, "
                                        "expected %d workloads and more settings than it has to choose",
                                        at->choose, chip->shares, chip->settings, FL_PROBES_WORKLOADS);
}

char *fl_fit_probes_text(const fl_probes *p, bool memory, char *buf, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < p->count && used < size; i++) {
        used += (size_t)snprintf(buf + used, size - used, "%s%g", i ? " + " : "", p->at[i].sm_mhz);
        if (memory && used < size)
            used += (size_t)snprintf(buf + used, size - used, "/%g", p->at[i].mem_mhz);
    }
    if (used < size)
        (void)snprintf(buf + used, size - used, " MHz");
    return buf;
}
