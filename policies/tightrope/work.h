/* How much work one GPU has done, in seconds that it would have taken at the top clock.
 *
 * It is told by the best signal there is: kernel records, iteration markers, kernels counted, bytes moved, memory
 * utilisation, or nothing. What one unit of a signal takes at the top clock is learned while the GPU runs there (the
 * reference). The ledger never credits more than it can prove: the error of the reference is held back, and where that
 * is large only what the two facts of tightrope_curve.h leave certain is credited. */
#pragma once

#include "policies/policy.h"
#include "policies/tightrope/certain.h"
#include "policies/tightrope/percent.h"
#include "policies/tightrope/rate.h"

enum {
    FL_TIGHTROPE_AUTO,
    FL_TIGHTROPE_RECORDS,
    FL_TIGHTROPE_ITERATIONS,
    FL_TIGHTROPE_KERNELS,
    FL_TIGHTROPE_BYTES,
    FL_TIGHTROPE_UTIL,
    FL_TIGHTROPE_NONE,
    FL_TIGHTROPE_ENDS /* kernels counted by their records */
};
/* Whose units are taken for alike in all phases of the program: all signals', those of counters only (iterations,
 * kernels, bytes), none's. Where they are not, the second fact alone tells the work. */
enum { FL_TIGHTROPE_ALIKE_ALL, FL_TIGHTROPE_ALIKE_COUNTERS, FL_TIGHTROPE_ALIKE_NONE };
enum { FL_TIGHTROPE_KINDS = 2048 }; /* each with a place of its own; a program of PyTorch has a thousand */

typedef struct fl_tightrope_kind {        /* of kernel */
    double count, sum_s, square_s;        /* that ran at the top clock: number, durations, their squares */
    double done, done_s;                  /* at any other clock: number, durations */
    double floor_s;                       /* what is certain of these */
    double low, low_s, low_floor_s;       /* the same of a window below the top clock, once its clock is there */
    double kept_s;                        /* credited before its reference began anew */
    double now, now_s;                    /* of the window at the top clock: number, durations */
    double visits, mean_s, mean_square_s; /* windows at the top clock, their means, the squares of these */
    double visit_square_s;                /* the squares of these, each as often as the visit had records */
    double window_s, spell_s;             /* time in the window; in the present spell of strange kernels */
    int64_t spell, usual;                 /* the spell of spell_s; 1: the phase has this kind */
} fl_tightrope_kind;

typedef struct fl_tightrope_work {
    int64_t signal;
    int64_t begin_ns, last_ns, origin_ns; /* first and last reading; where the counter's line begins */
    double tolerance, sigmas, cost;       /* as the parameters */
    int64_t alike;
    double before_s, before_elapsed_s; /* credited, and passed, before records were on */
    double record_s, recorded; /* by which a record stretches its kernel, 0: by the share `cost`; kernels that count */
    double afford;             /* share of the time that records may take */
    double dear_s;             /* by how much they took more, lately */

    double counter, total, origin; /* last value, sum of what was seen, the sum at origin_ns */
    double quantum;                /* of the counter in one unit of work; 0: nothing was seen */
    fl_tightrope_rate rate;
    double edge_total;            /* the sum at the last end of a unit that counted */
    double unit_s, spread;        /* seconds per unit at the top clock, 0: not known; how units differ (likeliest) */
    double cycle_s;               /* window that shows the pace through their cycles well */
    fl_tightrope_percent percent; /* readings of a utilisation that tells the work */
    double rate_s;                /* time at the top clock that the reference stands on */
    double base_s, taken_back_s;  /* credit before the origin; credit that was doubted */

    fl_tightrope_certain sure;
    double top_s, floor_s, elapsed_s; /* settled at the top clock; certain of the rest; all */

    /* the window */
    int64_t window_ns, settled_ns;
    double clock, share; /* its clock / top; the least since the window before */
    int at_top, weighed;
    int doubted;         /* a window at the top clock whose pace is another phase's: no part of the reference */
    double units;        /* total at the beginning */
    int64_t moved_ns;    /* last reading that showed work done */
    double moved_late_s; /* by how much that may have come late */
    double quiet_s;      /* longest time lately that no reading showed work done */
    double known_s, ref_s, unknown_s; /* records that began settled: durations, the same at the top, no reference */
    double strange_s;                 /* of kernels that the phase does not have, less its own since then; 0: none */
    int64_t spell, phased;            /* number of times that none were strange; 1: the phase is known */
    double power_sum, power_count, power_square;
    double energy_j[2], energy_ns[2]; /* first and last reading of the energy counter */

    double overlap_s;          /* credited to kernels that another one ran beside */
    double busy_s, top_busy_s; /* records: durations off the top clock and at it, all kinds */
    int64_t last_end_ns;       /* of a record */
    double busy_share;         /* of the time, in which kernels run */
    double error_s;            /* of the last credit: what was held back */
    int64_t kinds;             /* places in use: the others are zero */
    fl_tightrope_kind kind[FL_TIGHTROPE_KINDS];
} fl_tightrope_work;

typedef struct fl_tightrope_seen_window {
    double length_s;
    double slowdown, noise; /* against the top clock; relative standard error; NAN: not known */
    double power_w, power_noise;
    int doubtful; /* the slowdown is none that the clock can have: another phase of the program */
    int renewed;  /* of some kinds the reference begins anew */
} fl_tightrope_seen_window;

void fl_tightrope_work_begin(fl_tightrope_work *w, int64_t signal, int64_t now_ns, double tolerance, double sigmas,
                             double cost);

/* From now on records, or their ends, tell the work, of which all ran at the top clock so far. */
void fl_tightrope_to_records(fl_tightrope_work *w, int64_t signal, int64_t now_ns);

/* The same where the second fact alone told the work so far. */
void fl_tightrope_from_certain(fl_tightrope_work *w, int64_t now_ns);

/* 1: readings tell how long the program runs, and nothing of its work that is certain in all its phases. */
int fl_tightrope_blindfold(const fl_tightrope_work *w);

/* A window begins at clock / top: that of now, or one that was just set. Of several GPUs that may wait for each other
 * it is the least, for none of them is slowed by more. */
void fl_tightrope_window(fl_tightrope_work *w, int64_t now_ns, double clock, int changed);

void fl_tightrope_forget_power(fl_tightrope_work *w); /* of this window so far */

/* Ends the window: fills the reference where it ran at the top, and the ledger. An idle one is no part of the ledger.
 */
fl_tightrope_seen_window fl_tightrope_close(fl_tightrope_work *w, int64_t now_ns, int idle);

/* What the reference is worth: relative standard error of a credit; 1: there is none. */
double fl_tightrope_reference_error(const fl_tightrope_work *w);

/* By what share records stretch the kernels: by their number, where it is known what one takes. */
double fl_tightrope_records_cost(const fl_tightrope_work *w);

/* Slack that is kept for kernels that become so short that their records take more than they may: that much is lost
 * until they go off. 0: it is not known what a record takes. */
double fl_tightrope_records_kept(const fl_tightrope_work *w);

/* 1: records took more than they may by so much that they must go off. */
int fl_tightrope_records_dear(const fl_tightrope_work *w);

/* Seconds at the top clock that the work done so far would have taken, at least. */
double fl_tightrope_credit(fl_tightrope_work *w);

/* The same at the time of the last reading, inside a window: what no reading has shown yet counts as much as is
 * certain. */
double fl_tightrope_credit_now(fl_tightrope_work *w);

/* The window, at the top clock, has what a reference needs: error is what may be held back for it, relative. */
int fl_tightrope_enough(const fl_tightrope_work *w, double error);

/* From now on nothing tells the work. What was credited stays. */
void fl_tightrope_to_certain(fl_tightrope_work *w);

/* The window that was closed may belong to another phase, whose units may be shorter: of its credit only what is
 * certain stays. */
void fl_tightrope_distrust(fl_tightrope_work *w, const fl_tightrope_seen_window *m);

/* The program does something else now: what was credited stays, the reference is learned again. */
void fl_tightrope_new_phase(fl_tightrope_work *w);
