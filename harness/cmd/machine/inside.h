/* What the files of harness/cmd/machine share. Other modules include the public header alone. */
#pragma once

#include "harness/advise/advise.h"
#include "harness/live/guard/guard.h"
#include "harness/live/host/host.h"
#include "harness/live/server/server.h"
#include "harness/live/vendor/vendor.h"
#include "policies/policy.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <cJSON.h>
#include <stdbool.h>
#include <stdio.h>

/* The server of requests that `foldline live --server URL` reads: its options, its facts for the policy, and what the
 * command prints of it at the end. */

typedef struct fl_live_server {
    const char *url, *ttft, *tbt; /* texts of the command line; NULL: not given */
    double target_share;
    fl_server_host *host; /* NULL: no server */
    fl_server_facts facts;
} fl_live_server;

/* Checks the options without a machine. FL_BAD_INPUT: a malformed time, targets without a server, or a policy (may be
 * NULL) that needs a server without one. */
fl_status fl_live_server_check(const fl_live_server *s, const fl_policy *policy, fl_diag *d);

/* Reads a first page and puts the server into the facts. Prints on stderr what the policy reads and the page lacks.
 * FL_HARDWARE: there is no page, or, under `control`, the page has nothing of what the policy needs. */
fl_status fl_live_server_open(fl_live_server *s, const fl_policy *policy, bool control, fl_facts *facts, fl_diag *d);
void fl_live_server_close(fl_live_server *s);

void fl_live_server_tell(const fl_live_server *s, FILE *out);
void fl_live_server_json(const fl_live_server *s, cJSON *root);

/* Gives each recorded kernel the clock that it had, from the readings of the same run: a kernel that ran below the top
 * clock, as under a power limit, must be replayed from that clock. Both files then count time alike; the function
 * changes the times of *t. Kernels of a GPU without readings of its clock get none. say receives what was done, line by
 * line. */
fl_status fl_record_clocks(fl_kernel_trace *k, fl_telemetry *t, void (*say)(void *user, const char *line), void *user,
                           fl_diag *d);

/* `foldline tune`: what was measured, and the answer. Of power limits (caps) each "clock" is a limit in W. */

enum { FL_TUNE_GPUS = 64 };
#define FL_TUNE_STEP_MHZ 16 /* a clock that differs by more from what was set is another one */

typedef struct fl_tune_point { /* one clock */
    double mhz;
    size_t runs, room;
    double *time_s, *energy_j;
    double ran_mhz; /* the lowest median of its runs; INFINITY: not read */
} fl_tune_point;

typedef struct fl_tune_meter { /* one run of the command */
    fl_program program;
    bool started, last;
    int64_t start_ns, end_ns;                              /* of the command */
    int64_t seen_ns[FL_TUNE_GPUS], first_ns[FL_TUNE_GPUS]; /* power readings: the last one; the first reading */
    double first_j[FL_TUNE_GPUS], last_j[FL_TUNE_GPUS],
        power_w[FL_TUNE_GPUS];  /* the counter; power at the last reading */
    double sum_j[FL_TUNE_GPUS]; /* of power over time */
    bool counts[FL_TUNE_GPUS], powers[FL_TUNE_GPUS];
    double *mhz;
    size_t mhzs, mhz_room;
} fl_tune_meter;

typedef struct fl_tuner {
    char **command;
    double bound;
    int64_t runs, most;
    const char *out, *vendor, *list, *set_command, *undo_command, *name;
    bool manual, json, caps; /* caps: power limits in W are tuned, in place of SM clocks */
    fl_gpus gpus;
    uint32_t count;
    fl_gpu_facts facts;  /* until the GPUs are closed */
    char device[128];    /* its name */
    int64_t index;       /* its number, of a single GPU; else -1 */
    fl_session *session; /* NULL: a user or another program sets */
    double *ladder;
    size_t clocks;
    double set_mhz; /* NAN: nothing was set yet */
    fl_tune_point *at;
    size_t points, point_room;
    fl_tune_meter m;
    int64_t done; /* runs that counted */
} fl_tuner;

const char *fl_tune_unit(const fl_tuner *t); /* "MHz" or "W" */
fl_advise_commands fl_tune_commands(const fl_tuner *t, double value);
double fl_tune_mean(const double *value, size_t count);
/* Return the bound that a mean of the usual number of runs must hold, so that noise alone seldom breaks the user's. */
double fl_tune_bound(const fl_tuner *t);
/* Return the point of least energy within that bound; the top where no other holds it. */
const fl_tune_point *fl_tune_best(const fl_tuner *t);
void fl_tune_tell(fl_tuner *t);
void fl_tune_json(const fl_tuner *t);
void fl_tune_notes(const fl_tuner *t);
/* Write a row for each run to t->out. */
fl_status fl_tune_write(const fl_tuner *t, fl_diag *d);
