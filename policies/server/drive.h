/* What the policies for servers share: which GPUs are a server's, the clocks they choose from, which of them is in
 * force, and what the server's signals say of its load and of its steps. */
#pragma once

#include "policies/policy.h"
#include "policies/server/step_times.h"

/* Of one server. It lies in the state of the server's first GPU, so a node needs no bound on its servers. */
typedef struct fl_drive {
    fl_step_times times;
    double mhz;       /* clock asked for; 0: the default, or nothing was set yet */
    int64_t set_ns;   /* when it was set */
    int64_t force_ns; /* since when it is in force; < 0: not yet */
    int64_t clock;    /* its index in times.mhz; -1: it is none of them */
    uint64_t moves;
    uint32_t told; /* 1: batch records came at least once, so steps are learned from them alone */

    /* of the last sample */
    double waiting, running, oldest_wait_s; /* NAN: not known */
    double kv_tokens;                       /* in the cache, as far as known; else 0 */
    double kv_read;                         /* of the cache, by the last step of the engine that was told */
    double prompt_tokens;                   /* of the last step of the engine, or of a mean one since the last sample */

    /* counters as of the last sample in which they were fresh; NAN: not known */
    double tbt_sum_ns, tbt_count, prompt_count, batches;
    int64_t counted_ns;
} fl_drive;

/* NULL, or why this node's servers cannot be driven: none, no GPU, a GPU in two servers, no SM ladder. */
const char *fl_drive_check(const fl_facts *facts);

/* The same, and that each server states both targets. */
const char *fl_drive_check_targets(const fl_facts *facts);

/* Begins one. clocks: those listed, or where none are `standard` of them, spread from `lowest` (a share of the top
 * clock) to the top; each is a clock of the ladder of the server's first GPU, and the top is always among them. */
void fl_drive_begin(fl_drive *s, const fl_facts *facts, uint32_t server, const fl_table *listed, uint32_t standard,
                    double lowest);

/* Reads the server's sample, and learns from its steps at the clock in force: from the batch records of the sample, or
 * where there are none from the mean time between tokens since the sample before.
 * settle_s: the longest wait for the achieved clock to show; 1: `waiting` and `running` are known. */
int fl_drive_take(fl_drive *s, const fl_facts *facts, const fl_sample *sample, uint32_t server, double settle_s);

/* The next step as far as the last sample tells: the last one's prompt tokens, a token for each request in the batch,
 * what it read of the KV cache, or where no steps are told all that is in it. */
fl_step_load fl_drive_load(const fl_drive *s);

/* Sets the clock on all GPUs of the server where it is another one. */
void fl_drive_set(fl_drive *s, const fl_facts *facts, const fl_sample *sample, uint32_t server, uint32_t clock,
                  fl_command *c);
void fl_drive_set_default(fl_drive *s, const fl_facts *facts, uint32_t server, fl_command *c);
/* On all GPUs of the server; mhz 0: the default. */
void fl_drive_clock(const fl_facts *facts, uint32_t server, double mhz, fl_command *c);

/* The value where it is known, finite and not negative; else NAN. */
double fl_drive_value(const fl_server_sample *s, int id);

/* Rows of the parameters that policies have that learn the times of steps; the struct is `params`. */
#define FL_DRIVE_ROW_CLOCKS                                                                                            \
    FL_PARAM(params, clocks_mhz, LIST(1, 100000), "MHz", "",                                                           \
             "clocks to choose from, 15 at most; none: six from half of the top to the top (assumed). The top is "     \
             "always one")
#define FL_DRIVE_ROW_MARGIN FL_PARAM(params, margin, REAL(-0.9, 10), "", "0", "margin on the targets (assumed)")
#define FL_DRIVE_ROWS_LEARN                                                                                            \
    FL_PARAM(params, settle_ms, REAL(0, 60000), "ms", "100",                                                           \
             "longest wait for the achieved clock to show the one set (assumed)"),                                     \
        FL_PARAM(params, tolerance, REAL(0, 1), "", "0.03",                                                            \
                 "by how much a step at a clock not seen yet may pass top / f (assumed)")

/* Members of a descriptor that all policies for servers have alike: they drive clocks, and keep a state for each GPU.
 * Their file has params. */
#define FL_DRIVE_POLICY(state) .gpu_drives = FL_BIT(FL_SET_SM_MHZ), .gpu_size = sizeof(state), FL_POLICY_PARTS(params)

static inline uint32_t fl_drive_top(const fl_drive *s) { return s->times.clocks - 1; }
