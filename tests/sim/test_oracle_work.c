/* The schedule that may change clocks at any instant, against what can be worked out without it: its changes are walked
 * op by op, every assignment of clocks to kinds is tried, and the price of time gives a bound by weak duality. */
#include "policies/random.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/base/base.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/work.h"
#include "sim/oracle/inside.h"
#include "sim/oracle/oracle.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "tests/support/sim_fixture.h"

static const uint64_t seed = 61;

enum { KINDS = 3, CLOCKS = 4, OPS = 40 };

typedef struct rig {
    fx_rig fx;
    const fl_clock_rates *at[CLOCKS]; /* choices: 600, 900, 1200, 1500 MHz */
    fl_oracle_work *work;
    int64_t closed_mw;
} rig;

static fl_wide abs_wide(fl_wide x) { return x < 0 ? -x : x; }

/* A rising voltage, so that slower is cheaper for what does not wait for memory. */
static void open_rig(rig *r, fl_random *g) {
    *r = (rig){.closed_mw = (int64_t)fl_random_below(g, 20000)};
    fx_open(&r->fx, 1);
    fl_device *dev = r->fx.spec.device;
    fl_curve_free(dev->voltage);
    const double x[] = {500, 1000, 1500}, y[] = {1, 1.05, 1.4};
    CU_ASSERT_FATAL(fl_curve_new(&dev->voltage, x, y, 3) == FL_MODEL_OK);
    fx_random_classes(&r->fx, g, KINDS, 1);
    const uint32_t marker = fx_class(&r->fx, 0, 0, 1, 0, 0, 0), s = fx_stream(&r->fx, 0, 0);
    for (int i = 0; i < OPS; i++) {
        const uint32_t kind = (uint32_t)fl_random_below(g, KINDS);
        const int64_t gap_ns = fl_random_below(g, 3) ? 0 : 1 + (int64_t)fl_random_below(g, 50000);
        fx_op(&r->fx, s, gap_ns, 1 + (int64_t)fl_random_below(g, 900000), kind);
    }
    fx_op(&r->fx, s, 700, 0, marker);
    fx_finish(&r->fx, 1);
    const fl_clock_rates **at = fx_alloc(CLOCKS, sizeof *at);
    for (uint32_t c = 0; c < CLOCKS; c++) {
        FX_MUST(fl_rates_at(r->fx.rates, 0, 1 + 3 * c, 1, &at[c], d));
        r->at[c] = at[c];
    }
    FX_MUST(fl_oracle_work_make(r->fx.w, &r->fx.w->stream[0], at, CLOCKS, r->closed_mw, &r->work, d));
}

static void close_rig(rig *r) {
    fl_oracle_work_free(r->work);
    fx_close(&r->fx);
}

static int64_t idle_mw(const rig *r, size_t c) { return (int64_t)r->at[c]->base.total_mw + r->closed_mw; }

static int64_t power_mw(const rig *r, size_t c, uint32_t kind) { return idle_mw(r, c) + r->at[c]->row[kind].dyn_mw; }

/* Lengths and energies of each kind (the last is the host time) at each clock. */
typedef struct sums {
    int64_t ps[KINDS + 1][CLOCKS];
    fl_wide fj[KINDS + 1][CLOCKS];
} sums;

static sums sums_of(const rig *r) {
    sums t = {0};
    const fl_stream *s = &r->fx.w->stream[0];
    for (uint64_t i = 0; i < s->count; i++) {
        int64_t gap_ns, work_ns;
        uint32_t id;
        fl_workload_op(s, i, &gap_ns, &work_ns, &id);
        for (size_t c = 0; c < CLOCKS; c++) {
            t.ps[KINDS][c] += gap_ns * FL_PS_PER_NS;
            if (work_ns)
                t.ps[id][c] += fl_length_ps(work_ns, r->at[c]->row[id].mul);
        }
    }
    for (uint32_t k = 0; k <= KINDS; k++)
        for (size_t c = 0; c < CLOCKS; c++)
            t.fj[k][c] = (fl_wide)t.ps[k][c] * (k < KINDS ? power_mw(r, c, k) : idle_mw(r, c));
    return t;
}

/* Carries out a list of changes: what is left of an op goes on at the next clock. */
static fl_work_vertex walk(const rig *r, const fl_oracle_change *change, size_t count) {
    fl_work_vertex v = {0};
    const fl_stream *s = &r->fx.w->stream[0];
    size_t k = 0;
    for (uint64_t i = 0; i < s->count; i++) {
        int64_t gap_ns, work_ns;
        uint32_t id;
        fl_workload_op(s, i, &gap_ns, &work_ns, &id);
        for (int part = 0; part < 2; part++) {
            double left = part ? (double)work_ns : (double)gap_ns; /* ns at the reference */
            while (left > 1e-7) {
                while (k + 1 < count && change[k + 1].at_ps <= v.ps)
                    k++;
                const size_t c = change[k].choice;
                const double slower = part ? (double)r->at[c]->row[id].mul / FL_MUL_ONE : 1;
                const int64_t until = k + 1 < count ? change[k + 1].at_ps : INT64_MAX,
                              takes = llround(left * slower * FL_PS_PER_NS),
                              dt = until - v.ps < takes ? until - v.ps : takes;
                v.ps += dt;
                v.fj += (fl_wide)dt * (part ? power_mw(r, c, id) : idle_mw(r, c));
                left = dt == takes ? 0 : left - (double)dt / FL_PS_PER_NS / slower;
            }
        }
    }
    return v;
}

static long double product(int m, fl_wide fj, int64_t ps) {
    long double f = (long double)fj;
    for (; m > 0; m--)
        f *= (long double)ps;
    return f;
}

/* The least of all assignments of one clock to each kind within the limit. */
static long double least_assigned(const sums *t, int m, int64_t limit_ps) {
    long double least = INFINITY;
    for (size_t n = 0; n < CLOCKS * CLOCKS * CLOCKS * CLOCKS; n++) {
        int64_t ps = 0;
        fl_wide fj = 0;
        for (size_t k = 0, rest = n; k <= KINDS; k++, rest /= CLOCKS) {
            ps += t->ps[k][rest % CLOCKS];
            fj += t->fj[k][rest % CLOCKS];
        }
        const long double f = product(m, fj, ps);
        least = ps <= limit_ps && f < least ? f : least;
    }
    return least;
}

/* Whatever a picosecond costs, no schedule within the limit is cheaper than that price lets it. The best price is the
 * slope between two clocks of a kind, or none. */
static long double dual(const sums *t, int64_t limit_ps) {
    long double best = -INFINITY;
    for (size_t n = 0; n <= (KINDS + 1) * CLOCKS * CLOCKS; n++) {
        const size_t item = n / CLOCKS / CLOCKS, a = n / CLOCKS % CLOCKS, b = n % CLOCKS;
        long double price = 0, sum;
        if (item <= KINDS && t->ps[item][a] != t->ps[item][b])
            price = (long double)(t->fj[item][a] - t->fj[item][b]) / (long double)(t->ps[item][b] - t->ps[item][a]);
        if (price < 0)
            continue;
        sum = -price * (long double)limit_ps;
        for (size_t k = 0; k <= KINDS; k++) {
            long double least = INFINITY;
            for (size_t c = 0; c < CLOCKS; c++)
                least = fminl(least, (long double)t->fj[k][c] + price * (long double)t->ps[k][c]);
            sum += least;
        }
        best = fmaxl(best, sum);
    }
    return best;
}

static void check_plan(const rig *r, const sums *t, int m, int64_t limit_ps, int n) {
    fl_work_plan p;
    size_t count = 0, again = 0;
    const bool found = fl_oracle_work_plan(r->work, m, limit_ps, &p);
    const long double least = least_assigned(t, m, limit_ps);
    FL_CHECK(found == isfinite(least), "case %d, limit %lld: found %d", n, (long long)limit_ps, found);
    if (!found)
        return;
    FL_CHECK(p.total.ps <= limit_ps, "case %d: %lld ps of %lld", n, (long long)p.total.ps, (long long)limit_ps);
    const long double f = product(m, p.total.fj, p.total.ps);
    FL_CHECK(f <= least, "case %d, E T^%d: %Lg, one clock for each kind has %Lg", n, m, f, least);
    fl_wide cheapest = 0;
    const long double bound = fl_oracle_work_bound(r->work, m, limit_ps, &cheapest), want = dual(t, limit_ps);
    FL_CHECK(bound <= f && bound >= f * (1 - 1e-6L), "case %d, E T^%d: bound %Lg, plan %Lg", n, m, bound, f);
    FL_CHECK((long double)cheapest <= want * (1 + 1e-12L) && (long double)cheapest >= want * (1 - 1e-6L),
             "case %d: no less than %Lg fJ, by prices %Lg", n, (long double)cheapest, want);
    if (!m)
        FL_CHECK((long double)p.total.fj >= want * (1 - 1e-6L) && (long double)p.total.fj <= want * (1 + 1e-6L),
                 "case %d: %Lg fJ, by prices %Lg", n, (long double)p.total.fj, want);
    FX_MUST(fl_oracle_work_changes(r->work, &p, NULL, &count, d));
    fl_oracle_change *change = fx_alloc(count, sizeof *change);
    FX_MUST(fl_oracle_work_changes(r->work, &p, change, &again, d));
    FL_CHECK(count == again && count && change[0].at_ps == 0, "case %d: %zu changes, then %zu", n, count, again);
    for (size_t i = 1; i < count; i++)
        FL_CHECK(change[i].at_ps > change[i - 1].at_ps && change[i].choice != change[i - 1].choice,
                 "case %d: change %zu changes nothing", n, i);
    const fl_work_vertex walked = walk(r, change, count);
    const int64_t off = OPS + 2; /* each op rounds its length */
    FL_CHECK(llabs(walked.ps - p.total.ps) <= off &&
                 abs_wide(walked.fj - p.total.fj) <= (fl_wide)off * r->work->most_mw,
             "case %d, E T^%d: its changes take %lld ps, not %lld", n, m, (long long)walked.ps, (long long)p.total.ps);
    free(change);
}

static void test_random(void) {
    fl_random g = fl_random_seed(seed, 1);
    printf(" seed %llu ", (unsigned long long)seed);
    for (int n = 0; n < 12; n++) {
        rig r;
        open_rig(&r, &g);
        const sums t = sums_of(&r);
        int64_t fast = 0, slow = 0;
        for (size_t k = 0; k <= KINDS; k++) {
            fast += t.ps[k][CLOCKS - 1];
            slow += t.ps[k][0];
        }
        for (int m = 0; m < 3; m++)
            for (int i = -1; i < 12 + CLOCKS; i++) /* some limits, and what each clock takes for all */
                check_plan(&r, &t, m, i < 12 ? fast + (slow - fast) / 10 * i : r.work->all[i - 12].ps, n);
        close_rig(&r);
    }
}

/* What the sums hold: by class and clock, with host time and the number of ops with work apart. */
static void test_sums(void) {
    fl_random g = fl_random_seed(seed, 2);
    rig r;
    open_rig(&r, &g);
    const sums t = sums_of(&r);
    const fl_class_sums *sum = &r.work->sum;
    fl_wide gap = 0, ops = 0;
    for (uint32_t k = 0; k < KINDS; k++) {
        for (size_t c = 0; c < CLOCKS; c++)
            FL_CHECK(sum->ps[k * CLOCKS + c] == t.ps[k][c], "kind %u, clock %zu", k, c);
        gap += sum->gap_ps[k];
        ops += (fl_wide)sum->worked[k];
    }
    FL_CHECK(gap + sum->gap_ps[KINDS] == t.ps[KINDS][0] && sum->gap_ps[KINDS] == 700000, "host time");
    FL_CHECK(ops == OPS && sum->worked[KINDS] == 0 && r.work->worked == OPS, "a marker is no work");
    for (size_t c = 0; c < CLOCKS; c++) {
        int64_t ps = 0;
        fl_wide fj = 0;
        for (size_t k = 0; k <= KINDS; k++) {
            ps += t.ps[k][c];
            fj += t.fj[k][c];
        }
        FL_CHECK(r.work->all[c].ps == ps && r.work->all[c].fj == fj, "all at clock %zu", c);
    }
    close_rig(&r);
}

/* One op of 16, 33 or 39 ps. The clock in the middle lies above the line from end to end, 825 fJ against 802.4, so no
 * price selects it; but within its own 33 ps the ends can be mixed in whole picoseconds alone, which takes 909 fJ. */
static void test_one_clock(void) {
    static const int64_t ps[] = {16, 33, 39}, mw[] = {137, 25, 8};
    fx_rig fx;
    fx_open(&fx, 1);
    fx_op(&fx, fx_stream(&fx, 0, 0), 0, 1, fx_light(&fx));
    fx_finish(&fx, 1);
    fl_row row[3] = {{0}};
    fl_clock_rates rates[3] = {{.row = NULL}};
    const fl_clock_rates **at = fx_alloc(3, sizeof *at);
    for (size_t c = 0; c < 3; c++) {
        row[c] = (fl_row){.mul = (uint32_t)ps[c] << 16, .dyn_mw = (int32_t)mw[c]};
        rates[c].row = &row[c];
        at[c] = &rates[c];
    }
    fl_oracle_work *work;
    FX_MUST(fl_oracle_work_make(fx.w, &fx.w->stream[0], at, 3, 0, &work, d));
    for (size_t c = 0; c < 3; c++)
        for (int m = 0; m < 3; m++) {
            fl_work_plan p;
            CU_ASSERT_FATAL(work->all[c].ps == ps[c]);
            FL_CHECK(fl_oracle_work_plan(work, m, ps[c], &p) && p.total.ps <= ps[c] &&
                         product(m, p.total.fj, p.total.ps) <= product(m, ps[c] * mw[c], ps[c]),
                     "E T^%d within %lld ps: %.17g fJ", m, (long long)ps[c], fx_f(p.total.fj));
        }
    fl_oracle_work_free(work);
    fx_close(&fx);
}

/* 53 days are the most at the slowest clock. */
static void test_long(void) {
    for (int over = 0; over < 2; over++) {
        fx_rig fx;
        fl_diag diag = {0};
        fx_open(&fx, 1);
        (void)fx_light(&fx); /* a kind without work */
        const uint32_t kind = fx_light(&fx), s = fx_stream(&fx, 0, 0);
        for (int i = 0; i < (over ? 26 : 24); i++) /* of 24 hours, twice as long at 500 MHz: 52 or 48 days */
            fx_op(&fx, s, i ? 0 : INT64_C(86400000000000), INT64_C(86400000000000), kind);
        for (int i = 0; i < (over ? 1 : 2); i++) /* and 1 or 2 more of the host */
            fx_op(&fx, s, INT64_C(86400000000000), 0, kind);
        fx_finish(&fx, 1);
        const fl_clock_rates **at = fx_alloc(2, sizeof *at);
        fl_oracle_work *work = NULL;
        FX_MUST(fl_rates_at(fx.rates, 0, 10, 1, &at[0], d));
        FX_MUST(fl_rates_at(fx.rates, 0, 0, 1, &at[1], d));
        const fl_status status = fl_oracle_work_make(fx.w, &fx.w->stream[0], at, 2, 0, &work, &diag);
        FL_CHECK(over ? status == FL_BAD_INPUT && strstr(diag.message, "53 days") : !status, "%d over: %s", over,
                 diag.message);
        if (!status)
            fl_oracle_work_free(work);
        fx_close(&fx);
    }
}

static void test_hull(void) {
    static const struct {
        const char *what;
        fl_hull_point in[5];
        size_t count;
        uint32_t out[5];
        size_t left;
    } rows[] = {
        {"one", {{5, 9, 7}}, 1, {7}, 1},
        {"by time", {{8, 1, 0}, {2, 9, 1}}, 2, {1, 0}, 2},
        {"slower and not cheaper", {{2, 9, 0}, {3, 9, 1}, {4, 10, 2}}, 3, {0}, 1},
        {"as fast and cheaper", {{2, 9, 0}, {2, 8, 1}}, 2, {1}, 1},
        {"equal: the lowest choice", {{2, 9, 5}, {2, 9, 3}, {2, 9, 4}}, 3, {3}, 1},
        {"above the line", {{0, 10, 0}, {5, 6, 1}, {10, 0, 2}}, 3, {0, 2}, 2},
        {"below the line", {{0, 10, 0}, {5, 4, 1}, {10, 0, 2}}, 3, {0, 1, 2}, 3},
        {"one hides two", {{0, 10, 0}, {2, 8, 1}, {4, 7, 2}, {6, 0, 3}}, 4, {0, 3}, 2},
        {"a bend", {{0, 20, 0}, {1, 10, 1}, {3, 9, 2}, {5, 3, 3}, {9, 2, 4}}, 5, {0, 1, 3, 4}, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_hull_point p[5];
        memcpy(p, rows[i].in, sizeof p);
        const size_t n = fl_hull(p, rows[i].count);
        FL_CHECK(n == rows[i].left, "%s: %zu points", rows[i].what, n);
        for (size_t k = 0; k < n && k < rows[i].left; k++)
            FL_CHECK(p[k].choice == rows[i].out[k], "%s: point %zu is choice %u", rows[i].what, k, p[k].choice);
    }
}

FL_SUITE("oracle_work", {"hull", test_hull}, {"sums", test_sums}, {"too long", test_long},
         {"one clock for all", test_one_clock}, {"schedules", test_random})
