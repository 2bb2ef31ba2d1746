/* What the files of tightrope share, part by part: certain work, curves, rates of counters, the
 * ledger of one GPU, phases, readings, windows, the node. */
#pragma once

#include "policies/policy.h"
#include "policies/random.h"

#include <stdint.h>

/* What is certain of a time's work, whatever ran in it: by the two facts of inside.h a second at clock f is
 * worth f / top of a second at the top clock at least, but for the tolerance. A kernel may begin at one clock and end
 * at another, several windows later: its worth is the sum over them. */

enum { FL_TIGHTROPE_SPANS = 32 };

typedef struct fl_tightrope_certain { /* all zero is the beginning */
    int64_t from_ns[FL_TIGHTROPE_SPANS];
    double worth[FL_TIGHTROPE_SPANS]; /* of a second, from then on until the next */
    uint32_t count;
} fl_tightrope_certain;

/* From then on a second is worth so much; what was said of that time before is forgotten. Of what is long past only the
 * least worth is remembered. */
void fl_tightrope_certain_from(fl_tightrope_certain *c, int64_t from_ns, double worth);

/* Forgets what begins after then. */
void fl_tightrope_certain_cut(fl_tightrope_certain *c, int64_t then_ns);

/* Seconds at the top clock. */
double fl_tightrope_certain_between(const fl_tightrope_certain *c, int64_t from_ns, int64_t to_ns);

/* What one GPU does with one kind of work at each clock: slowdown against the top clock, and power. Some clocks were
 * tried; the others are predicted from them. The clock to run at is chosen on the lower hull of energy over slowdown.
 *
 * Two facts need no measurement, and bound every doubt: a lower clock is never faster, and never slower than by the
 * ratio of the clocks, 1 <= slowdown(f) <= top / f. Measured programs pass the second by up to 3 % (tolerance). */

enum { FL_TIGHTROPE_CLOCKS = 512 }; /* of a longer ladder the lowest are left out */

typedef struct fl_tightrope_seen { /* one clock */
    double slowdown, power_w;      /* means */
    double noise, power_noise;     /* their relative standard errors */
    double ceiling;                /* slowdown of all that ran then, mean: no less than the clock's own */
    double weight_s;               /* time that the means stand on; 0: the clock was not tried */
} fl_tightrope_seen;

typedef struct fl_tightrope_chip { /* what is assumed of the GPU */
    const int32_t *mhz;            /* count clocks, ascending */
    const double *volt;            /* voltage at each, in any unit; NULL: not known */
    uint32_t count;
    double tolerance;   /* by how much a slowdown may pass top / f */
    double sharpness;   /* p of the time law s^p = 1 + q ((top / f)^p - 1), used below the clocks that were tried */
    double fixed_share; /* of the power at the top clock that does not follow V^2 f, until two clocks were tried */
    double roughness;   /* how far time and power stray from their laws, relative standard deviation */
    double smooth;      /* distance in log clock over which what strays falls to 1 / e */
    double reach;       /* furthest step below the lowest clock tried, relative */
} fl_tightrope_chip;

typedef struct fl_tightrope_wish {
    double allowed;        /* slowdown that the ledger allows from now on, > 0; below 1: nothing but the top */
    double slack_s;        /* of the ledger */
    double bound;          /* slowdown - 1 that the whole run may have */
    double blind_s;        /* time that may pass at the clock before anything shows, and the way back to the top */
    double cost;           /* by how much what is measured was stretched by measuring it */
    double window_s;       /* how long the chosen clock will be kept */
    double first_window_s; /* the same, of one not tried before */
    double elapsed_s;      /* how long the program has run */
    int32_t steady;        /* 1: two clocks may not take turns, as others would wait for the slower and not gain by the
                            * faster */
    int32_t look;          /* 1: a clock not tried yet may be chosen for what it tells */
    int32_t now;           /* current clock: kept where nothing is gained by leaving it */
} fl_tightrope_wish;

typedef struct fl_tightrope_choice {
    uint32_t clock;   /* index */
    int32_t looked;   /* 1: chosen for what it tells */
    double energy;    /* predicted energy per unit of work at the allowed slowdown, of that at the top clock */
    double steepness; /* relative energy that one unit of slowdown more would save; 0: the bound does not bind */
} fl_tightrope_choice;

/* The top clock was tried before. */
fl_tightrope_choice fl_tightrope_choose(const fl_tightrope_chip *chip, const fl_tightrope_seen *seen,
                                        const fl_tightrope_wish *wish);

/* The slack after window_s at a clock of that worst slowdown is not negative, even if the program then went on by what
 * is certain only, most times slower, for as long as nobody would see it. */
int fl_tightrope_affordable(const fl_tightrope_wish *wish, double window_s, double worst, double most);

/* Slack that a second may cost at a clock where all is slowed most times. */
double fl_tightrope_burn(double bound, double most);

/* Several GPUs that may wait for each other: whose clock it was that slowed them all.
 *
 * Every GPU's progress is held against its own pace of the time when all of them ran at the top clock. Where GPUs meet
 * at barriers they all progress alike, as the slowest of them does: a GPU that waits loses nothing by a lower clock,
 * and its progress shows that, without a word about barriers. What must be told apart is who made the others wait. */

typedef struct fl_tightrope_member { /* one GPU in a window */
    double seen;                     /* slowdown of its progress; NAN: not known */
    double noise;                    /* relative standard error of that */
    double own;                      /* what its clock took from it before; NAN: this clock was not tried */
    double busy;                     /* share of the window in which a kernel ran; NAN: not known */
    int32_t top;                     /* it ran at the top clock */
} fl_tightrope_member;

/* The slowdown that the GPU's own clock makes. It is at most what was seen, now or before. Where the others explain
 * what was seen, the part in which this one was less busy than they was waiting; where neither explains it, the busiest
 * did it. */
double fl_tightrope_own(const fl_tightrope_member *member, uint32_t count, uint32_t i);

/* The pace of GPU i is none that the clocks, as they were seen so far, can have: off by more than that. */
int fl_tightrope_unexplained(const fl_tightrope_member *member, uint32_t count, uint32_t i, double drift);

/* How fast a counter runs, and how much its units differ: from the readings at which it had moved.
 *
 * A reading sees the end of a unit late, by anything up to the time between readings. Units that differ make the ends
 * wander, late readings do not: that tells the two apart. For each spread of a ladder a filter follows time and seconds
 * per unit (Kalman, "A new approach to linear filtering and prediction problems", 1960), and adds up how likely the
 * readings are. Errors are told by the worst of the spreads that the readings leave possible, so a run that has seen
 * little holds its units to be very uneven.
 *
 * Units often differ in cycles: the kernels of an iteration, then a wait. Unit by unit that looks like a wide spread;
 * over longer times it averages out. So the same is done with every end that comes at least 16, 64 or 256 ms after the
 * last one. There the filters also differ in a part of the lateness that does not add up, as a cycle's does not. The
 * line that leaves the least error counts, unless a line of longer times shows that it misses what adds up (bursts).
 *
 * The last line has every block of so many units: as many as a cycle seems to have. It is told by other ends than those
 * that it then takes, so that its choice flatters no error. */

enum { FL_TIGHTROPE_LINES = 5, FL_TIGHTROPE_FILTERS = 112, FL_TIGHTROPE_ENDS_KEPT = 256 };

/* Deviations from visit to visit at the top clock that are held back where units are unlike in parts of the program:
 * the policy is at the top more often in some parts than in others, so that more visits make this no smaller. */
#define FL_TIGHTROPE_WANDERS 2

typedef struct fl_tightrope_filter {
    double time_s, unit_s;  /* end of the last unit, from the stretch's first; mean duration of a unit */
    double vtt, vtu, vuu;   /* their variances and covariance */
    double weight, weighed; /* reference: sum of 1 / variance of unit_s over the stretches kept, of unit_s / variance */
    double weight_square, square; /* the same of 1 / variance^2, of unit_s^2 / variance */
    double likely;                /* log-likelihood of this filter over the run */
} fl_tightrope_filter;

typedef struct fl_tightrope_line {
    fl_tightrope_filter filter[FL_TIGHTROPE_FILTERS];
    double edges, units; /* of the stretch: ends taken, units from the first to the last */
    double open_units;   /* since the last end taken */
    double first_s;      /* first end taken, from the stretch's */
    double last_s;       /* last end taken, from the first taken */
    double last_variance_s;
    double samples; /* differences between ends, of the run */
    double kept;    /* stretches of the reference */
} fl_tightrope_line;

typedef struct fl_tightrope_rate {
    fl_tightrope_line line[FL_TIGHTROPE_LINES];
    int64_t first_ns; /* first end of the stretch */
    double edges;     /* ends seen in it */
    double last_s;    /* last end seen, from the first */
    double kept_s;    /* time that the reference stands on */
    double block;     /* units of a block; 0: not known yet */
    uint32_t ends;    /* kept, of units in a row */
    float end_s[FL_TIGHTROPE_ENDS_KEPT];
} fl_tightrope_rate;

typedef struct fl_tightrope_pace {
    double unit_s;  /* seconds per unit; 0: not known */
    double error;   /* its relative standard error */
    double spread;  /* relative variance of a unit x its seconds: of a time's work that is relative variance x time */
    double cycle;   /* variance of an end's time that does not add up, in s^2 */
    double every_s; /* least time between the ends that it stands on */
    double block_s; /* time of a block, where it stands on blocks */
    double wander;  /* of the pace from stretch to stretch beyond its error, relative deviation */
} fl_tightrope_pace;

/* Begin a stretch, a time at one clock. A zeroed struct is ready for the first. */
void fl_tightrope_rate_stretch(fl_tightrope_rate *r);

/* Note that a reading showed the end of a unit, which happened up to late_s (> 0) ago. units (> 0): those that ended
 * since the last end. */
void fl_tightrope_rate_edge(fl_tightrope_rate *r, int64_t now_ns, double late_s, double units);

/* Add the stretch to the reference, and begin the next one. */
void fl_tightrope_rate_keep(fl_tightrope_rate *r);

/* Return the pace of the stretch, by the likeliest filter. */
fl_tightrope_pace fl_tightrope_rate_now(const fl_tightrope_rate *r);

/* Return the pace of the kept stretches, with `now` also of the present one, by the likeliest filter. */
fl_tightrope_pace fl_tightrope_rate_reference(const fl_tightrope_rate *r, int now);

/* Return the largest relative error of the reference at `sigmas` standard errors, whatever spread and cycle are. */
double fl_tightrope_rate_error(const fl_tightrope_rate *r, double sigmas, int now);

/* Return the factor by which the variance of `count` means may exceed the expected one by chance, at two standard
 * errors (Wilson and Hilferty, "The distribution of chi-square", 1931). */
double fl_tightrope_by_chance(double count);

/* Return the least time, in seconds, that the units take at the reference's pace; sure_s of it were measured. */
double fl_tightrope_rate_least(const fl_tightrope_rate *r, double sigmas, int now, double units, double sure_s);

/* How much work one GPU has done, in seconds that it would have taken at the top clock.
 *
 * The best known signal tells the work: activity records, iteration markers, kernels counted, bytes moved, memory
 * utilisation, or nothing. What one unit of a signal takes at the top clock is learned while the GPU runs there (the
 * reference). The ledger never credits more than it can prove: the error of the reference is held back, and where that
 * is large only what the two facts of inside.h leave certain is credited. */

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
static inline int fl_tightrope_by_records(int64_t signal) {
    return signal == FL_TIGHTROPE_RECORDS || signal == FL_TIGHTROPE_ENDS;
}
/* The signals whose units count as alike in all phases of the program: all, only counters (iterations, kernels, bytes),
 * or none. For the others only the second fact tells the work. */
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

/* Records that are on for a part of the time only, where kernels are so short that records cost much.
 *
 * Records are off for a stretch of random length, and then on for a burst. The burst tells what the stretch before it
 * was worth: a random instant of a program tells its mean, whatever the program does, if it is asked often. The
 * error that is held back is the empirical Bernstein bound of Maurer and Pontil ("Empirical Bernstein bounds and sample
 * variance penalization", 2009, Theorem 4), for the values that the second fact leaves possible. */
enum { FL_TIGHTROPE_ON, FL_TIGHTROPE_OFF, FL_TIGHTROPE_AWAITED }; /* records were asked for, and none came yet */

typedef struct fl_tightrope_thin {
    fl_random random;
    double share;               /* of the time in which records are on; 1: always; 0: not decided yet */
    int64_t from_ns;            /* the burst or the stretch began then */
    int64_t turn_ns;            /* the stretch ends then; while records are awaited: they were asked for then */
    int32_t off, told;          /* FL_TIGHTROPE_ON, OFF or AWAITED; 1: a burst ended at this reading */
    double cost;                /* by the last burst, share by which records lengthen kernels */
    double off_s;               /* stretches whose worth is decided: their time, */
    double sure_s, worth_s;     /* what of it is certain, and what bursts say of it, in seconds at the top clock */
    double wait_s, wait_sure_s; /* the last stretch, which the present burst will tell: its time, what is certain */
    double most_s;              /* longest time of a stretch that bursts may be wrong about */
    double square, pairs, stretches; /* sum of squared errors by neighbouring bursts, in s^2; their number; of all */
    double before;                   /* worth of a second by the burst before, at the same clock; NAN: none */
    double took_s, ref_s, kernels, paid_s; /* kernels of the burst: time, time at the top clock, number, by records */
} fl_tightrope_thin;

typedef struct fl_tightrope_work {
    int64_t signal;
    int64_t begin_ns, last_ns, origin_ns; /* first and last reading; where the counter's line begins */
    double tolerance, sigmas, cost;       /* as the parameters */
    int64_t alike;
    double before_s, before_elapsed_s; /* credited, and passed, before records were on */
    double record_s, recorded; /* by which a record stretches its kernel, 0: by the share `cost`; kernels that count */
    double afford;             /* share of the time that records may take */

    double counter, total, origin; /* last value, sum of what was seen, the sum at origin_ns */
    double quantum;                /* of the counter in one unit of work; 0: nothing was seen */
    fl_tightrope_rate rate;
    double edge_total;           /* the sum at the last end of a unit that counted */
    double unit_s, spread;       /* seconds per unit at the top clock, 0: not known; how units differ (likeliest) */
    double cycle_s;              /* window that shows the pace through their cycles well */
    double rate_s;               /* time at the top clock that the reference stands on */
    double base_s, taken_back_s; /* credit before the origin; credit that was doubted */

    fl_tightrope_certain sure;
    double top_s, floor_s, elapsed_s; /* settled at the top clock; certain of the rest; all */

    /* the window */
    int64_t window_ns, settled_ns;
    double clock, share; /* its clock / top; the least since the window before */
    int at_top;
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
    double energy_age_s;              /* largest time from its update to its reading; INFINITY: there is none */

    fl_tightrope_thin thin;
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

/* Count work by another signal from now on. Credits stay. */
void fl_tightrope_work_turn(fl_tightrope_work *w, int64_t signal, int64_t now_ns);

/* Return 1 if readings show only how long the program runs, and no work that is certain in all its phases. */
int fl_tightrope_blindfold(const fl_tightrope_work *w);

/* A window begins at clock / top: that of now, or one that was just set. Of several GPUs that may wait for each other
 * it is the least, for none of them is slowed by more. */
void fl_tightrope_window(fl_tightrope_work *w, int64_t now_ns, double clock, int changed);

/* Return the mean power of this window, in W, and its relative standard error; NAN if it is not known yet. */
double fl_tightrope_power(const fl_tightrope_work *w, double *noise);

/* Ends the window: fills the reference where it ran at the top, and the ledger. An idle one is no part of the ledger.
 */
fl_tightrope_seen_window fl_tightrope_close(fl_tightrope_work *w, int64_t now_ns, int idle);

/* Return the relative standard error of a credit by the reference; 1: there is no reference. */
double fl_tightrope_reference_error(const fl_tightrope_work *w);

/* End the burst or the stretch where it is time to, and return 1 if records must be switched: off if `off` is OFF then.
 * bound: as the parameter. */
int fl_tightrope_thin_turn(fl_tightrope_work *w, double bound);

/* Note the first record after a stretch, which began at start_ns: the stretch ends there. */
void fl_tightrope_thin_first(fl_tightrope_work *w, int64_t start_ns);

/* Return how long the burst or stretch still lasts, in ns; INT64_MAX if nothing is planned. */
int64_t fl_tightrope_thin_left(const fl_tightrope_work *w);

/* Return the share by which records lengthen kernels while they are on: by their number, if the time of one is known.
 */
double fl_tightrope_records_cost(const fl_tightrope_work *w);

/* Slack that is kept for kernels that become so short that their records take more than they may: that much is lost
 * until they go off. 0: it is not known what a record takes. */
double fl_tightrope_records_kept(const fl_tightrope_work *w);

/* 1: records that only count kernels took more than they may by so much that they must go off. */
int fl_tightrope_records_dear(const fl_tightrope_work *w);

/* Return the seconds that the work done so far would have taken at the top clock, at least. */
double fl_tightrope_credit(fl_tightrope_work *w);

/* Return that credit at the time of the last reading, inside a window. Work that no reading has shown yet counts only
 * as far as it is certain. */
double fl_tightrope_credit_now(fl_tightrope_work *w);

/* Return 1 if the window, at the top clock, has enough for a reference. error: the relative error that may be held back
 * for it. */
int fl_tightrope_enough(const fl_tightrope_work *w, double error);

/* Keep only the certain part of the closed window's credit, since it may belong to another phase with shorter units. */
void fl_tightrope_distrust(fl_tightrope_work *w, const fl_tightrope_seen_window *m);

/* Learn the reference again for a new phase of the program. Credits stay. */
void fl_tightrope_new_phase(fl_tightrope_work *w);

/* tightrope: phases that activity records tell apart.
 *
 * A program that runs kernels of one kind for a while, and of another kind then, is slowed by a clock in one part as it
 * is not in another. So what clocks do is learned for each phase by itself: a phase is known by the shares that kinds
 * of kernel have of its time. Nothing here adds to the ledger. A phase that is taken for another one costs energy, and
 * not the bound. */

enum { FL_TIGHTROPE_PHASES = 8 }; /* the one that ran least makes room for a new one */

typedef struct fl_tightrope_phase {
    double share[FL_TIGHTROPE_KINDS]; /* of the time of its kernels */
    double weight_s;                  /* time that the shares stand on; 0: no phase */
    double time_s, decisions;         /* that it ran so far, of all stays; windows that ended in it */
    fl_tightrope_seen seen[FL_TIGHTROPE_CLOCKS];
} fl_tightrope_phase;

typedef struct fl_tightrope_phases { /* all zero is the beginning */
    int64_t current;                 /* that runs now */
    int64_t turns;                   /* to another phase */
    double useful_s;                 /* how long stays are lately in which another clock than the top was learned */
    double stay_s;                   /* time of the present stay */
    fl_tightrope_phase phase[FL_TIGHTROPE_PHASES];
} fl_tightrope_phases;

/* What a closed window of length_s says of the phase. 1: another one runs now, and `seen` has what clocks do in it:
 * nothing where it is new. */
int fl_tightrope_phase_turns(fl_tightrope_phases *p, fl_tightrope_work *w, fl_tightrope_seen *seen, double length_s);

/* How long the present phase has run; all the time where there is no other. */
double fl_tightrope_phase_time(const fl_tightrope_phases *p, const fl_tightrope_work *w);

/* Return 1 while the present phase is young: looks then come one after the other. */
int fl_tightrope_phase_hurries(const fl_tightrope_phases *p, const fl_tightrope_work *w);

/* 1: kernels of kinds that the phase does not have have run for a while. */
int fl_tightrope_phase_strange(const fl_tightrope_work *w);

/* Nothing counts before settled_ns, no power before power_ns. */
void fl_tightrope_read(fl_tightrope_work *w, const fl_sample *sample, uint32_t gpu, int64_t power_ns);

/* Return the best of ITERATIONS to UTIL whose counter is known; NONE: none is. */
int64_t fl_tightrope_best_counter(const fl_gpu_sample *u);

/* 1: records show kernels beside each other too often to leave them out. */
int fl_tightrope_crowded(const fl_tightrope_work *w);

typedef struct fl_tightrope_params {
    double bound, tolerance, sigmas, records_cost, poll_ms, lag_ms;
    int64_t signal, alike, trust;
} fl_tightrope_params;

/* What signal=auto may credit work by: what holds in every phase, or counters too. */
enum { FL_TIGHTROPE_TRUST_RECORDS, FL_TIGHTROPE_TRUST_COUNTERS };

/* The share of the bound that is held back beside the reference's error. The run's last window ends with the program,
 * and may lose this much to the late arrival of its clock. */
#define FL_TIGHTROPE_MARGIN 0.0005
#define FL_TIGHTROPE_SETTLE_S 0.03      /* after the achieved clock has arrived, readings do not count */
#define FL_TIGHTROPE_COARSE_NS 20000000 /* between readings that only keep the ledger */
#define FL_TIGHTROPE_POWER_S 0.08       /* of readings make a mean of power */

typedef struct fl_tightrope_gpu {
    int64_t clock, next; /* index of the clock; of that of the next window */
    int64_t readings;    /* fine ones so far */
    int64_t signal_ns;   /* when the signal was chosen */
    int64_t arrived_ns;  /* when the clock asked for was there; < 0: not yet */
    int64_t power_ns;    /* power readings count from here on */
    double lag_s;        /* from a change of power until the sensor shows it */
    double util_sum, util_count;
    double settle_s; /* from a set clock to its arrival, as the platform says; 0: not known */
    double react_s;  /* the longest so far */
    double slack_s, allowed, slowdown;
    double error;     /* of the reference, relative */
    int64_t brief;    /* 1: the program has phases, and few windows fit into one */
    double phase_s;   /* how long the program has done what it does now */
    int64_t top_pays; /* a better reference is worth a window at the top clock */
    fl_tightrope_work work;
    fl_tightrope_seen seen[FL_TIGHTROPE_CLOCKS];
} fl_tightrope_gpu;

/* 1: the clock that was asked for, mhz, is there, or was waited for long enough. Until then nothing counts. */
int fl_tightrope_arrive(fl_tightrope_gpu *g, const fl_gpu_sample *u, int64_t now, double mhz);

/* One step's readings of the GPU. */
void fl_tightrope_take(fl_tightrope_gpu *g, const fl_sample *sample, uint32_t gpu);

/* Return the time from the arrival of a clock until its power is known, in s. The energy counter says when it was
 * updated, so it is not late as the power sensor is, but it needs three updates. */
double fl_tightrope_power_wait(const fl_tightrope_gpu *g);

/* Until the next reading. */
int64_t fl_tightrope_wait_ns(const fl_tightrope_params *p, fl_tightrope_gpu *g, int64_t now, double end_s);

/* From a reading that shows that the clock must rise until it has risen, at most: the time to the next reading, and
 * what clocks took to arrive so far. */
double fl_tightrope_reaction(const fl_tightrope_params *p, const fl_tightrope_gpu *g);

/* How much longer the window must last because its clock came late. */
double fl_tightrope_late_s(const fl_tightrope_gpu *g);

double fl_tightrope_busy(const fl_tightrope_gpu *g); /* share of the window; NAN: not known */

/* A window must show the slowdown well through the noise of the units, and the power through the sensor's lag. */
double fl_tightrope_length(const fl_tightrope_gpu *g);

/* The window's slowdown and power are what the clock does; ceiling: slowdown of all. */
void fl_tightrope_learn(fl_tightrope_gpu *g, const fl_tightrope_seen_window *m, double ceiling);

/* The index of the clock to run at: the node's slack, how long the window will last at a clock that was tried or not,
 * and whether two clocks may not take turns. */
uint32_t fl_tightrope_decide(const fl_tightrope_params *p, fl_tightrope_gpu *g, const fl_gpu_facts *f, double slack_s,
                             double window_s, double first_window_s, int look, int steady);

/* By how much the signal stretches what it measures. */
double fl_tightrope_cost(const fl_tightrope_gpu *g);

/* Index 0 of a GPU's clocks stands for this one of its ladder. */
uint32_t fl_tightrope_first(const fl_gpu_facts *f);
uint32_t fl_tightrope_count(const fl_gpu_facts *f);

#define FL_TIGHTROPE_MEMBERS 64        /* GPUs of a node */
#define FL_TIGHTROPE_REFERENCE_MAX_S 5 /* longest time at the top clock, where the reference's error stays large */
#define FL_TIGHTROPE_IDLE 0.01         /* busy for less of a window, and no unit done: nothing runs there */

typedef struct fl_tightrope_state { /* of the node, from step to step */
    int64_t started, odd, references, decisions, alarm;
    int64_t held;               /* at the top clock for the rest of the run: no other is safe */
    double window_s;            /* planned length */
    int64_t safe_ns;            /* until then the slack cannot run out, whatever the program does */
    fl_tightrope_phases phases; /* of the lone GPU whose records tell them */
} fl_tightrope_state;

typedef struct fl_tightrope_step {
    const fl_tightrope_params *p;
    const fl_facts *facts;
    const fl_sample *sample;
    fl_command *c;
    fl_tightrope_state *state;
    fl_tightrope_gpu *gpu; /* count */
    uint32_t count;
    int64_t now;
    int dear; /* records that only count kernels must go off */
} fl_tightrope_step;

static inline double fl_tightrope_mhz(const fl_tightrope_step *n, uint32_t i, int64_t clock) {
    return n->facts->gpu[i].sm.mhz[fl_tightrope_first(&n->facts->gpu[i]) + (uint32_t)clock];
}

static inline int64_t fl_tightrope_top(const fl_tightrope_step *n, uint32_t i) {
    return fl_tightrope_count(&n->facts->gpu[i]) - 1;
}

static inline int fl_tightrope_at_top(const fl_tightrope_step *n, uint32_t i) {
    return n->gpu[i].clock == fl_tightrope_top(n, i);
}

static inline int fl_tightrope_tried(const fl_tightrope_step *n, uint32_t i) {
    return n->gpu[i].seen[n->gpu[i].clock].weight_s > 0;
}

/* Nothing runs on a GPU beside others: its ledger stands still. */
static inline int fl_tightrope_idle(const fl_tightrope_step *n, uint32_t i) {
    const fl_tightrope_gpu *g = &n->gpu[i];
    return n->count > 1 && fl_tightrope_busy(g) < FL_TIGHTROPE_IDLE && !(g->work.total > g->work.units);
}

/* Another signal tells the work of a GPU from now on. Records are on where it needs them. */
void fl_tightrope_turn_to(fl_tightrope_step *n, uint32_t i, int64_t signal);

/* The reference is learned anew: all GPUs go to the top, and a window begins. */
void fl_tightrope_to_reference(fl_tightrope_step *n);

/* What the window taught is kept, and the next one begins at the clocks that are best then. */
void fl_tightrope_end_window(fl_tightrope_step *n);

/* 1: the clocks must go to the top now. */
int fl_tightrope_guard(fl_tightrope_step *n);
