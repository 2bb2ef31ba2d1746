/* tightrope's curves against a second computation: both laws by least squares, what strays from them by an inverse
 * instead of a factor; then what is chosen on them, at the edge of each condition. */
#include "policies/policy.h"
#include "policies/tightrope/inside.h"
#include "tests/support/suite.h"

#include <math.h>

enum { CLOCKS = 8, TOP = CLOCKS - 1, MOST = 4 };

static const int32_t mhz[CLOCKS] = {800, 900, 1000, 1100, 1200, 1300, 1400, 1500};
static const double volts[CLOCKS] = {0.7, 0.72, 0.75, 0.79, 0.84, 0.9, 0.97, 1.05};

static const fl_tightrope_chip plain = {.mhz = mhz,
                                        .volt = volts,
                                        .count = CLOCKS,
                                        .sharpness = 4,
                                        .fixed_share = 0.4,
                                        .roughness = 0.025,
                                        .smooth = 0.4,
                                        .reach = 0.15};

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }
static double ratio(int k) { return 1500.0 / mhz[k]; }

/* ---- the second computation ---- */

typedef struct model {
    double s[CLOCKS], p[CLOCKS], doubt[CLOCKS], e[CLOCKS];
} model;

static double swing(const fl_tightrope_chip *c, int k) {
    const double share = mhz[k] / 1500.0, v = share > 0.65 ? 1 + share - 0.65 : 1;
    return c->volt ? c->volt[k] * c->volt[k] / (c->volt[TOP] * c->volt[TOP]) * share : v * v / (1.35 * 1.35) * share;
}

static double alike(const fl_tightrope_chip *c, int a, int b) {
    return c->roughness * c->roughness * exp(-fabs(log((double)mhz[a] / mhz[b])) / c->smooth);
}

/* What strays at clock k, by the inverse of the covariance of what was seen, and its variance. */
static double strays(const fl_tightrope_chip *c, const int *at, int n, const double *off, const double *noise, int k,
                     double *variance) {
    double a[MOST][2 * MOST] = {{0}}, sum = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            a[i][j] = alike(c, at[i], at[j]) + (i == j ? noise[i] * noise[i] + 1e-8 : 0);
        a[i][n + i] = 1;
    }
    for (int i = 0; i < n; i++) {
        const double pivot = a[i][i];
        for (int j = 0; j < 2 * n; j++)
            a[i][j] /= pivot;
        for (int row = 0; row < n; row++) {
            const double by = a[row][i];
            for (int j = 0; j < 2 * n && row != i; j++)
                a[row][j] -= by * a[i][j];
        }
    }
    *variance = c->roughness * c->roughness;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            sum += alike(c, k, at[i]) * a[i][n + j] * off[j];
            *variance -= alike(c, k, at[i]) * a[i][n + j] * alike(c, k, at[j]);
        }
    *variance = fmax(0, *variance);
    return sum;
}

static void compute(const fl_tightrope_chip *c, const fl_tightrope_seen *seen, model *m) {
    int at[MOST], n = 0;
    double sw = 1e-4, sx = 1e-4, w[MOST], all = 0, mx = 0, my = 0, xx = 0, xy = 0;
    for (int k = 0; k < CLOCKS; k++)
        if (seen[k].weight_s > 0)
            at[n++] = k;
    for (int i = 0; i < n; i++) {
        const fl_tightrope_seen *s = &seen[at[i]];
        const double x = pow(ratio(at[i]), c->sharpness) - 1, y = pow(s->slowdown, c->sharpness) - 1, time = s->noise,
                     noise = c->sharpness * sqrt(time * time + c->roughness * c->roughness) * (y + 1),
                     power = s->power_noise;
        sw += x * x / (noise * noise), sx += x * y / (noise * noise);
        w[i] = 1 / (power * power + c->roughness * c->roughness);
        all += w[i], mx += w[i] * swing(c, at[i]), my += w[i] * s->power_w;
    }
    mx /= all, my /= all;
    for (int i = 0; i < n; i++) {
        const double x = swing(c, at[i]) - mx;
        xx += w[i] * x * x, xy += w[i] * x * (seen[at[i]].power_w - my);
    }
    const double assumed = my * (1 - c->fixed_share) / (c->fixed_share + (1 - c->fixed_share) * mx),
                 b = fmax(0.1 * assumed, (xy / all + 1e-3 * assumed) / (xx / all + 1e-3)),
                 q = fmin(1, fmax(0, sx / sw));
    double time_off[MOST], power_off[MOST], time_noise[MOST], power_noise[MOST];
    for (int k = 0; k < CLOCKS; k++) {
        m->s[k] = pow(1 + q * (pow(ratio(k), c->sharpness) - 1), 1 / c->sharpness);
        m->p[k] = fmax(0.05 * my, my + b * (swing(c, k) - mx));
    }
    for (int i = 0; i < n; i++) {
        const fl_tightrope_seen *s = &seen[at[i]];
        time_off[i] = s->slowdown / m->s[at[i]] - 1, power_off[i] = s->power_w / m->p[at[i]] - 1;
        time_noise[i] = s->noise;
        power_noise[i] = s->power_noise;
    }
    for (int k = 0; k < CLOCKS; k++) {
        double time, power;
        const double unknown = n == 1 && at[0] == TOP ? (ratio(k) - 1) / sqrt(3) : 0;
        m->s[k] *= 1 + strays(c, at, n, time_off, time_noise, k, &time);
        m->s[k] = fmax(1, fmin(m->s[k], ratio(k) * (1 + c->tolerance)));
        m->p[k] *= 1 + strays(c, at, n, power_off, power_noise, k, &power);
        m->doubt[k] = sqrt(time + power + unknown * unknown);
    }
    for (int k = 0; k < CLOCKS; k++)
        m->e[k] = m->s[k] * m->p[k] / m->p[TOP];
}

/* ---- what was seen ---- */

typedef struct scene {
    const char *what;
    double tolerance;
    int no_volts;
    struct {
        int k;
        double slowdown, power_w, noise, power_noise;
    } tried[MOST]; /* of slowdown 0: none */
} scene;

static const scene scenes[] = {
    {"only the top", 0.03, 0, {{7, 1, 200, 0, 0}}},
    {"voltages not known", 0.03, 1, {{7, 1, 200, 0, 0}}},
    {"only the top, by noise", 0.03, 0, {{7, 1, 200, 0.01, 0.02}}},
    {"two", 0.03, 0, {{7, 1, 200, 0, 0}, {3, 1.2, 120, 0, 0}}},
    {"two, hardly slower", 0.03, 1, {{7, 1, 200, 0, 0}, {3, 1.02, 140, 0, 0}}},
    {"two, by noise", 0.03, 0, {{7, 1, 200, 0.01, 0.02}, {3, 1.2, 120, 0.03, 0.01}}},
    {"three that stray", 0.03, 0, {{7, 1, 200, 0.01, 0.01}, {5, 1.01, 190, 0.02, 0.03}, {2, 1.4, 110, 0, 0}}},
    {"four", 0.03, 1, {{7, 1, 200, 0, 0}, {6, 1.03, 180, 0.01, 0}, {4, 1.1, 140, 0, 0.01}, {1, 1.5, 90, 0.002, 0.003}}},
    {"slower than by the ratio", 0.01, 0, {{7, 1, 200, 0, 0}, {4, 1.35, 100, 0, 0}}},
    {"slower, but for a tolerance", 0.1, 0, {{7, 1, 200, 0, 0}, {4, 1.35, 100, 0, 0}}},
    {"power that rises", 0.03, 0, {{7, 1, 200, 0, 0}, {3, 1, 210, 0, 0}}},
    {"power that falls to nothing", 0.03, 0, {{7, 1, 200, 0, 0}, {3, 1, 12, 0, 0}}},
    {"faster than the top", 0.03, 0, {{7, 1, 200, 0, 0}, {3, 0.97, 100, 0, 0}}},
};

static fl_tightrope_chip chip_of(const scene *x, fl_tightrope_seen *seen) {
    fl_tightrope_chip c = plain;
    c.tolerance = x->tolerance;
    c.volt = x->no_volts ? NULL : volts;
    memset(seen, 0, FL_TIGHTROPE_CLOCKS * sizeof *seen);
    for (int i = 0; i < MOST && x->tried[i].slowdown > 0; i++)
        seen[x->tried[i].k] = (fl_tightrope_seen){.slowdown = x->tried[i].slowdown,
                                                  .power_w = x->tried[i].power_w,
                                                  .noise = x->tried[i].noise,
                                                  .power_noise = x->tried[i].power_noise,
                                                  .ceiling = x->tried[i].slowdown,
                                                  .weight_s = 1};
    return c;
}

static fl_tightrope_seen seen[FL_TIGHTROPE_CLOCKS];

static int lowest_tried(void) {
    int k = 0;
    while (!(seen[k].weight_s > 0))
        k++;
    return k;
}

/* The next clock below those tried is reached always. Nothing is said of clocks further below the lowest one tried than
 * the reach; of the top one than the bound, or 2 %.
 */
static int reached(const fl_tightrope_chip *c, int k, double bound) {
    const int low = lowest_tried();
    return k >= low - 1 || mhz[k] >= mhz[low] / (1 + (low == TOP ? fmax(bound, 0.02) : c->reach));
}

/* Where no turns are taken, the energy told is the least of the clocks whose slowdown is allowed: at each clock in
 * turn, what it slows is allowed. */
static void test_predicted(void) {
    int shown = 0;
    for (size_t i = 0; i < FL_COUNT(scenes); i++) {
        const fl_tightrope_chip c = chip_of(&scenes[i], seen);
        model m;
        compute(&c, seen, &m);
        for (int k = 0; k < TOP; k++) {
            const double bound = ratio(k) * (1 + c.tolerance) - 1;
            const fl_tightrope_wish w = {.allowed = m.s[k] * (1 + 1e-9), .bound = bound, .slack_s = 1, .steady = 1};
            const double energy = fl_tightrope_choose(&c, seen, &w).energy;
            double least = 1;
            for (int j = 0; j < TOP; j++)
                least = reached(&c, j, bound) && m.s[j] <= w.allowed ? fmin(least, m.e[j]) : least;
            shown += reached(&c, k, bound) && least == m.e[k];
            FL_CHECK(near(energy, least), "%s, %d MHz: %.9f, expected %.9f", scenes[i].what, mhz[k], energy, least);
        }
    }
    FL_CHECK(shown > 40, "%d are shown", shown);
}

/* The lowest clock that may be chosen. */
static void test_reach(void) {
    static const struct {
        const char *what;
        int tried;
        double reach, bound;
        int lowest;
    } rows[] = {{"the next one always", 3, 0, 0.05, 2},    {"just reached", 3, 0.2223, 0.05, 1},
                {"just not", 3, 0.2222, 0.05, 2},          {"all", 3, 0.4, 0.05, 0},
                {"the lowest was tried", 0, 0.4, 1, 0},    {"the one below the top", TOP, 0.4, 0, 6},
                {"by the bound two", TOP, 0.4, 0.1539, 5}, {"not quite", TOP, 0.4, 0.1538, 6}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        fl_tightrope_chip c = plain;
        memset(seen, 0, sizeof seen);
        c.reach = rows[i].reach;
        seen[TOP] = (fl_tightrope_seen){.slowdown = 1, .power_w = 200, .ceiling = 1, .weight_s = 1};
        if (rows[i].tried < TOP)
            seen[rows[i].tried] = (fl_tightrope_seen){.slowdown = 1, .power_w = 100, .ceiling = 1, .weight_s = 1};
        fl_tightrope_wish w = {
            .allowed = 9, .bound = rows[i].bound, .slack_s = 100, .window_s = 1, .first_window_s = 1};
        w.now = -1;
        const fl_tightrope_choice x = fl_tightrope_choose(&c, seen, &w);
        FL_CHECK((int)x.clock == rows[i].lowest, "%s: %d MHz", rows[i].what, mhz[x.clock]);
    }
}

/* Any number of clocks may have been tried, and all of them tell the curves: one of them alone needs little power. */
static void test_many(void) {
    static int32_t ladder[100];
    for (int tried = 60; tried <= 100; tried += 20) {
        memset(seen, 0, sizeof seen);
        fl_tightrope_chip c = plain;
        c.mhz = ladder, c.volt = NULL, c.count = 100;
        for (int k = 0; k < 100; k++)
            ladder[k] = 510 + 10 * k;
        for (int k = 99; k > 99 - tried; k--)
            seen[k] = (fl_tightrope_seen){.slowdown = 1, .power_w = 200 - (99 - k), .ceiling = 1, .weight_s = 1};
        seen[90].power_w = 20;
        const fl_tightrope_wish w = {
            .allowed = 1.5, .bound = 0.5, .slack_s = 100, .window_s = 1, .first_window_s = 1, .now = -1};
        const fl_tightrope_choice x = fl_tightrope_choose(&c, seen, &w);
        FL_CHECK(x.clock == 90, "%d tried: %d MHz", tried, ladder[x.clock]);
    }
}

/* ---- what is chosen ---- */

/* Clocks that are known to the last bit: slowdown and power as given. */
static fl_tightrope_chip exact(const double (*sp)[2]) {
    fl_tightrope_chip c = plain;
    memset(seen, 0, sizeof seen);
    c.tolerance = 0.03, c.roughness = 0.5;
    for (int k = 0; k < CLOCKS; k++)
        if (sp[k][0] > 0)
            seen[k] =
                (fl_tightrope_seen){.slowdown = sp[k][0], .power_w = sp[k][1], .ceiling = sp[k][0], .weight_s = 1};
    return c;
}

static const double curve[CLOCKS][2] = {{1.9, 90},   {1.65, 96},  {1.45, 100}, {1.25, 112},
                                        {1.16, 126}, {1.08, 164}, {1.04, 171}, {1, 200}};

static fl_tightrope_wish wish_of(double allowed) {
    return (fl_tightrope_wish){.allowed = allowed,
                               .slack_s = 100,
                               .bound = 0.1,
                               .window_s = 1,
                               .first_window_s = 2,
                               .elapsed_s = 10,
                               .now = -1};
}

/* Energies are 0.7, 0.7308, 0.8856, 0.8892 and 1 from 1100 MHz up: 1300 MHz is above the hull. Along it energy falls;
 * between two clocks by turns, the slower first. */
static void test_hull(void) {
    static const struct {
        double allowed;
        int clock;
        double energy, steepness;
    } rows[] = {{1.3, 3, 0.7, 0},
                {1.25, 3, 0.7, 0},
                {1.2, 3, 0.7308 - 0.0308 * 4 / 9, (0.0308 / 0.09) / (0.7308 - 0.0308 * 4 / 9)},
                {1.1, 4, 0.8892 - 0.1584 / 2, (0.1584 / 0.12) / (0.8892 - 0.1584 / 2)},
                {1.02, 6, 1 - 0.1108 / 2, (0.1108 / 0.04) / (1 - 0.1108 / 2)},
                {1.001, 6, 1 - 0.1108 / 40, (0.1108 / 0.04) / (1 - 0.1108 / 40)}};
    const fl_tightrope_chip c = exact(curve);
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        const fl_tightrope_wish w = wish_of(rows[i].allowed * (rows[i].steepness > 0 ? 1 : 1.0001));
        const fl_tightrope_choice x = fl_tightrope_choose(&c, seen, &w);
        FL_CHECK((int)x.clock == rows[i].clock && fabs(x.energy - rows[i].energy) < 1e-4 &&
                     fabs(x.steepness - rows[i].steepness) < 2e-3 && !x.looked,
                 "%g: %d MHz, energy %g, steepness %g", rows[i].allowed, mhz[x.clock], x.energy, x.steepness);
    }
}

/* Where others would wait, no turns are taken: the best clock that is allowed by itself. */
static void test_steady(void) {
    static const struct {
        const char *what;
        int steady;
        double allowed;
        int now, clock;
    } rows[] = {{"turns", 0, 1.3, -1, 3},
                {"steady", 1, 1.1, -1, 5},
                {"steady, just allowed", 1, 1.0801, -1, 5},
                {"steady, less", 1, 1.0799, -1, 6},
                {"steady, all", 1, 1.3, -1, 3},
                {"steady, none", 1, 1.01, -1, TOP},
                {"at a clock that saves half of it", 0, 1.3, 4, 3}};
    const fl_tightrope_chip c = exact(curve);
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        fl_tightrope_wish w = wish_of(rows[i].allowed);
        w.steady = rows[i].steady, w.now = rows[i].now;
        const fl_tightrope_choice x = fl_tightrope_choose(&c, seen, &w);
        FL_CHECK((int)x.clock == rows[i].clock, "%s: %d MHz", rows[i].what, mhz[x.clock]);
    }
}

/* The present clock stays where nothing is gained by leaving it: by 0.05 % of the energy, if it is allowed. */
static void test_stays(void) {
    static const struct {
        const char *what;
        double watts, allowed;
        int now, clock;
    } rows[] = {{"less is gained", 130.05, 1.3, 5, 4}, {"hardly more", 130.2, 1.3, 5, 4},
                {"nothing else", 130.05, 1.3, 4, 4},   {"here it is", 126.05, 1.3, 5, 5},
                {"just not", 126.1, 1.3, 5, 4},        {"not allowed", 126.05, 1.1599, 5, 4},
                {"not reached", 126.05, 1.3, 0, 4}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        /* 1300 MHz are as slow as 1200; both save as much. */
        const double sp[CLOCKS][2] = {
            {0},         {0},     {0}, {1.3, 180}, {rows[i].allowed < 1.16 ? 1.1 : 1.16, 126}, {1.16, rows[i].watts},
            {1.16, 190}, {1, 200}};
        const fl_tightrope_chip c = exact(sp);
        fl_tightrope_wish w = wish_of(rows[i].allowed);
        w.now = rows[i].now;
        const fl_tightrope_choice x = fl_tightrope_choose(&c, seen, &w);
        FL_CHECK((int)x.clock == rows[i].clock, "%s: %d MHz", rows[i].what, mhz[x.clock]);
    }
}

/* Of two clocks that do the same at the same energy the faster is taken. V^2 f is the same at both, so that power is to
 * the last bit; and both are as fast as the top, as they seemed faster. */
static void test_alike(void) {
    static const int32_t two[] = {250, 1000};
    static const double volt[] = {2, 1};
    memset(seen, 0, sizeof seen);
    fl_tightrope_chip c = plain;
    c.mhz = two, c.volt = volt, c.count = 2;
    for (int k = 0; k < 2; k++)
        seen[k] = (fl_tightrope_seen){.slowdown = 0.99, .power_w = 100, .ceiling = 1, .weight_s = 1};
    const fl_tightrope_wish w = wish_of(1.3);
    const fl_tightrope_choice x = fl_tightrope_choose(&c, seen, &w);
    FL_CHECK(x.clock == 1 && x.energy == 1, "clock %u, energy %.17g", x.clock, x.energy);
}

/* A clock is taken where the slack pays for a window at it at worst, and then for what nobody sees: at 1100 MHz, tried,
 * for its ceiling and twice its doubt; else the next higher one that is paid. A clock not tried is at worst as slow as
 * by the ratio to one above it, and its window is the longer one. */
static void test_paid(void) {
    static const struct {
        const char *what;
        int low_tried;
        double ceiling, cost, blind_s;
    } rows[] = {{"its slowdown", 1, 1, 0, 0},           {"its ceiling", 1, 1.3, 0, 0},
                {"no more than the ratio", 1, 2, 0, 0}, {"not tried", 0, 0, 0, 0},
                {"unseen for a while", 1, 1, 0, 0.5},   {"and at a cost", 1, 1, 0.25, 0.5}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        scene x = scenes[3];
        x.tried[1].power_w = 80; /* so that lower is better */
        fl_tightrope_chip c = chip_of(&x, seen);
        model m;
        seen[3].ceiling = rows[i].ceiling;
        if (!rows[i].low_tried) {
            seen[4] = seen[3], seen[3] = (fl_tightrope_seen){0};
            c.reach = 0.1;
        }
        compute(&c, seen, &m);
        const double known = fmax(m.s[3], rows[i].ceiling) * (1 + 2 * m.doubt[3]),
                     above = fmin(fmax(m.s[4], seen[4].ceiling) * (1 + 2 * m.doubt[4]), ratio(4) * 1.03),
                     worst = rows[i].low_tried ? fmin(known, ratio(3) * 1.03)
                                               : fmin(ratio(3), above * mhz[4] / mhz[3]) * 1.03,
                     length = rows[i].low_tried ? 1 : 2, most = ratio(3) * 1.03 * (1 + rows[i].cost);
        for (int less = 0; less < 2; less++) {
            fl_tightrope_wish w = wish_of(9);
            w.cost = rows[i].cost, w.blind_s = rows[i].blind_s;
            w.slack_s = fmax(0, length - 1.1 * length / worst) + rows[i].blind_s * fmax(0, 1 - 1.1 / most);
            w.slack_s += less ? -1e-6 : 1e-6;
            c.reach = rows[i].low_tried ? 0.01 : 0.1;
            const fl_tightrope_choice choice = fl_tightrope_choose(&c, seen, &w);
            FL_CHECK((choice.clock == 3) == !less && choice.clock >= 3, "%s, slack %g s: %d MHz", rows[i].what,
                     w.slack_s, mhz[choice.clock]);
        }
    }
}

/* A look pays where what it may win over as long again as the program ran is more than what it is expected to lose:
 * here at one clock between the top and one tried, or below it. */
static void test_look(void) {
    for (int steady = 0; steady < 2; steady++) {
        const scene x = {"", 0.03, 0, {{7, 1, 200, 0.01, 0.01}, {5, 1.02, 196, 0.01, 0.01}}};
        fl_tightrope_chip c = chip_of(&x, seen);
        model m;
        c.reach = 0.1;
        compute(&c, seen, &m);
        fl_tightrope_wish w = wish_of(2);
        w.look = 1, w.steady = steady, w.now = TOP;
        /* All allowed: the clock of least energy is taken, and looks are held against its energy. */
        double price = INFINITY;
        int best = TOP;
        for (int k = TOP; k >= 4; k--)
            if (m.e[k] < price)
                price = m.e[k], best = k;
        if (price * 1.0005 > m.e[TOP])
            best = TOP, price = m.e[best];
        for (int n = 0; n < 200; n++) {
            w.elapsed_s = 0.05 * n;
            double hope = 0;
            int expected = best, looked = 0;
            for (int k = 4; k <= TOP; k++) {
                const double gain = price - m.e[k] + m.e[k] * m.doubt[k], length = seen[k].weight_s > 0 ? 1 : 2,
                             worth = 0.1 * gain * w.elapsed_s - (fmax(0, m.e[k] - price) + 0.01 * price) * length;
                if (gain > 2e-4 * price && worth > hope)
                    hope = worth, expected = k, looked = 1;
            }
            const fl_tightrope_choice choice = fl_tightrope_choose(&c, seen, &w);
            FL_CHECK((int)choice.clock == expected && choice.looked == looked, "after %g s: %d MHz, expected %d",
                     w.elapsed_s, mhz[choice.clock], mhz[expected]);
        }
        w.elapsed_s = 1000, w.slack_s = w.bound = 0; /* what is not paid for is not looked at */
        CU_ASSERT(fl_tightrope_choose(&c, seen, &w).clock == TOP);
        w.slack_s = 100, w.bound = 0.1, w.allowed = 1; /* steady: none that is too slow for sure */
        const int clock = (int)fl_tightrope_choose(&c, seen, &w).clock;
        FL_CHECK(!steady || m.s[clock] <= 1 + m.doubt[clock], "steady: %d MHz", mhz[clock]);
        w.look = 0;
        CU_ASSERT(!fl_tightrope_choose(&c, seen, &w).looked);
    }
}

FL_SUITE("tightrope_curve", {"predictions", test_predicted}, {"reach", test_reach}, {"many clocks", test_many},
         {"the hull", test_hull}, {"steady", test_steady}, {"the present clock", test_stays},
         {"clocks alike", test_alike}, {"what is paid for", test_paid}, {"looks", test_look})
