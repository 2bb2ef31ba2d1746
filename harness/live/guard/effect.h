/* Does a set take effect, and does it last? A call that succeeds need not do anything, a board rounds power limits, and
 * others set too (nvidia-smi, a scheduler). What is seen of that is told and counted; nothing is set again: whoever
 * fights over a control is no controller.
 *
 * A lock of clocks cannot be read back on every vendor's boards, so the achieved clock is looked at, some time after
 * the set. A clock below the lock is explained by an idle GPU and by every reason that holds it down; where no reasons
 * can be read it says nothing. Only one above it, or one below it without any reason, speaks against the set, and only
 * where it stays so. A policy that sets anew before a clock settles is not judged in between.
 *
 * Each takes NULL for e: nothing is watched. */
#pragma once

#include "harness/live/vendor/backend.h"

typedef struct fl_effect fl_effect;

typedef struct fl_effect_counts {
    uint64_t without; /* locks that never showed */
    uint64_t foreign; /* locks that showed once and then no more, power limits that somebody else set */
    uint64_t rounded; /* power limits that the board has at another value than was asked for */
} fl_effect_counts;

/* What was seen, in a line; again: of this GPU, control and kind there was one before. */
typedef void fl_effect_tell(void *user, const char *line, bool again);

/* tell may be NULL. Reads the power limits. */
fl_status fl_effect_open(fl_effect **out, const fl_gpus *gpus, fl_effect_tell *tell, void *user, fl_diag *d);
void fl_effect_close(fl_effect *e);

/* That set succeeded. */
void fl_effect_made(fl_effect *e, uint32_t gpu, int control, double value, int64_t t_ns);
/* Signals to read at t_ns beside those that the policy needs; mostly none. */
uint64_t fl_effect_needs(const fl_effect *e, uint32_t gpu, int64_t t_ns);
/* The reading, with those. */
void fl_effect_look(fl_effect *e, uint32_t gpu, int64_t t_ns, const fl_gpu_sample *sample);

fl_effect_counts fl_effect_count(const fl_effect *e);
