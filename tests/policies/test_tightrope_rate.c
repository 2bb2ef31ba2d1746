/* tightrope's filters of a counter's pace by hand: which ends a line takes, what they make of them, what stretches at
 * the top clock add up to, and what is held back of the pace. */
#include "policies/policy.h"
#include "policies/tightrope/inside.h"
#include "tests/support/suite.h"

#include <math.h>

enum { BLOCKS = FL_TIGHTROPE_LINES - 1, SPREADS = 28, CYCLES = 8 };

static fl_tightrope_rate *r;

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1e-9, fabs(b)); }

static void open_rate(void) {
    r = calloc(1, sizeof *r);
    CU_ASSERT_FATAL(r != NULL);
}

static void edge(double at_s, double late_s, double units) {
    fl_tightrope_rate_edge(r, (int64_t)llround(at_s * 1e9), late_s, units);
}

/* Ends of units of that length, so many, from then on; known to a microsecond. */
static double run(double from_s, double unit_s, int units) {
    for (int k = 0; k <= units; k++)
        edge(from_s + k * unit_s, 1e-6, 1);
    return from_s + units * unit_s;
}

/* An end is taken for half of its lateness before the reading. Each line takes those that come so long after the last
 * one that it took, and counts the units between. */
static void test_lines(void) {
    open_rate();
    edge(1, 0.002, 1);
    CU_ASSERT(r->first_ns == 999000000 && r->edges == 1 && fabs(r->last_s) < 1e-9);
    static const double at_ms[] = {10, 17, 63, 80, 255, 300, 600};
    static const double edges[][3] = {{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {4, 2, 1}, {5, 3, 1}, {6, 3, 2}, {7, 4, 3}};
    static const double units[][3] = {{0, 0, 0},   {4, 0, 0},    {6, 0, 0},   {8, 8, 0},
                                      {10, 10, 0}, {12, 10, 12}, {14, 14, 14}};
    for (size_t i = 0; i < FL_COUNT(at_ms); i++) {
        edge(1 + at_ms[i] * 1e-3, 0.002, 2);
        CU_ASSERT(r->edges == (double)i + 2 && near(r->last_s, at_ms[i] * 1e-3) && r->line[0].edges == (double)i + 2 &&
                  r->line[0].units == 2 * ((double)i + 1) && near(r->line[0].last_s, at_ms[i] * 1e-3));
        for (int k = 0; k < 3; k++)
            FL_CHECK(r->line[k + 1].edges == edges[i][k] && r->line[k + 1].units == units[i][k],
                     "%g ms, line %d: %g ends, %g units", at_ms[i], k + 1, r->line[k + 1].edges, r->line[k + 1].units);
        CU_ASSERT(r->line[BLOCKS].edges == 0);
    }
    CU_ASSERT(r->line[0].samples == 6 && r->line[1].samples == 5 && r->line[2].samples == 2 && r->line[3].samples == 1);
    free(r);
}

/* Three ends, of two and three units, known to within 6 and 12 and 3 ms: what a filter of a spread makes of them, by
 * the rules of Kalman. */
static void test_filter(void) {
    open_rate();
    edge(1, 0.006, 1);
    edge(1.1, 0.012, 2);
    edge(1.3, 0.003, 3);
    const double v[] = {0.006 * 0.006 / 12, 0.012 * 0.012 / 12, 0.003 * 0.003 / 12}, t1 = 0.1 - 0.006 + 0.003,
                 t2 = 0.3 - 0.0015 + 0.003;
    for (int i = 0; i < SPREADS; i++) {
        const double spread = 1e-7 * pow(2, i), u = t1 / 2, p_tt = v[1], p_tu = v[1] / 2,
                     p_uu = (v[0] + v[1]) / 4 + spread * u * u / 2;
        /* Three units on: F P F' + Q, with a unit's mean so far for the scale of Q. */
        const double mean = t2 / 5, q_tu = p_tu + 3 * p_uu,
                     q_tt = p_tt + 6 * p_tu + 9 * p_uu + 3 * spread * mean * mean, s = q_tt + v[2],
                     off = t2 - (t1 + 3 * u);
        const fl_tightrope_filter *f = &r->line[0].filter[i];
        FL_CHECK(near(f->unit_s, u + q_tu / s * off) && near(f->time_s, t2 - off * v[2] / s), "spread %g: %.12g s",
                 spread, f->unit_s);
        FL_CHECK(near(f->vuu, p_uu - q_tu * q_tu / s) && near(f->vtt, q_tt * v[2] / s) && near(f->vtu, q_tu * v[2] / s),
                 "spread %g: variance %g", spread, f->vuu);
        FL_CHECK(near(f->likely, -0.5 * (log(s) + off * off / s)), "spread %g: %g", spread, f->likely);
    }
    free(r);
}

/* A line of longer times has spreads by four, and cycles from 0.0055 of its time, by doubling: they add to each end's
 * variance. */
static void test_cycles(void) {
    open_rate();
    edge(1, 0.006, 1);
    edge(1.1, 0.012, 2);
    const double v = (0.006 * 0.006 + 0.012 * 0.012) / 12, t = 0.1 - 0.006 + 0.003, u = t / 2;
    for (int i = 0; i < FL_TIGHTROPE_FILTERS; i++) {
        const double spread = 1e-7 * pow(4, i / CYCLES),
                     cycle = i % CYCLES ? pow(0.0055 * pow(2, i % CYCLES - 1) * 0.016, 2) : 0;
        const fl_tightrope_filter *f = &r->line[1].filter[i];
        FL_CHECK(near(f->vuu, (v + 2 * cycle) / 4 + spread * u * u / 2) && near(f->vtt, 0.012 * 0.012 / 12 + cycle) &&
                     near(f->vtu, f->vtt / 2) && near(f->unit_s, u),
                 "filter %d: %g", i, f->vuu);
    }
    free(r);
}

/* What a stretch at the top clock leaves: of three ends and more its paces, weighed. Of two ends nothing, not even that
 * it was. */
static void test_keep(void) {
    for (int ends = 1; ends <= 4; ends++) {
        open_rate();
        for (int k = 0; k < ends; k++)
            edge(1 + 0.3 * k, 1e-3, 1);
        const int kept = ends > 2;
        const fl_tightrope_filter f = r->line[0].filter[3];
        const double last_s = r->last_s;
        for (int twice = 1; twice <= 2; twice++) {
            fl_tightrope_rate_keep(r);
            FL_CHECK(r->line[0].kept == kept * twice && r->line[3].kept == kept * twice && r->line[BLOCKS].kept == 0 &&
                         near(r->kept_s, kept * twice * last_s) && r->edges == 0 && r->line[0].edges == 0,
                     "%d ends: %g stretches of %g s", ends, r->line[0].kept, r->kept_s);
            const fl_tightrope_filter *k = &r->line[0].filter[3];
            if (kept)
                FL_CHECK(near(k->weight, twice / f.vuu) && near(k->weighed, twice * f.unit_s / f.vuu) &&
                             near(k->weight_square, twice / (f.vuu * f.vuu)) &&
                             near(k->square, twice * f.unit_s * f.unit_s / f.vuu),
                         "%d ends: weight %g", ends, k->weight);
            else
                CU_ASSERT(k->weight == 0 && k->weighed == 0 && k->square == 0 && k->weight_square == 0);
            for (int i = 0; i < ends && twice == 1;
                 i++) { /* the same again; the filter's own sums begin anew with it */
                edge(1 + 0.3 * i, 1e-3, 1);
            }
        }
        free(r);
    }
}

/* Between stretches nothing is drawn on, but what the run made likely stays. */
static void test_stretch(void) {
    open_rate();
    run(1, 0.01, 100);
    const double likely = r->line[0].filter[0].likely, samples = r->line[0].samples;
    fl_tightrope_rate_stretch(r);
    CU_ASSERT(r->edges == 0 && r->last_s == 0 && r->ends == 0);
    for (int i = 0; i < FL_TIGHTROPE_LINES; i++) {
        const fl_tightrope_line *l = &r->line[i];
        CU_ASSERT(l->edges == 0 && l->units == 0 && l->open_units == 0 && l->first_s == 0 && l->last_s == 0 &&
                  l->last_variance_s == 0);
    }
    CU_ASSERT(r->line[0].filter[0].likely == likely && r->line[0].samples == samples && r->kept_s == 0);
    free(r);
}

/* Ends of units in a row are kept, those of several in one reading between its ends; bytes, and a gap of more than four
 * units, begin anew. */
static void test_ends_kept(void) {
    static const struct {
        double units;
        uint32_t ends;
        double before_s; /* the last but one */
    } rows[] = {{1, 1, 0}, {1, 2, 0},   {2, 4, 0.15}, {4, 8, 0.275},
                {5, 1, 0}, {1, 2, 0.4}, {1.5, 1, 0},  {3, 4, 0.6 + 0.2 / 3}};
    open_rate();
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        edge(1 + 0.1 * (double)i, 2e-9, rows[i].units);
        FL_CHECK(r->ends == rows[i].ends && fabs(r->end_s[r->ends - 1] - 0.1 * (double)i) < 1e-6, "row %zu: %u ends", i,
                 r->ends);
        FL_CHECK(r->ends < 2 || fabs(r->end_s[r->ends - 2] - rows[i].before_s) < 1e-6, "row %zu: %g s", i,
                 (double)r->end_s[r->ends - 2]);
    }
    free(r);
}

/* A cycle of so many units, one of them long, is found once 64 ends are there, if three cycles are; its multiples are
 * none. Units that differ as they like have none. From then on the last line has its ends. */
static void test_blocks(void) {
    static const struct {
        int cycle, units;
        double block;
    } rows[] = {{0, 300, 0}, {5, 62, 0}, {5, 63, 5}, {7, 70, 7}, {21, 70, 21}, {60, 260, 60}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        uint32_t seed = 1;
        double t = 1;
        open_rate();
        for (int k = 0; k <= rows[i].units; k++) {
            edge(t, 1e-6, 1);
            seed = seed * 1103515245 + 12345;
            t += rows[i].cycle ? (k % rows[i].cycle ? 0.001 : 0.02) : seed >> 16 & 1 ? 0.001 : 0.002;
        }
        FL_CHECK(r->block == rows[i].block, "cycles of %d, %d units: %g", rows[i].cycle, rows[i].units, r->block);
        CU_ASSERT((r->line[BLOCKS].edges > 0) == (rows[i].block > 0));
        free(r);
    }
}

/* What a line of blocks tells: their ends only. */
static void test_block_line(void) {
    open_rate();
    double t = 1;
    for (int k = 0; k < 64 + 20; k++) {
        edge(t, 1e-6, 1);
        t += k % 5 ? 0.001 : 0.02;
    }
    const fl_tightrope_line *l = &r->line[BLOCKS];
    FL_CHECK(l->edges == 5 && l->units == 20 && l->samples == 3, "%g blocks, %g units", l->edges, l->units);
    CU_ASSERT(r->ends == 20); /* those that told the block are forgotten */
    const fl_tightrope_pace p = fl_tightrope_rate_now(r);
    FL_CHECK(fabs(p.unit_s - 0.024 / 5) < 1e-6, "%g s", p.unit_s);
    free(r);
}

/* The pace now is of the line with the least error that has three ends; without one there is none. */
static void test_now(void) {
    open_rate();
    CU_ASSERT(fl_tightrope_rate_now(r).unit_s == 0 && fl_tightrope_rate_now(r).error == 1);
    run(1, 0.01, 1);
    CU_ASSERT(fl_tightrope_rate_now(r).unit_s == 0 && fl_tightrope_rate_now(r).error == 1);
    edge(1.02, 1e-6, 1);
    FL_CHECK(fabs(fl_tightrope_rate_now(r).unit_s - 0.01) < 1e-6, "%g s", fl_tightrope_rate_now(r).unit_s);
    free(r);
}

/* Where no standard errors are held back there is no error; half of one counts. A reference has the present stretch
 * where it is asked for. */
static void test_error(void) {
    open_rate();
    run(1, 0.01, 50);
    CU_ASSERT(fl_tightrope_rate_error(r, 0, 1) == 0);
    const double half = fl_tightrope_rate_error(r, 0.5, 1), three = fl_tightrope_rate_error(r, 3, 1);
    FL_CHECK(half > 0 && half < three && three < 1e-2, "%g, %g", half, three);
    CU_ASSERT(fl_tightrope_rate_reference(r, 0).unit_s == 0 && fl_tightrope_rate_reference(r, 0).error == 1);
    const fl_tightrope_pace now = fl_tightrope_rate_reference(r, 1);
    FL_CHECK(fabs(now.unit_s - 0.01) < 1e-5 && now.error < 1e-3, "%g s", now.unit_s);
    fl_tightrope_rate_keep(r);
    const fl_tightrope_pace kept = fl_tightrope_rate_reference(r, 0);
    FL_CHECK(near(kept.unit_s, now.unit_s) && near(kept.error, now.error), "kept: %g s", kept.unit_s);
    run(3, 0.012, 50); /* another pace beside it: half way */
    FL_CHECK(near(fl_tightrope_rate_reference(r, 0).unit_s, kept.unit_s), "without it");
    const double both = fl_tightrope_rate_reference(r, 1).unit_s;
    FL_CHECK(both > 0.0105 && both < 0.0119, "both: %g s", both);
    free(r);
}

/* One filter alone likely, of the first line: what it leaves possible by hand. Stretches at 10 and so many ms, with a
 * relative error of 1e-3 each. */
static void by_hand(double other_s, int stretches, double *spread) {
    open_rate();
    for (int k = 0; k < FL_TIGHTROPE_LINES; k++)
        for (int i = 0; i < FL_TIGHTROPE_FILTERS; i++)
            r->line[k].filter[i].likely = k == 0 && i == 5 ? 0 : -1e6;
    fl_tightrope_filter *f = &r->line[0].filter[5];
    for (int k = 0; k < stretches; k++) {
        const double unit_s = k % 2 ? other_s : 0.01, v = 1e-10;
        f->weight += 1 / v, f->weighed += unit_s / v, f->weight_square += 1 / (v * v), f->square += unit_s * unit_s / v;
    }
    r->line[0].kept = stretches, r->kept_s = 10;
    *spread = 32e-7;
}

/* What so many units take at least: less the error of the pace, that of the units themselves, and twice what the pace
 * wanders from stretch to stretch beyond chance; of time that was measured nothing. */
static void test_least(void) {
    const double sigmas = 3, k = sqrt(9 + 2 * log(10.0 / 9));
    static const struct {
        const char *what;
        double other_s;
        int stretches;
        double units, sure_s;
        int wanders;
    } rows[] = {{"alike", 0.01, 4, 1000, 0, 0},
                {"of some measured", 0.01, 4, 1000, 4, 0},
                {"all measured", 0.01, 4, 1000, 20, 0},
                {"they wander", 0.0105, 4, 1000, 4, 1},
                {"but two tell nothing of it", 0.0105, 2, 1000, 4, 0},
                {"three do", 0.0105, 3, 500, 0, 1}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        double spread, wander = 0;
        by_hand(rows[i].other_s, rows[i].stretches, &spread);
        const int n = rows[i].stretches, odd = n / 2;
        const double unit_s = (0.01 * (n - odd) + rows[i].other_s * odd) / n, error = 1e-5 / sqrt(n) / unit_s;
        if (rows[i].wanders) { /* DerSimonian and Laird, with weights alike */
            const double d = rows[i].other_s - 0.01, q = d * d * odd * (n - odd) / n / 1e-10;
            wander = sqrt((q - (n - 1)) * 1e-10 / (n - 1)) / unit_s;
        }
        const double work = rows[i].units * unit_s, open = fmax(0, work - rows[i].sure_s),
                     least = work - k * sqrt(open * open * error * error + open * spread * unit_s) - 2 * open * wander;
        const double got = fl_tightrope_rate_least(r, sigmas, 0, rows[i].units, rows[i].sure_s);
        FL_CHECK(fabs(got - least) < 1e-7, "%s: %.9f s, expected %.9f", rows[i].what, got, least);
        FL_CHECK(near(fl_tightrope_rate_error(r, sigmas, 0), k * error), "%s: error %g", rows[i].what,
                 fl_tightrope_rate_error(r, sigmas, 0));
        const fl_tightrope_pace p = fl_tightrope_rate_reference(r, 0);
        FL_CHECK(near(p.unit_s, unit_s) && near(p.spread, spread * unit_s) && p.cycle == 0 && p.every_s == 0 &&
                     p.block_s == 0 && fabs(p.wander - wander) < 1e-6,
                 "%s: %g s, wanders by %g", rows[i].what, p.unit_s, p.wander);
        free(r);
    }
}

/* Chance makes the variance of so many means larger by that. */
static void test_chance(void) {
    static const double rows[][2] = {{3, 3.78}, {4, 3.178}, {10, 2.1}, {1000, 1.09}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        const double x = 2 / (9 * (rows[i][0] - 1)), by = pow(1 - x + 2 * sqrt(x), 3);
        FL_CHECK(near(fl_tightrope_by_chance(rows[i][0]), by), "%g: %g", rows[i][0],
                 fl_tightrope_by_chance(rows[i][0]));
    }
    /* A pace wanders from there on. */
    for (int more = 0; more < 2; more++) {
        double spread;
        const double q = fl_tightrope_by_chance(4) * 3 * (more ? 1.001 : 0.999);
        by_hand(0.01 + sqrt(q * 1e-10), 4, &spread);
        CU_ASSERT((fl_tightrope_rate_reference(r, 0).wander > 0) == more);
        free(r);
    }
}

/* A spread that is less likely leaves fewer standard errors for the pace: twice its logarithm is what it takes of their
 * square. */
static void test_unlikely(void) {
    double spread;
    by_hand(0.01, 4, &spread);
    const double k = 9 + 2 * log(10.0 / 9), error = 1e-5 / 2 / 0.01;
    fl_tightrope_filter *f = r->line[0].filter;
    f[9] = f[5], f[9].likely = -2;
    f[9].weight /= 100, f[9].weighed /= 100; /* ten times the error, but less likely */
    FL_CHECK(near(fl_tightrope_rate_error(r, 3, 0), 10 * error * sqrt(k - 4)), "%g", fl_tightrope_rate_error(r, 3, 0));
    f[9].likely = -5;
    FL_CHECK(near(fl_tightrope_rate_error(r, 3, 0), error * sqrt(k)), "%g", fl_tightrope_rate_error(r, 3, 0));
    free(r);
}

/* Each further line has a fortieth of the chances: the one with the least error counts, and its cycle adds to the
 * work's error once at each end. */
static void test_best_line(void) {
    double spread;
    for (int line = 1; line < FL_TIGHTROPE_LINES; line++) {
        by_hand(0.01, 4, &spread);
        fl_tightrope_filter *f = &r->line[line].filter[10];
        *f = r->line[0].filter[5];
        f->weight *= 100, f->weighed *= 100, f->weight_square *= 1e4, f->square *= 100;
        r->line[line].kept = 4;
        r->block = 6;
        const double k = sqrt(9 + 2 * log(40)), error = 1e-5 / 20 / 0.01,
                     each = line < BLOCKS ? 0.004 * pow(4, line) : 0;
        const double own = line < BLOCKS ? 4e-7 : 1024e-7, cycle = line < BLOCKS ? pow(0.011 * each, 2) : 0;
        FL_CHECK(near(fl_tightrope_rate_error(r, 3, 0), k * error), "line %d: %g", line,
                 fl_tightrope_rate_error(r, 3, 0));
        const fl_tightrope_pace p = fl_tightrope_rate_reference(r, 0);
        FL_CHECK(near(p.unit_s, 0.01) && near(p.every_s, each) && near(p.cycle, cycle) && near(p.spread, own * 0.01) &&
                     near(p.block_s, line == BLOCKS ? 0.06 : 0),
                 "line %d: %g s each %g s", line, p.unit_s, p.every_s);
        const double work = 10, least = work - k * sqrt(100 * error * error + work * own * 0.01 + 2 * cycle);
        FL_CHECK(fabs(fl_tightrope_rate_least(r, 3, 0, 1000, 0) - least) < 1e-9, "line %d: %.9f s, expected %.9f", line,
                 fl_tightrope_rate_least(r, 3, 0, 1000, 0), least);
        free(r);
    }
}

/* A line of longer times with a dozen samples leaves only spreads possible that would make this line's error more than
 * twice as large: it contradicts. Not where the cycle is longer than its times. */
static void test_contradicted(void) {
    static const struct {
        const char *what;
        int line, contradicts;
        double samples, block, likely; /* of a narrow spread by the longer times, beside the wide one */
        int wide;                      /* its number: 4e-7 x 4^(n - 1) */
    } rows[] = {{"bursts", 2, 1, 12, 0, -1e6, 5},
                {"few samples", 2, 0, 11, 0, -1e6, 5},
                {"a narrow spread is possible", 2, 0, 12, 0, -1, 5},
                {"the spread is not wide", 2, 0, 12, 0, -1e6, 1},
                {"of the longest times", 3, 1, 12, 0, -1e6, 5},
                {"of shorter times", 1, 1, 12, 0, -1e6, 5},
                {"a cycle of 0.06 s", 2, 1, 12, 6, -1e6, 5},
                {"a cycle of 0.07 s", 2, 0, 12, 7, -1e6, 5}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        double spread;
        by_hand(0.01, 4, &spread);
        r->block = rows[i].block;
        fl_tightrope_line *l = &r->line[rows[i].line];
        l->samples = rows[i].samples;
        l->filter[rows[i].wide * CYCLES].likely = 0;
        l->filter[0].likely = rows[i].likely;
        /* 4 error^2 x 10 s = 1e-5 s, of units of 10 ms: from a spread of 1e-3 on; 4^5 x 1e-7 = 1.02e-4 */
        fl_tightrope_filter *f = &r->line[0].filter[5];
        f->weight *= 16, f->weighed *= 16, f->weight_square *= 256, f->square *= 16; /* so from 6.25e-5 on */
        const double error = fl_tightrope_rate_error(r, 3, 0);
        FL_CHECK((error > 0.5) == rows[i].contradicts, "%s: error %g", rows[i].what, error);
        free(r);
    }
}

FL_SUITE("tightrope_rate", {"lines", test_lines}, {"a filter", test_filter}, {"cycles", test_cycles},
         {"stretches kept", test_keep}, {"a new stretch", test_stretch}, {"ends kept", test_ends_kept},
         {"blocks", test_blocks}, {"the line of blocks", test_block_line}, {"now", test_now}, {"error", test_error},
         {"the least work", test_least}, {"chance", test_chance}, {"unlikely spreads", test_unlikely},
         {"the best line", test_best_line}, {"contradicted", test_contradicted})
