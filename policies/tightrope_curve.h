/* A clock here is a pair: of the cores, and of the memory. One index counts all pairs: those of the lowest memory clock
 * first, each block with the clocks of the cores ascending. Where the memory has one clock, it is the clock of the
 * cores.
 *
 * What one GPU does with one kind of work at each clock: slowdown against the top clock, and power. Some clocks were
 * tried; the others are predicted from them. The clock to run at is chosen on the lower hull of energy over slowdown.
 *
 * Two facts need no measurement, and bound every doubt: a lower clock is never faster, and never slower than by the
 * ratio of the clocks, 1 <= slowdown(f) <= top / f. Measured programs pass the second by up to 3 % (tolerance). Of a
 * pair the larger of both ratios counts: time that waits for the cores is stretched by the one, time that waits for the
 * memory by the other, and nothing by both. */
#pragma once

#include <stdint.h>

enum {
    FL_TIGHTROPE_CLOCKS = 512, /* pairs; of a longer ladder the lowest are left out */
    FL_TIGHTROPE_MEMORIES = 4  /* clocks of the memory, at most */
};

typedef struct fl_tightrope_seen { /* one clock */
    double slowdown, power_w;      /* means */
    double noise, power_noise;     /* their relative standard errors */
    double ceiling;                /* slowdown of all that ran then, mean: no less than the clock's own */
    double weight_s;               /* time that the means stand on; 0: the clock was not tried */
    double windows;                /* number of windows that the means stand on */
    int64_t guessed;               /* 1: the power is a guess */
} fl_tightrope_seen;

typedef struct fl_tightrope_chip {        /* what is assumed of the GPU */
    const int32_t *mhz;                   /* of the cores, ascending: count of them, or count / memories */
    const double *volt;                   /* voltage at each, in any unit; NULL: not known */
    uint32_t count;                       /* pairs */
    uint32_t memories;                    /* clocks of the memory; 0: it has one */
    double memory[FL_TIGHTROPE_MEMORIES]; /* the highest of them / each, ascending from 1 */
    double memory_w;                      /* power that goes where the memory's clock goes to 0, roughly */
    double tolerance;                     /* by how much a slowdown may pass top / f */
    double sharpness;   /* p of the time law s^p = 1 + q ((top / f)^p - 1), used below the clocks that were tried */
    double fixed_share; /* of the power at the top clock that does not follow V^2 f, until two clocks were tried */
    double roughness;   /* how far time and power stray from their laws, relative standard deviation */
    double smooth;      /* over what distance in log clock they stray alike */
    double reach;       /* furthest step below the lowest clock tried, relative */
    double time_wander, power_wander; /* how windows at one clock differ, relative standard deviation */
} fl_tightrope_chip;

typedef struct fl_tightrope_wish {
    double allowed;        /* slowdown that the ledger allows from now on, > 0; below 1: nothing but the top */
    double slack_s;        /* of the ledger */
    double bound;          /* slowdown - 1 that the whole run may have */
    double blind_s;        /* time that may pass at the clock before anything shows, and the way back to the top */
    double cost;           /* by how much what is measured was stretched by measuring it */
    double window_s;       /* how long the chosen clock will be kept */
    double first_window_s; /* the same, of one not tried before */
    double probe_s;        /* the same, of a memory clock not tried before; 0: it shall not be */
    double elapsed_s;      /* how long the program has run */
    int32_t delay_power;   /* objective: energy x slowdown^delay_power */
    int32_t steady;        /* 1: two clocks may not take turns, as others would wait for the slower and not gain by the
                            * faster */
    int32_t look;          /* 1: a clock not tried yet may be chosen for what it tells */
    int32_t now;           /* current clock: kept where nothing is gained by leaving it */
} fl_tightrope_wish;

typedef struct fl_tightrope_choice {
    uint32_t clock; /* index */
    int32_t looked; /* 1: chosen for what it tells */
    int32_t probed; /* 1: the same, of a memory clock that was not tried: its power is a guess then, power_w */
    double power_w;
    double wanted_s;  /* slack that a probe would need; 0: none is wanted, or it has that */
    double energy;    /* predicted energy per unit of work at the allowed slowdown, of that at the top clock */
    double certain;   /* predicted energy where the two facts alone tell the work */
    double measured;  /* the same over a long run in which records show all work, their cost included */
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
