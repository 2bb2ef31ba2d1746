/* tightrope's readings by hand: what a counter, records and their ends say of the work done, and when readings count.
 */
#include "policies/policy.h"
#include "policies/tightrope/inside.h"
#include "tests/support/suite.h"

#include <math.h>

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)

static fl_tightrope_gpu *g;
static fl_tightrope_work *w;
static fl_gpu_sample u[2];

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fmax(1, fabs(b)); }

/* At half the top clock since the second 1; the ledger began then. */
static void open_work(int64_t signal) {
    g = calloc(1, sizeof *g);
    CU_ASSERT_FATAL(g != NULL);
    w = &g->work;
    memset(u, 0, sizeof u);
    fl_tightrope_work_begin(w, signal, S, 0.03, 3, 0);
    fl_tightrope_window(w, S, 0.5, 0);
}

static void show(int id, double value, int fresh) {
    u[1].value[id] = value;
    u[1].valid |= FL_BIT(id);
    u[1].fresh = fresh ? u[1].fresh | FL_BIT(id) : u[1].fresh & ~FL_BIT(id);
}

/* Of the second of two GPUs. */
static void take(int64_t now, const fl_kernel_record *r, uint64_t count, int64_t power_ns) {
    const fl_sample s = {.time_ns = now, .gpu_count = 2, .gpu = u, .record = r, .record_count = count};
    fl_tightrope_read(w, &s, 1, power_ns);
}

static void take_at(int64_t now) { take(now, NULL, 0, INT64_MAX); }

/* ---- counters ---- */

/* Two readings 4 ms apart, between which the counter moved by 3; the end of a unit is late by its part of that time.
 * Counts are of units; of bytes the first move is one. A driver's old value of bytes shows no end, but work all the
 * same; nor is one known where readings are far apart. */
static void test_counter(void) {
    static const struct {
        const char *what;
        int64_t signal;
        int id, fresh;
        double before, after;
        int64_t later_ns;
        double moved, quantum, late_s; /* 0: no end is seen */
    } rows[] = {
        {"iterations", FL_TIGHTROPE_ITERATIONS, FL_GPU_ITERATIONS, 1, 5, 8, 4 * MS, 3, 1, 0.004 / 3},
        {"kernels", FL_TIGHTROPE_KERNELS, FL_GPU_KERNELS, 1, 5, 8, 4 * MS, 3, 1, 0.004 / 3},
        {"an old count", FL_TIGHTROPE_KERNELS, FL_GPU_KERNELS, 0, 5, 8, 4 * MS, 3, 1, 0.004 / 3},
        {"a quarter of one", FL_TIGHTROPE_KERNELS, FL_GPU_KERNELS, 1, 5, 5.25, 4 * MS, 0.25, 1, 0.004},
        {"bytes", FL_TIGHTROPE_BYTES, FL_GPU_DRAM_BYTES, 1, 5, 8, 4 * MS, 3, 3, 0.004},
        {"old bytes", FL_TIGHTROPE_BYTES, FL_GPU_DRAM_BYTES, 0, 5, 8, 4 * MS, 3, 0, 0},
        {"another's counter", FL_TIGHTROPE_KERNELS, FL_GPU_ITERATIONS, 1, 5, 8, 4 * MS, 0, 0, 0},
        {"nothing moved", FL_TIGHTROPE_KERNELS, FL_GPU_KERNELS, 1, 5, 5, 4 * MS, 0, 0, 0},
        {"it began anew", FL_TIGHTROPE_KERNELS, FL_GPU_KERNELS, 1, 5, 1, 4 * MS, 0, 0, 0},
        {"6 ms", FL_TIGHTROPE_KERNELS, FL_GPU_KERNELS, 1, 5, 8, 6 * MS, 3, 1, 0.002},
        {"a moment more", FL_TIGHTROPE_KERNELS, FL_GPU_KERNELS, 1, 5, 8, 6 * MS + 1, 3, 0, 0},
        {"no signal", FL_TIGHTROPE_NONE, FL_GPU_KERNELS, 1, 5, 8, 4 * MS, 0, 0, 0},
        {"utilisation", FL_TIGHTROPE_UTIL, FL_GPU_UTIL_MEM_PCT, 1, 50, 25, 4 * MS, 0.1, 0.1, 0.004},
        {"old utilisation", FL_TIGHTROPE_UTIL, FL_GPU_UTIL_MEM_PCT, 0, 50, 25, 4 * MS, 0.1, 0, 0},
        {"nothing is used", FL_TIGHTROPE_UTIL, FL_GPU_UTIL_MEM_PCT, 1, 50, 0, 4 * MS, 0, 0, 0},
        {"another's", FL_TIGHTROPE_KERNELS, FL_GPU_UTIL_MEM_PCT, 1, 50, 25, 4 * MS, 0, 0, 0},
    };
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(rows[i].signal);
        w->before_s = 7;
        const int util = rows[i].signal == FL_TIGHTROPE_UTIL;
        show(rows[i].id, rows[i].before, 1);
        take_at(util ? S : 2 * S); /* a counter's first value tells nothing */
        CU_ASSERT(w->total == 0 && w->rate.edges == 0 && w->moved_ns == S);
        w->last_ns = 2 * S;
        show(rows[i].id, rows[i].after, rows[i].fresh);
        const int64_t now = 2 * S + rows[i].later_ns;
        take_at(now);
        FL_CHECK(near(w->total, rows[i].moved) && w->last_ns == now, "%s: moved by %g", rows[i].what, w->total);
        if (rows[i].moved > 0)
            FL_CHECK(w->moved_ns == now && near(w->moved_late_s, (double)rows[i].later_ns * 1e-9) &&
                         near(w->quiet_s, (double)(now - S) * 1e-9),
                     "%s: quiet for %g s", rows[i].what, w->quiet_s);
        else
            FL_CHECK(w->moved_ns == S && w->quiet_s == 0, "%s: it moved", rows[i].what);
        FL_CHECK(near(w->quantum, rows[i].quantum), "%s: a unit is %g", rows[i].what, w->quantum);
        FL_CHECK(w->rate.edges == (rows[i].late_s > 0), "%s: %g ends", rows[i].what, w->rate.edges);
        if (rows[i].late_s > 0)
            FL_CHECK(llabs(w->rate.first_ns - (now - (int64_t)(rows[i].late_s / 2 * 1e9))) < 2 && w->origin_ns == now &&
                         near(w->origin, rows[i].moved) && near(w->base_s, 7 + 1) && near(w->edge_total, w->total),
                     "%s: the line begins at %g s", rows[i].what, w->base_s);
        else
            FL_CHECK(w->origin_ns == -1 && w->base_s == 0, "%s: no line begins", rows[i].what);
        free(g);
    }
}

/* Units since the last end that counted: no end counts before the clock is there. */
static void test_ends_of_units(void) {
    open_work(FL_TIGHTROPE_KERNELS);
    w->settled_ns = 2 * S;
    show(FL_GPU_KERNELS, 0, 1);
    take_at(2 * S - 2 * MS);
    show(FL_GPU_KERNELS, 2, 1);
    take_at(2 * S - 1);
    CU_ASSERT(w->rate.edges == 0 && w->origin_ns == 2 * S - 1 && w->origin == 2 && w->edge_total == 0);
    show(FL_GPU_KERNELS, 5, 1);
    take_at(2 * S);
    CU_ASSERT(w->rate.edges == 1 && w->origin == 2 && w->edge_total == 5);
    show(FL_GPU_KERNELS, 9, 1);
    take_at(2 * S + 4 * MS);
    FL_CHECK(w->rate.edges == 2 && w->rate.line[0].units == 4 && w->edge_total == 9, "%g units", w->rate.line[0].units);
    free(g);
}

/* A line that began as time did has begun. */
static void test_origin(void) {
    open_work(FL_TIGHTROPE_KERNELS);
    w->origin_ns = 0;
    show(FL_GPU_KERNELS, 0, 1);
    take_at(S);
    show(FL_GPU_KERNELS, 2, 1);
    take_at(S + MS);
    CU_ASSERT(w->origin_ns == 0 && w->origin == 0 && w->base_s == 0 && w->rate.edges == 1);
    free(g);
}

/* The longest quiet lately: it is forgotten by as much as passes. */
static void test_quiet(void) {
    open_work(FL_TIGHTROPE_KERNELS);
    show(FL_GPU_KERNELS, 0, 1);
    take_at(S);
    static const struct {
        double at_s, quiet_s;
    } rows[] = {{2, 1}, {2.1, 0.9900498337491681}, {4.1, 2}, {9.1, 5}, {10.1, 5 * 0.9048374180359595}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        show(FL_GPU_KERNELS, (double)i + 1, 1);
        take_at((int64_t)(rows[i].at_s * 1e9));
        FL_CHECK(fabs(w->quiet_s - fmax(rows[i].quiet_s, 0)) < 1e-6, "at %g s: %.9f s", rows[i].at_s, w->quiet_s);
    }
    free(g);
}

/* ---- records ---- */

typedef struct told {
    double count, done, low, known_s, unknown_s, top_busy_s, busy_s, overlap_s, recorded;
} told;

/* One kernel of the second GPU, by its start and end in milliseconds since the ledger began. The window's clock is
 * there since 100 ms. */
static void test_record(void) {
    static const struct {
        const char *what;
        int64_t start_ms, end_ms;
        uint32_t kind, gpu;
        int at_top;
        int64_t before_ms; /* end of the last record, before */
        double seen;       /* times at the top clock, before */
        told t;
        int64_t last_ms; /* end of the last record, then */
    } rows[] = {
        {"below the top", 200, 250, 3, 1, 0, 200, 2, {2, 1, 1, 0, 0.05, 0, 0.05, 0, 1}, 250},
        {"of a known kind", 200, 250, 3, 1, 0, 200, 3, {3, 1, 1, 0.05, 0, 0, 0.05, 0, 1}, 250},
        {"at the top", 200, 250, 3, 1, 1, 200, 1, {2, 0, 0, 0, 0.05, 0.05, 0, 0, 1}, 250},
        {"for the third time", 200, 250, 3, 1, 1, 200, 2, {3, 0, 0, 0.05, 0, 0.05, 0, 0, 1}, 250},
        {"just as the clock is there", 100, 150, 3, 1, 1, 0, 0, {1, 0, 0, 0, 0.05, 0.05, 0, 0, 1}, 150},
        {"before the clock is there", 99, 150, 3, 1, 1, 0, 3, {3, 1, 0, 0, 0, 0, 0.051, 0, 1}, 150},
        {"before a lower clock is there", 99, 150, 3, 1, 0, 0, 3, {3, 1, 0, 0, 0, 0, 0.051, 0, 1}, 150},
        {"of the other GPU", 200, 250, 3, 0, 0, 200, 3, {3, 0, 0, 0, 0, 0, 0, 0, 0}, 200},
        {"its end is missing", 200, -1000, 3, 1, 0, 200, 3, {3, 0, 0, 0, 0, 0, 0, 0, 0}, 200},
        {"it took no time", 200, 200, 3, 1, 0, 200, 3, {3, 1, 1, 0, 0, 0, 0, 0, 1}, 200},
        {"before the ledger began", -50, 0, 3, 1, 0, 0, 3, {3, 0, 0, 0, 0, 0, 0, 0, 0}, 0},
        {"all of it before", -50, -10, 3, 1, 0, 0, 3, {3, 0, 0, 0, 0, 0, 0, 0, 0}, 0},
        {"nothing, as the ledger began", 0, 0, 3, 1, 0, 0, 3, {3, 0, 0, 0, 0, 0, 0, 0, 0}, 0},
        {"its end is before its start", 200, 150, 3, 1, 0, 0, 3, {3, 0, 0, 0, 0, 0, 0, 0, 0}, 0},
        {"it ran as the ledger began", -50, 150, 3, 1, 0, 0, 3, {3, 0, 0, 0, 0, 0.07275, 0.07725, 0, 0}, 150},
        {"as the ledger began", 0, 50, 3, 1, 0, 0, 3, {3, 1, 0, 0, 0, 0, 0.05, 0, 1}, 50},
        {"beside another", 150, 250, 3, 1, 0, 200, 3, {3, 0, 0, 0, 0, 0, 0.05, 0.05, 0}, 250},
        {"beside a longer one", 150, 180, 3, 1, 0, 200, 3, {3, 0, 0, 0, 0, 0, 0, 0.05, 0}, 200},
        {"at the top, of one of many kinds", 200, 250, 9999, 1, 1, 200, 0, {0, 0, 0, 0, 0.05, 0.05, 0, 0, 1}, 250},
        {"at the top, of the last kind", 200, 250, 2047, 1, 1, 200, 0, {0, 0, 0, 0, 0.05, 0.05, 0, 0, 1}, 250},
        {"of the last but one", 200, 250, 2046, 1, 1, 200, 0, {1, 0, 0, 0, 0.05, 0.05, 0, 0, 1}, 250},
        {"one of many kinds", 200, 250, 9999, 1, 0, 200, 0, {0, 1, 1, 0, 0.05, 0, 0.05, 0, 1}, 250},
    };
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(FL_TIGHTROPE_RECORDS);
        const fl_kernel_record r = {.start_ns = S + rows[i].start_ms * MS,
                                    .end_ns = S + rows[i].end_ms * MS,
                                    .kind = rows[i].kind,
                                    .gpu = rows[i].gpu};
        const uint32_t at = rows[i].kind < FL_TIGHTROPE_KINDS ? rows[i].kind : FL_TIGHTROPE_KINDS - 1;
        fl_tightrope_kind *k = &w->kind[at];
        w->kinds = rows[i].seen > 0 ? at + 1 : 0;
        k->count = rows[i].seen, k->sum_s = rows[i].seen * 0.02, k->square_s = rows[i].seen * 4e-4;
        w->settled_ns = S + 100 * MS, w->last_end_ns = S + rows[i].before_ms * MS;
        w->at_top = rows[i].at_top;
        fl_tightrope_certain_from(&w->sure, S, 0.5 * 0.97);
        if (w->at_top) /* so that reading changes nothing of what is certain */
            w->window_ns = w->settled_ns;
        take(S + 300 * MS, &r, 1, INT64_MAX);
        const told t = rows[i].t;
        const double d = (double)(rows[i].end_ms - rows[i].start_ms) * 1e-3, certain = d * 0.5 * 0.97;
        FL_CHECK(k->count == t.count && k->done == t.done && k->low == t.low && w->recorded == t.recorded,
                 "%s: %g at the top, %g elsewhere, %g in the window", rows[i].what, k->count, k->done, k->low);
        FL_CHECK(near(k->done_s, t.done * d) && near(k->floor_s, t.done * certain) && near(k->low_s, t.low * d) &&
                     near(k->low_floor_s, t.low * certain),
                 "%s: %g s elsewhere, %g s certain", rows[i].what, k->done_s, k->floor_s);
        FL_CHECK(near(w->known_s, t.known_s) && near(w->unknown_s, t.unknown_s) && near(w->overlap_s, t.overlap_s) &&
                     near(w->busy_s, t.busy_s) && near(w->top_busy_s, t.top_busy_s),
                 "%s: known %g, unknown %g, busy %g, at the top %g", rows[i].what, w->known_s, w->unknown_s, w->busy_s,
                 w->top_busy_s);
        if (t.known_s > 0) {
            const double first = rows[i].seen * 0.02 + (rows[i].at_top ? d : 0);
            FL_CHECK(near(w->ref_s, first / t.count), "%s: the same takes %g s at the top", rows[i].what, w->ref_s);
        }
        const double news = t.count - rows[i].seen;
        FL_CHECK(near(k->sum_s, rows[i].seen * 0.02 + news * d) &&
                     near(k->square_s, rows[i].seen * 4e-4 + news * d * d) && k->now == news &&
                     near(k->now_s, news * d),
                 "%s: sum %g", rows[i].what, k->sum_s);
        FL_CHECK(w->last_end_ns == S + rows[i].last_ms * MS, "%s: the last end", rows[i].what);
        const int counted = t.recorded > 0 || t.overlap_s > 0 || t.top_busy_s + t.busy_s > 0;
        FL_CHECK(w->moved_ns == (counted && r.end_ns > S ? r.end_ns : S), "%s: shown", rows[i].what);
        FL_CHECK(near(k->window_s, t.recorded * d), "%s: %g s of the window", rows[i].what, k->window_s);
        free(g);
    }
}

/* Ends are known to a microsecond: so long two kernels may seem to run beside each other. */
static void test_beside(void) {
    for (int more = 0; more < 2; more++) {
        open_work(FL_TIGHTROPE_RECORDS);
        w->last_end_ns = 2 * S;
        const fl_kernel_record r = {.start_ns = 2 * S - 999 - 2 * more, .end_ns = 3 * S, .gpu = 1};
        take(3 * S, &r, 1, INT64_MAX);
        CU_ASSERT(w->recorded == !more && (w->overlap_s > 0) == more);
        free(g);
    }
}

/* Every record of a reading counts, and places grow with the kinds. */
static void test_all_records(void) {
    open_work(FL_TIGHTROPE_RECORDS);
    const fl_kernel_record r[] = {{.start_ns = S, .end_ns = S + 10 * MS, .kind = 5, .gpu = 1},
                                  {.start_ns = S, .end_ns = S + 10 * MS, .kind = 9, .gpu = 0},
                                  {.start_ns = S + 10 * MS, .end_ns = S + 30 * MS, .kind = 2, .gpu = 1}};
    take(2 * S, r, 3, INT64_MAX);
    FL_CHECK(w->kinds == 6 && w->kind[5].done == 1 && w->kind[2].done == 1 && w->recorded == 2, "%lld places",
             (long long)w->kinds);
    free(g);
}

/* Kernels of kinds that the phase does not have, less its own since then, and how long each kind ran in that spell. */
static void test_strange(void) {
    static const struct {
        int usual, length_ms;
        double strange_s, spell_s;
        int64_t spell;
    } rows[] = {{1, 20, 0, 0.02, 1},      {0, 30, 0.03, 0.03, 1}, {0, 10, 0.04, 0.04, 1},
                {1, 15, 0.025, 0.035, 1}, {1, 25, 0, 0.025, 2},   {0, 5, 0.005, 0.005, 2}};
    open_work(FL_TIGHTROPE_RECORDS);
    w->kind[1].usual = 1;
    int64_t t = S;
    w->phased = 0;
    const fl_kernel_record first = {.start_ns = t, .end_ns = t + 7 * MS, .kind = 0, .gpu = 1};
    take(t += 7 * MS, &first, 1, INT64_MAX);
    CU_ASSERT(w->strange_s == 0 && w->spell == 0 && w->kind[0].spell_s == 0 && near(w->kind[0].window_s, 0.007));
    w->phased = 1;
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        const fl_kernel_record r = {
            .start_ns = t, .end_ns = t + rows[i].length_ms * MS, .kind = (uint32_t)rows[i].usual, .gpu = 1};
        take(t = r.end_ns, &r, 1, INT64_MAX);
        const fl_tightrope_kind *k = &w->kind[rows[i].usual];
        FL_CHECK(near(w->strange_s, rows[i].strange_s) && w->spell == rows[i].spell &&
                     near(k->spell_s, rows[i].spell_s),
                 "record %zu: strange for %g s, spell %lld of %g s", i, w->strange_s, (long long)w->spell, k->spell_s);
    }
    free(g);
}

/* ---- ends ---- */

/* Each end counts for one, of this GPU's kernels that have an end. */
static void test_ends(void) {
    open_work(FL_TIGHTROPE_ENDS);
    const fl_kernel_record r[] = {{.start_ns = S, .end_ns = S + MS, .kind = 3, .gpu = 0},
                                  {.start_ns = S + 250 * MS, .end_ns = S + 249 * MS, .kind = 3, .gpu = 1},
                                  {.start_ns = S + 200 * MS, .end_ns = S + 250 * MS, .kind = 3, .gpu = 1}};
    take(S + 300 * MS, r, 3, INT64_MAX);
    FL_CHECK(w->total == 1 && w->recorded == 1 && near(w->busy_s, 0.05) && w->moved_ns == S + 250 * MS, "%g ends",
             w->total);
    CU_ASSERT(w->rate.edges == 1 && w->rate.first_ns == S + 250 * MS - 500 && w->quantum == 1 && w->edge_total == 1);
    free(g);
}

/* Kernels beside each other may be a hundredth of the time. */
static void test_crowded(void) {
    static const struct {
        int64_t signal;
        double overlap_s;
        int crowded;
    } rows[] = {{FL_TIGHTROPE_RECORDS, 0.099, 0},
                {FL_TIGHTROPE_RECORDS, 0.101, 1},
                {FL_TIGHTROPE_ENDS, 0.101, 0},
                {FL_TIGHTROPE_NONE, 10, 0}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(rows[i].signal);
        w->begin_ns = 5 * S, w->last_ns = 15 * S, w->overlap_s = rows[i].overlap_s;
        FL_CHECK(fl_tightrope_crowded(w) == rows[i].crowded, "row %zu", i);
        free(g);
    }
}

/* ---- power and the clock ---- */

/* Fresh readings from then on; of the energy counter the first and the last since the clock is there. */
static void test_power(void) {
    open_work(FL_TIGHTROPE_NONE);
    static const struct {
        int64_t now, power_ns;
        double watts;
        int fresh;
        double joules;
        int fresh_j;
        double at_ns;
    } rows[] = {{2 * S, 2 * S + 1, 100, 1, 9, 1, 2e9}, {2 * S, 2 * S, 100, 1, 10, 1, 2e9},
                {2 * S, 2 * S, 50, 0, 11, 0, 2e9},     {2 * S, 2 * S, 50, 1, 20, 1, 3e9},
                {2 * S, 2 * S, 10, 1, 30, 1, 4e9},     {2 * S, 2 * S, 0, 0, 40, 1, 1.9e9}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        show(FL_GPU_POWER_W, rows[i].watts, rows[i].fresh);
        show(FL_GPU_ENERGY_J, rows[i].joules, rows[i].fresh_j);
        show(FL_GPU_ENERGY_NS, rows[i].at_ns, 1);
        w->settled_ns = rows[i].power_ns;
        take(rows[i].now, NULL, 0, rows[i].power_ns);
        if (i == 1)
            CU_ASSERT(w->energy_ns[0] == 2e9 && w->energy_j[0] == 10 && w->energy_ns[1] == -1);
    }
    FL_CHECK(w->power_count == 3 && w->power_sum == 160 && w->power_square == 12600, "%g W of %g", w->power_sum,
             w->power_count);
    FL_CHECK(w->energy_ns[0] == 2e9 && w->energy_j[0] == 10 && w->energy_ns[1] == 4e9 && w->energy_j[1] == 30,
             "%g J to %g J", w->energy_j[0], w->energy_j[1]);
    u[1].valid &= ~FL_BIT(FL_GPU_ENERGY_NS);
    show(FL_GPU_ENERGY_J, 50, 1);
    take(2 * S, NULL, 0, 2 * S);
    CU_ASSERT(w->energy_j[1] == 30);
    w->energy_ns[0] = 0; /* a reading at the beginning of time is one */
    show(FL_GPU_ENERGY_NS, 6e9, 1);
    take(2 * S, NULL, 0, 2 * S);
    CU_ASSERT(w->energy_ns[0] == 0 && w->energy_j[1] == 50);
    free(g);
}

/* A top clock that is on its way counts from its arrival on. */
static void test_on_its_way(void) {
    static const struct {
        int at_top;
        int64_t settled_ns;
        double certain_s;
    } rows[] = {{1, 2 * S, 0.485 + 2}, {1, S, 3 * 0.485}, {0, 2 * S, 3 * 0.485}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(FL_TIGHTROPE_NONE);
        fl_tightrope_window(w, S, 1, 1);
        w->at_top = rows[i].at_top, w->settled_ns = rows[i].settled_ns;
        take_at(S);
        take_at(2 * S);
        FL_CHECK(near(fl_tightrope_certain_between(&w->sure, S, 4 * S), rows[i].certain_s), "row %zu: %g s", i,
                 fl_tightrope_certain_between(&w->sure, S, 4 * S));
        free(g);
    }
}

/* A clock is there when it shows, to 1 MHz; where none is shown after the time that clocks take; after 1.5 s at last.
 * How long it took is remembered, unless it never came. */
static void test_arrive(void) {
    static const struct {
        const char *what;
        double shown; /* MHz; 0: none */
        double after_s, settle_s, lag_s;
        int there;
        double react_s;
    } rows[] = {{"shown", 1000, 0.25, 0, 0, 1, 0.25},
                {"nearly", 1001, 0.25, 0, 0, 1, 0.25},
                {"from below", 999, 0.25, 0, 0, 1, 0.25},
                {"not yet", 1002, 0.25, 0, 0, 0, 0.125},
                {"sooner than others", 1000, 0.0625, 0, 0, 1, 0.125},
                {"never", 1002, 1.5, 0, 0, 1, 0.125},
                {"a moment before never", 1002, 1.499, 0, 0, 0, 0.125},
                {"not shown", 0, 0.5, 0.5, 0, 1, 0.5},
                {"not shown, not yet", 0, 0.5, 0.51, 0, 0, 0.125},
                {"with a lag", 1000, 0.25, 0, 0.5, 1, 0.25}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(FL_TIGHTROPE_NONE);
        g->arrived_ns = -1, g->power_ns = 5, g->react_s = 0.125, g->settle_s = rows[i].settle_s;
        g->lag_s = rows[i].lag_s;
        if (rows[i].shown > 0)
            show(FL_GPU_SM_MHZ, rows[i].shown, 1);
        const int64_t now = S + (int64_t)(rows[i].after_s * 1e9);
        FL_CHECK(fl_tightrope_arrive(g, &u[1], now, 1000) == rows[i].there && near(g->react_s, rows[i].react_s),
                 "%s: after %g s", rows[i].what, g->react_s);
        FL_CHECK(w->settled_ns == now + 30 * MS && g->arrived_ns == (rows[i].there ? now : -1), "%s: since then",
                 rows[i].what);
        CU_ASSERT(g->power_ns == (rows[i].there ? w->settled_ns + (int64_t)(rows[i].lag_s * 1e9) : 5));
        if (rows[i].there) { /* from then on it is */
            const int64_t since = g->arrived_ns;
            show(FL_GPU_SM_MHZ, 1, 1);
            CU_ASSERT(fl_tightrope_arrive(g, &u[1], now + S, 1000) && g->arrived_ns == since);
        }
        free(g);
    }
    open_work(FL_TIGHTROPE_NONE); /* a clock that was there as time began */
    g->arrived_ns = 0;
    show(FL_GPU_SM_MHZ, 1, 1);
    CU_ASSERT(fl_tightrope_arrive(g, &u[1], 9 * S, 1000) && g->arrived_ns == 0);
    free(g);
}

/* What part of a window something ran, by fresh readings once the clock is there. */
static void test_busy(void) {
    open_work(FL_TIGHTROPE_NONE);
    w->settled_ns = 2 * S;
    g->lag_s = 0;
    CU_ASSERT(isnan(fl_tightrope_busy(g)));
    static const struct {
        int64_t now;
        double pct;
        int fresh;
        double busy;
    } rows[] = {{2 * S - 1, 10, 1, NAN}, {2 * S, 50, 1, 0.5}, {2 * S + 1, 90, 0, 0.5}, {3 * S, 0, 1, 0.25}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        show(FL_GPU_UTIL_GPU_PCT, rows[i].pct, rows[i].fresh);
        const fl_sample s = {.time_ns = rows[i].now, .gpu_count = 2, .gpu = u};
        fl_tightrope_take(g, &s, 1);
        const double busy = fl_tightrope_busy(g);
        FL_CHECK(isnan(rows[i].busy) ? isnan(busy) : near(busy, rows[i].busy), "reading %zu: %g", i, busy);
    }
    free(g);
}

/* Power is known by the sensor, once it is through with its lag, or by three updates of the energy counter, whichever
 * is sooner. The counter says when it was updated: its oldest reading counts, whatever the clock. */
static void test_power_wait(void) {
    static const struct {
        double lag_s, age_s, wait_s;
    } rows[] = {{0.05, INFINITY, 0.16}, {1, INFINITY, 1.11}, {1.1, 0.02, 0.35}, {0.05, 0.5, 0.16}, {0.55, 0.5, 0.66}};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        open_work(FL_TIGHTROPE_NONE);
        g->lag_s = rows[i].lag_s, w->energy_age_s = rows[i].age_s;
        FL_CHECK(near(fl_tightrope_power_wait(g), rows[i].wait_s), "row %zu: %g s", i, fl_tightrope_power_wait(g));
        free(g);
    }
    open_work(FL_TIGHTROPE_NONE);
    w->settled_ns = 2 * S, w->energy_age_s = 0, w->energy_ns[0] = -1;
    static const int64_t updated[] = {1900, 2000, 2100, 2200}, taken[] = {1910, 2050, 2110, 2201};
    for (int i = 0; i < 4; i++) {
        show(FL_GPU_ENERGY_J, 10 * i, 1);
        show(FL_GPU_ENERGY_NS, (double)(updated[i] * MS), 1);
        take(taken[i] * MS, NULL, 0, INT64_MAX);
    }
    double noise;
    FL_CHECK(near(fl_tightrope_power(w, &noise), 100) && near(w->energy_age_s, 0.05), "%g W, %g s",
             fl_tightrope_power(w, &noise), w->energy_age_s);
    free(g);
}

/* Until a rise is in force: what clocks took, the time in which readings do not count, and two readings. */
static void test_reaction(void) {
    open_work(FL_TIGHTROPE_NONE);
    const fl_tightrope_params p = {.poll_ms = 5};
    g->react_s = 0.25;
    FL_CHECK(near(fl_tightrope_reaction(&p, g), 0.25 + 0.03 + 0.01), "%g s", fl_tightrope_reaction(&p, g));
    w->settled_ns = S + 530 * MS;
    FL_CHECK(near(fl_tightrope_late_s(g), 0.5), "%g s", fl_tightrope_late_s(g));
    w->settled_ns = S + 20 * MS;
    CU_ASSERT(fl_tightrope_late_s(g) == 0);
    free(g);
}

/* Readings are fine where a counter's line is drawn: at the top clock, and at both ends of a window, for 0.1 s or two
 * and a half units; and always of what drivers refresh at their own times. Else they are coarse, up to 20 ms. Between
 * half of that time and one and a half they are uneven; finer at the top. */
static void test_wait(void) {
    static const struct {
        const char *what;
        int64_t signal;
        int at_top;
        double unit_s, settled_s, left_s; /* ago; of a window whose end is so far away */
        double least_ms, most_ms;
    } rows[] = {{"in the midst", FL_TIGHTROPE_KERNELS, 0, 0, 1, 1, 20, 20},
                {"at its beginning", FL_TIGHTROPE_KERNELS, 0, 0, 0.099, 1, 2, 6},
                {"no longer", FL_TIGHTROPE_KERNELS, 0, 0, 0.101, 1, 20, 20},
                {"at its end", FL_TIGHTROPE_KERNELS, 0, 0, 1, 0.099, 2, 6},
                {"soon", FL_TIGHTROPE_KERNELS, 0, 0, 1, 0.11, 9.9, 10.1},
                {"sooner than a fine reading", FL_TIGHTROPE_KERNELS, 0, 0, 1, 0.102, 4, 4},
                {"long units", FL_TIGHTROPE_KERNELS, 0, 0.1, 0.249, 1, 2, 6},
                {"long units, no longer", FL_TIGHTROPE_KERNELS, 0, 0.1, 0.251, 1, 20, 20},
                {"long units, at its end", FL_TIGHTROPE_KERNELS, 0, 0.1, 1, 0.249, 2, 6},
                {"at the top", FL_TIGHTROPE_KERNELS, 1, 0, 1, 1, 0.5, 1.5},
                {"bytes", FL_TIGHTROPE_BYTES, 0, 0, 1, 1, 2, 6},
                {"utilisation", FL_TIGHTROPE_UTIL, 0, 0, 1, 1, 2, 6},
                {"iterations", FL_TIGHTROPE_ITERATIONS, 0, 0, 1, 1, 20, 20},
                {"records", FL_TIGHTROPE_RECORDS, 1, 0, 1, 1, 20, 20},
                {"records, soon", FL_TIGHTROPE_RECORDS, 1, 0, 1, 0.01, 10, 10},
                {"records, at once", FL_TIGHTROPE_RECORDS, 1, 0, 1, 0.001, 4, 4},
                {"records, overdue", FL_TIGHTROPE_RECORDS, 1, 0, 1, -0.04, 10, 10},
                {"records, just overdue", FL_TIGHTROPE_RECORDS, 1, 0, 1, 0, 4, 4},
                {"nothing", FL_TIGHTROPE_NONE, 0, 0, 1, 0.01, 10, 10},
                {"ends", FL_TIGHTROPE_ENDS, 0, 0, 1, 0.01, 10, 10}};
    const fl_tightrope_params p = {.poll_ms = 4};
    for (size_t i = 0; i < FL_COUNT(rows); i++) {
        double least = INFINITY, most = 0, sum = 0;
        open_work(rows[i].signal);
        w->window_ns = 5 * S, w->unit_s = rows[i].unit_s, w->at_top = rows[i].at_top;
        w->settled_ns = 10 * S - (int64_t)(rows[i].settled_s * 1e9);
        for (int k = 0; k < 1000; k++) {
            const double ms = (double)fl_tightrope_wait_ns(&p, g, 10 * S, 5 + rows[i].left_s) * 1e-6;
            least = fmin(least, ms), most = fmax(most, ms), sum += ms / 1000;
        }
        const double span = rows[i].most_ms - rows[i].least_ms, near_ms = span > 1e-6 ? 0.01 * rows[i].most_ms : 1e-4;
        FL_CHECK(least > rows[i].least_ms - near_ms && least < rows[i].least_ms + fmax(near_ms, 0.3) &&
                     most < rows[i].most_ms + near_ms && most > rows[i].most_ms - fmax(near_ms, 0.3),
                 "%s: from %g to %g ms", rows[i].what, least, most);
        CU_ASSERT(g->readings == (span > 0.5 ? 1000 : 0)); /* fine ones */
        FL_CHECK(fabs(sum - (rows[i].least_ms + rows[i].most_ms) / 2) < 0.11, "%s: %g ms", rows[i].what, sum);
        free(g);
    }
}

/* Just at the end of its part a reading is fine at the window's end, and not at its beginning. The first is the
 * soonest. */
static void test_wait_edges(void) {
    const fl_tightrope_params p = {.poll_ms = 4};
    open_work(FL_TIGHTROPE_KERNELS);
    w->window_ns = w->settled_ns = 5 * S, w->unit_s = 0.1;
    CU_ASSERT(fl_tightrope_wait_ns(&p, g, 6 * S, 1.25) == 2 * MS && g->readings == 1);
    const double second = (double)fl_tightrope_wait_ns(&p, g, 6 * S, 1.25);
    FL_CHECK(fabs(second - 4e6 * (0.5 + 0.6180339887498949)) < 2, "%g ns", second);
    w->settled_ns = 6 * S - S / 4;
    CU_ASSERT(fl_tightrope_wait_ns(&p, g, 6 * S, 9) == 20 * MS);
    free(g);
}

/* Work that ended before other work was seen to end tells nothing of quiet. */
static void test_late_record(void) {
    open_work(FL_TIGHTROPE_RECORDS);
    w->moved_ns = 3 * S, w->quiet_s = 0.5;
    const fl_kernel_record r[] = {{.start_ns = 2 * S, .end_ns = 2 * S + 1, .gpu = 1},
                                  {.start_ns = 3 * S, .end_ns = 3 * S, .gpu = 1}};
    take(4 * S, r, 2, INT64_MAX);
    CU_ASSERT(w->moved_ns == 3 * S && w->quiet_s == 0.5);
    free(g);
}

/* Where nothing or utilisation tells the work, no counter does. */
static void test_no_counter(void) {
    for (int util = 0; util < 2; util++) {
        open_work(util ? FL_TIGHTROPE_UTIL : FL_TIGHTROPE_NONE);
        for (int step = 0; step < 2; step++) {
            for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
                show(id, id == FL_GPU_UTIL_MEM_PCT ? 50 : 100 + 10 * step, 1);
            take_at(S + step * 4 * MS);
        }
        FL_CHECK(near(w->total, util ? 50 * 0.004 : 0), "moved by %g", w->total);
        free(g);
    }
}

FL_SUITE("tightrope_signal", {"a counter", test_counter}, {"ends of units", test_ends_of_units},
         {"the line's beginning", test_origin}, {"quiet", test_quiet}, {"a record", test_record},
         {"beside another", test_beside}, {"all records", test_all_records}, {"strange kernels", test_strange},
         {"ends", test_ends}, {"crowded", test_crowded}, {"power", test_power}, {"a clock on its way", test_on_its_way},
         {"a clock that is there", test_arrive}, {"busy", test_busy}, {"until power is known", test_power_wait},
         {"reaction", test_reaction}, {"the next reading", test_wait}, {"just then", test_wait_edges},
         {"a late record", test_late_record}, {"no counter", test_no_counter})
