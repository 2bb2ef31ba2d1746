/* What policies make of seeded readings, number by number: the choice of tightrope's clock, its ledger under every
 * signal. Courses (test_courses.c) show decisions, and many a number may be wrong before one moves.
 * Kept in tests/golden/ with seven digits; who means to change one writes it anew with FL_BLESS=1, and says why. */
#include "policies/random.h"
#include "policies/policy.h"
#include "policies/tightrope/inside.h"
#include "tests/support/golden.h"

#include <math.h>
#include <stdarg.h>

enum { TEXT = 1 << 16, CLOCKS = 15 };
#define S 1000000000.0

static char text[TEXT];
static size_t length;

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...) {
    va_list list;
    va_start(list, format);
    length += (size_t)vsnprintf(text + length, TEXT - length, format, list);
    va_end(list);
    CU_ASSERT_FATAL(length < TEXT);
}

static void kept(const char *name) {
    fl_golden_check(name, text);
    length = 0;
}

static void *room(size_t size) {
    void *p = calloc(1, size);
    if (!p)
        exit(1);
    return p;
}

/* ---- the clock to run at ---- */

static double between(fl_random *g, double low, double high) { return low + (high - low) * fl_random_unit(g); }

static void test_choose(void) {
    fl_random g = fl_random_seed(5, 1);
    int32_t mhz[CLOCKS];
    double volt[CLOCKS];
    fl_tightrope_seen *seen = room(CLOCKS * sizeof *seen);
    for (int i = 0; i < CLOCKS; i++)
        mhz[i] = 600 + 60 * i, volt[i] = 0.7 + fmax(0, i - 5) * 0.03;
    for (int n = 0; n < 220; n++) {
        const double q = between(&g, 0, 1), fixed = between(&g, 0.1, 0.6);
        fl_tightrope_chip chip = {.mhz = mhz,
                                  .volt = n % 3 ? volt : NULL,
                                  .count = n % 7 ? CLOCKS : 2,
                                  .tolerance = 0.03,
                                  .sharpness = n % 2 ? 1 : 2,
                                  .fixed_share = between(&g, 0.2, 0.5),
                                  .roughness = 0.01,
                                  .smooth = 0.3,
                                  .reach = between(&g, 0.05, 0.3)};
        const uint32_t tried = 1 + (uint32_t)fl_random_below(&g, 5);
        memset(seen, 0, CLOCKS * sizeof *seen);
        for (uint32_t k = 0; k < tried; k++) {
            const uint32_t i = k ? (uint32_t)fl_random_below(&g, chip.count) : chip.count - 1;
            const double x = (double)mhz[chip.count - 1] / mhz[i], v = volt[i] / volt[chip.count - 1];
            const double slow = i + 1 == chip.count ? 1 : 1 + q * (x - 1) + between(&g, -0.005, 0.01);
            seen[i] = (fl_tightrope_seen){.slowdown = slow,
                                          .power_w = 300 * (fixed + (1 - fixed) * v * v / x),
                                          .noise = between(&g, 0, 0.01),
                                          .power_noise = between(&g, 0, 0.02),
                                          .ceiling = slow + between(&g, 0, 0.02),
                                          .weight_s = between(&g, 0.1, 3)};
        }
        const double bound = between(&g, 0.01, 0.2);
        const fl_tightrope_wish wish = {.allowed = 1 + bound * between(&g, -0.1, 1.5),
                                        .slack_s = between(&g, -0.1, 0.5),
                                        .bound = bound,
                                        .blind_s = between(&g, 0.02, 0.3),
                                        .cost = n % 4 ? 1 : 1.02,
                                        .window_s = between(&g, 0.2, 4),
                                        .first_window_s = between(&g, 0.1, 1),
                                        .elapsed_s = between(&g, 1, 100),
                                        .steady = n % 6 == 5,
                                        .look = n % 3 != 1,
                                        .now = (int32_t)fl_random_below(&g, chip.count)};
        const fl_tightrope_choice c = fl_tightrope_choose(&chip, seen, &wish);
        say("%d,%u,%d,%.7g,%.7g,%d\n", n, c.clock, c.looked, c.energy, c.steepness,
            fl_tightrope_affordable(&wish, wish.window_s, wish.allowed, 1.3));
    }
    free(seen);
    kept("seeded-choices.csv");
}

/* ---- the ledger ---- */

typedef struct reading { /* of a program whose units take about 10 ms at the top clock */
    fl_random random;
    double now_s, next_s, units, busy_s;
} reading;

static int signal_of(int64_t signal) {
    switch (signal) {
    case FL_TIGHTROPE_ITERATIONS:
        return FL_GPU_ITERATIONS;
    case FL_TIGHTROPE_KERNELS:
        return FL_GPU_KERNELS;
    case FL_TIGHTROPE_BYTES:
        return FL_GPU_DRAM_BYTES;
    default:
        return FL_GPU_UTIL_MEM_PCT;
    }
}

/* A window of about 0.6 s at a clock: readings each 5 ms, units slowed by some of top / f. */
static void window_of(fl_tightrope_work *w, reading *r, int64_t signal, double clock, int changed, double stretch) {
    fl_tightrope_window(w, (int64_t)(r->now_s * S), clock, changed);
    w->settled_ns = (int64_t)((r->now_s + (changed ? 0.03 : 0)) * S);
    const double end_s = r->now_s + 0.6;
    while (r->now_s < end_s) {
        fl_kernel_record record[64];
        fl_sample s = {.record = record, .gpu_count = 1};
        fl_gpu_sample u = {0};
        r->now_s += 0.005;
        while (r->next_s <= r->now_s && s.record_count < 64) {
            const double unit_s =
                (0.7 + 0.6 * fl_random_unit(&r->random)) * 0.004 * stretch * (1 + 0.6 * (1 / clock - 1));
            record[s.record_count++] = (fl_kernel_record){.kind = (uint32_t)fl_random_below(&r->random, 3),
                                                          .start_ns = (int64_t)((r->next_s - unit_s) * S),
                                                          .end_ns = (int64_t)(r->next_s * S)};
            r->units++;
            r->next_s += unit_s * (fl_random_below(&r->random, 9) ? 1.02 : 2);
        }
        const uint64_t seen = FL_BIT(FL_GPU_POWER_W) | FL_BIT(FL_GPU_ENERGY_J) | FL_BIT(FL_GPU_ENERGY_NS);
        u.valid = seen | FL_BIT(signal_of(signal));
        u.fresh = u.valid;
        u.value[signal_of(signal)] = signal == FL_TIGHTROPE_UTIL ? 30 + 20 * clock : r->units * 1000;
        u.value[FL_GPU_POWER_W] = 100 + 150 * clock + 5 * fl_random_unit(&r->random);
        u.value[FL_GPU_ENERGY_J] = r->now_s * 200, u.value[FL_GPU_ENERGY_NS] = r->now_s * S;
        s.gpu = &u;
        s.time_ns = (int64_t)(r->now_s * S);
        fl_tightrope_read(w, &s, 0, (int64_t)(end_s * S - 0.4 * S));
    }
}

static void say_ledger(const char *what, fl_tightrope_work *w, const fl_tightrope_seen_window *m) {
    /* One after the other: some of these write what others read, and C does not order the arguments of a call. */
    const double credit = fl_tightrope_credit(w);
    const int enough = fl_tightrope_enough(w, 0.01), crowded = fl_tightrope_crowded(w);
    const double busy = w->busy_share, error = fl_tightrope_reference_error(w), now = fl_tightrope_credit_now(w);
    say("%s,%.7g,%.7g,%.7g,%.7g,%.7g,%d,%.7g,%.7g,%.7g,%.7g,%d,%d\n", what, m->length_s, m->slowdown, m->noise,
        m->power_w, m->power_noise, m->doubtful, credit, now, error, busy, crowded, enough);
}

static void test_ledger(void) {
    static const double clocks[] = {1, 1, 0.9, 0.9, 0.7, 1, 0.8, 0.5, 1, 0.6};
    for (int64_t signal = FL_TIGHTROPE_RECORDS; signal <= FL_TIGHTROPE_ENDS; signal++)
        for (int way = 0; way < 3; way++) {
            fl_tightrope_work *w = room(sizeof *w);
            reading r = {.random = fl_random_seed(9, (uint64_t)(10 * signal + way)), .now_s = 1, .next_s = 1.002};
            fl_tightrope_work_begin(w, signal, (int64_t)S, 0.03, 2 + way, way ? 0.02 : 0);
            w->alike = way == 2 ? FL_TIGHTROPE_ALIKE_NONE : FL_TIGHTROPE_ALIKE_ALL;
            say("signal %d,%d\n", (int)signal, way);
            for (size_t i = 0; i < FL_COUNT(clocks); i++) {
                window_of(w, &r, signal, clocks[i], i && clocks[i] != clocks[i - 1], i == 7 && way ? 2.5 : 1);
                const fl_tightrope_seen_window m = fl_tightrope_close(w, (int64_t)(r.now_s * S), i == 8 && way == 1);
                say_ledger("window", w, &m);
                if (i == 3 && way == 1)
                    fl_tightrope_distrust(w, &m);
                if (i == 6 && way == 1)
                    fl_tightrope_new_phase(w);
                if (i == 8 && way == 2)
                    fl_tightrope_work_turn(w, FL_TIGHTROPE_NONE, (int64_t)(r.now_s * S));
                if (i == 4 && way == 2 && signal == FL_TIGHTROPE_NONE)
                    fl_tightrope_work_turn(w, FL_TIGHTROPE_RECORDS, (int64_t)(r.now_s * S));
            }
            for (int now = 0; now < 2; now++) {
                const fl_tightrope_pace p = fl_tightrope_rate_reference(&w->rate, now),
                                        q = fl_tightrope_rate_now(&w->rate);
                say("pace,%.7g,%.7g,%.7g,%.7g,%.7g,%.7g,%.7g,%.7g\n", p.unit_s, p.error, p.spread, p.cycle, p.every_s,
                    p.block_s, q.unit_s, q.error);
                say("rate,%.7g,%.7g\n", fl_tightrope_rate_error(&w->rate, 3, now),
                    fl_tightrope_rate_least(&w->rate, 3, now, 100, 0.2));
            }
            free(w);
        }
    kept("seeded-ledgers.csv");
}

FL_SUITE("seeded_policies", {"choices", test_choose}, {"ledgers", test_ledger})
