/* What a reader of a meter sees: of all readings that were ever taken the latest that is out, whichever were skipped.
 */
#include "policies/random.h"
#include "models/laws/device.h"
#include "sim/gpu/inside.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

enum { STEPS = 400 };

typedef struct reading {
    fl_meter_stamp stamp;
} reading;

typedef struct history { /* every reading ever taken */
    fl_meter_stamp taken[200 * STEPS];
    size_t count;
} history;

/* Of those that the ring still has: a reader who comes before the time that he gave may find the latest gone. */
static const fl_meter_stamp *latest(const history *h, const fl_meter *m, int64_t t) {
    uint64_t gone = 0;
    for (size_t i = h->count; i-- > 0;) {
        const uint64_t slot = UINT64_C(1) << ((size_t)h->taken[i].index & (m->shown_room - 1));
        if (!(gone & slot) && h->taken[i].at_ps + m->delay <= t)
            return &h->taken[i];
        gone |= slot;
    }
    return NULL;
}

/* The owner: goes to `until`, standing wherever the meter asks it to; it says that nobody reads before read_ps. */
static int64_t advance(fl_meter *m, history *h, int64_t now, int64_t until, int64_t read_ps) {
    for (;;) {
        const int64_t next = fl_meter_next(m, now, read_ps);
        const int64_t t = next < now ? now : next;
        if (t > until)
            return until;
        if (fl_meter_opens(m, t))
            *(int64_t *)fl_meter_open_window(m) = t;
        if (fl_meter_ends(m, t) && h->count < sizeof h->taken / sizeof *h->taken) {
            const reading r = {.stamp = {m->refresh, t}};
            h->taken[h->count++] = r.stamp;
            *(reading *)fl_meter_take(m) = r;
        } else if (t == until) {
            return until;
        }
        now = t;
    }
}

static void test_shown(void) {
    static history h;
    fl_random g = fl_random_seed(19, 5);
    for (int k = 0; k < 200; k++) {
        const int64_t period = 1 + (int64_t)fl_random_below(&g, 50);
        const fl_sensor_spec spec = {.period_ns = period,
                                     .phase_ns = (int64_t)fl_random_below(&g, (uint64_t)(3 * period)),
                                     .window_ns = (int64_t)fl_random_below(&g, (uint64_t)(2 * period)),
                                     .delay_ns = k % 3 ? (int64_t)fl_random_below(&g, (uint64_t)(5 * period)) : 0,
                                     .present = 1};
        fl_meter m;
        fl_diag d = {0};
        int64_t now = 0, seen = -1, before;
        void *point;
        h.count = 0;
        FL_CHECK(!fl_meter_open(&m, 0, &spec, sizeof now, sizeof(reading), "test", &d), "%s", d.message);
        while (fl_meter_begins_before(&m, &before, &point))
            *(int64_t *)point = before;
        for (int n = 0; n < STEPS; n++) {
            const uint64_t most = n % 7 ? 1500 * (uint64_t)period : 30000 * (uint64_t)period; /* ps: some are skipped */
            const int64_t until = now + 1 + (int64_t)fl_random_below(&g, most);
            const int64_t later = n % 5 ? 0 : (int64_t)fl_random_below(&g, most);
            now = advance(&m, &h, now, until, until + later);
            bool fresh = false;
            const bool remember = fl_random_below(&g, 2);
            const fl_meter_stamp *expected = latest(&h, &m, now), *got = fl_meter_shown(&m, now, remember, &fresh);
            FL_CHECK(!got == !expected && (!got || got->index == expected->index),
                     "period %lld, delay %lld, at %lld: shows %lld, expected %lld", (long long)m.period,
                     (long long)m.delay, (long long)now, got ? (long long)got->index : -1,
                     expected ? (long long)expected->index : -1);
            FL_CHECK(!got || fresh == (got->index > seen), "fresh %d at %lld", fresh, (long long)now);
            if (got && remember)
                seen = got->index;
        }
        fl_meter_close(&m);
    }
}

FL_SUITE("meter", {"what a reader sees", test_shown})
