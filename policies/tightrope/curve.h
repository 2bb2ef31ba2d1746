/* What one GPU does with one kind of work at each clock: slowdown against the top clock, and power. Some clocks were
 * tried; the others are predicted from them. The clock to run at is chosen on the lower hull of energy over slowdown.
 *
 * Two facts need no measurement, and bound every doubt: a lower clock is never faster, and never slower than by the
 * ratio of the clocks, 1 <= slowdown(f) <= top / f. Measured programs pass the second by up to 3 % (tolerance). */
#pragma once

#include <stdint.h>

enum { FL_TIGHTROPE_CLOCKS = 512 }; /* of a longer ladder the lowest are left out */

typedef struct fl_tightrope_seen { /* one clock */
    double slowdown, power_w;      /* means */
    double noise, power_noise;     /* their relative standard errors */
    double ceiling;                /* slowdown of all that ran then, mean: no less than the clock's own */
    double weight_s;               /* time that the means stand on; 0: the clock was not tried */
    double windows;                /* number of windows that the means stand on */
} fl_tightrope_seen;

typedef struct fl_tightrope_chip { /* what is assumed of the GPU */
    const int32_t *mhz;            /* count clocks, ascending */
    const double *volt;            /* voltage at each, in any unit; NULL: not known */
    uint32_t count;
    double tolerance;   /* by how much a slowdown may pass top / f */
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
    double elapsed_s;      /* how long the program has run */
    int32_t delay_power;   /* objective: energy x slowdown^delay_power */
    int32_t steady;        /* 1: two clocks may not take turns, as others would wait for the slower and not gain by the
                            * faster */
    int32_t look;          /* 1: a clock not tried yet may be chosen for what it tells */
    int32_t now;           /* current clock: kept where nothing is gained by leaving it */
} fl_tightrope_wish;

typedef struct fl_tightrope_choice {
    uint32_t clock;   /* index */
    int32_t looked;   /* 1: chosen for what it tells */
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
