#include "harness/advise/log.h"

#include "harness/advise/kernels.h"
#include "harness/input/platform/platform.h"

#include <stdlib.h>

/* One program that keeps the GPU busy during the whole run. anchor: whether the run's power scales the law's. */
static fl_status busy_run(const char *path, const fl_log_run *run, bool anchor, const fl_advise_options *o,
                          fl_advise_subject *to, fl_diag *d) {
    enum { OPS = 100 };
    char name[] = "program";
    char *names[] = {name};
    fl_trace_kind kind = {0}; /* no grid: the kernel fills the device */
    fl_trace_op op[OPS];
    const int64_t length = (int64_t)(run->time_s * 1e9 / OPS);
    bool assumed;
    for (int64_t i = 0; i < OPS; i++)
        op[i] = (fl_trace_op){.start_ns = i * length,
                              .end_ns = (i + 1) * length,
                              .launch_ns = INT64_MIN,
                              .bytes = -1,
                              .host_thread = -1,
                              .sm_mhz = (uint16_t)run->sm_mhz};
    const fl_kernel_trace t = {
        .names = names, .name_count = 1, .kinds = &kind, .kind_count = 1, .ops = op, .op_count = OPS};
    fl_advise_options own = *o;
    own.kinds = NULL;
    return fl_advise_kernels(path, &t, anchor ? run : NULL, &own, to, &assumed, d);
}

fl_status fl_advise_log(const char *path, const fl_log_run *run, const fl_advise_options *o, fl_advise_subject *to,
                        fl_one_probe *p, fl_diag *d) {
    fl_platform platform = {0};
    fl_chip *chip = NULL;
    *p = (fl_one_probe){.busy = *run};
    fl_status s = o->platform ? fl_platform_open(o->platform, 0, &platform, d) : FL_OK;
    if (!s && o->platform)
        s = fl_one_probe_of_device(&platform.node.device[platform.node.gpu[0]], run, p, &chip, d);
    fl_platform_free(&platform);
    if (!s)
        s = busy_run(path, &p->busy, !p->tells, o, to, d);
    const fl_chip_row ref = {.sm_mhz = to->ref.sm_mhz, .mem_mhz = to->ref.mem_mhz};
    for (size_t k = 0; !s && p->tells && k < to->cases; k++) {
        fl_stated *of = &to->of[k].stated;
        fl_chip_row *at = fl_stated_rows(of);
        s = at ? fl_one_probe_powers(chip, p, &ref, at, of->guess, of->count, d) : fl_no_memory(d, "the clocks");
        if (!s)
            fl_one_probe_add_idle(chip, p, at, of->guess, of->count);
        free(at);
    }
    free(chip);
    return s;
}
