/* Which kernel records a policy is shown: those of GPUs on which it has them on. The collector records all along,
 * whatever a policy sets; a policy sees what it would see of one that is switched (policies/policy.h). */
#pragma once

#include "policies/policy.h"
#include "traces/io/diag.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct fl_record_switch { /* plain zero is closed */
    struct fl_record_state *gpu;
    uint32_t count;
    fl_kernel_record *kept;
    size_t room;
} fl_record_switch;

fl_status fl_record_switch_open(fl_record_switch *s, uint32_t gpus, bool on, fl_diag *d);
void fl_record_switch_close(fl_record_switch *s);

/* On or off from t_ns on, in the time of the records: a kernel that ends then or before belongs to what was. */
void fl_record_switch_set(fl_record_switch *s, uint32_t gpu, bool on, int64_t t_ns);

/* Leaves in the sample what is to be seen of its records, which are all that came since the last call, some of kernels
 * that ended long before. They live until the next one. Where records are off everywhere none is lost, and there are
 * only those that come late. */
fl_status fl_record_switch_show(fl_record_switch *s, fl_sample *sample, fl_diag *d);
