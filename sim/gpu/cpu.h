/* The host CPU of one simulated node: the state that software asks for, the boost states that the hardware enters by
 * itself, the limits that hold it down, and its energy. Threads and their work live in the courses (sim/advance/streams.c);
 * here is what all of them share: one clock. */
#pragma once

#include "sim/gpu/course.h"
#include "sim/gpu/host_sense.h"

typedef struct fl_cpu_slot { /* residence in one state */
    int64_t open_ps, wait_ps;
    int64_t *time_ps, *work_ps; /* by host load */
} fl_cpu_slot;

typedef struct fl_cpu_pending {
    int64_t at_ps;
    int32_t state, boost; /* -1 = stays */
    bool limit;           /* limit_w counts */
    double limit_w;
} fl_cpu_pending;

#define FL_CPU_PENDING_MAX 16

typedef struct fl_cpu {
    fl_cpu_spec own;         /* the platform's, with the clock at which the workload was recorded */
    const fl_cpu_spec *spec; /* that */
    const fl_host_spec *host;
    uint32_t state_count, soft_count, load_count;
    fl_cpu_state *state;
    fl_cpu_row *row; /* load_count for each state */
    fl_cpu_slot *slot;
    uint32_t now;     /* state in force */
    uint32_t asked;   /* by software, below soft_count */
    uint32_t ceiling; /* what budget and limit leave */
    bool boost;       /* software allows it */
    fl_cpu_pending queue[FL_CPU_PENDING_MAX];
    uint32_t pending;
    int64_t look_ps; /* next look of the controllers, FL_TIME_NEVER where none is needed */
    int64_t limit_mw;
    double filtered_cpu_mw, filtered_all_mw;
    fl_wide seen_cpu_fj, seen_all_fj; /* at the last look, */
    int64_t seen_ps;                  /* and when that was */
    int64_t now_ps;                   /* charged up to here */
    fl_host_point sums;
    fl_wide charged_fj; /* sums.cpu_fj at the last charge */
    double mean_fj;     /* energy of the last stretch between two charges, */
    int64_t mean_ps;    /* and how long that took */
    int64_t peak_mw;    /* the largest mean power of such a stretch */
    uint64_t switches;
} fl_cpu;

/* host->cpu.count > 0. loads: load_count - 1 of them, after the platform's own. ref_mhz: CPU clock at which host time
 * was recorded, 0 = the platform's. The struct must stay where it is. */
fl_status fl_cpu_open(fl_cpu *c, const fl_host_spec *host, double ref_mhz, const fl_host_load *loads,
                      uint32_t load_count, fl_diag *d);
void fl_cpu_close(fl_cpu *c);

/* The rows in force: load_count. */
const fl_cpu_row *fl_cpu_rows(const fl_cpu *c);

/* A set call that ends at called_ps. mhz: a software state, FL_DEFAULT, or NAN for "not this one"; boost: 1, 0,
 * FL_DEFAULT, NAN; limit_w: W, FL_DEFAULT, NAN. False where too many are settling. */
bool fl_cpu_set(fl_cpu *c, int64_t called_ps, double mhz, double boost, double limit_w);

int64_t fl_cpu_next(const fl_cpu *c);

/* Takes the sums of one course since the last time into the present state. */
void fl_cpu_collect(fl_cpu *c, fl_host_sums *sums);
/* After all courses have been collected: charges the package up to t. */
void fl_cpu_charge_to(fl_cpu *c, int64_t t);
/* The mean power since the charge before that. */
int64_t fl_cpu_mw(const fl_cpu *c);

/* Charged up to t: sets settle, and it looks at budget and limit. gpu_fj: energy of the GPUs up to t. True if the state
 * in force has changed. */
bool fl_cpu_at(fl_cpu *c, int64_t t, fl_wide gpu_fj);

/* Energy by residence; differs from sums.cpu_fj only by an error of the program. */
fl_wide fl_cpu_residence_fj(const fl_cpu *c);
