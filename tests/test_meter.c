/* What a reader of a meter sees, against a search of every reading that it keeps: over seeded periods, phases, windows,
 * lags and delays, readers that come as announced and earlier ones. */
#include "policies/random.h"
#include "sim/meter.h"
#include "tests/support/suite.h"

typedef struct reading {
    fl_meter_stamp stamp;
    int64_t value;
} reading;

enum { ROOM = 4096 };

typedef struct kept { /* as the meter's ring: refresh k in place k modulo room */
    reading slot[ROOM];
    size_t room;
    int64_t seen;
} kept;

static const reading *look(kept *k, int64_t delay_ps, int64_t t, bool remember, bool *fresh) {
    const reading *best = NULL;
    for (size_t i = 0; i < k->room; i++)
        if (k->slot[i].stamp.index >= 0 && k->slot[i].stamp.at_ps + delay_ps <= t &&
            (!best || k->slot[i].stamp.index > best->stamp.index))
            best = &k->slot[i];
    if (!best)
        return NULL;
    *fresh = best->stamp.index > k->seen;
    if (remember)
        k->seen = best->stamp.index;
    return best;
}

/* All that is due before `until`, given that nobody reads before read_ps. */
static void take(fl_meter *m, kept *k, int64_t *now, int64_t read_ps, int64_t until) {
    for (int64_t t; (t = fl_meter_next(m, *now, read_ps)) <= until; *now = t) {
        if (fl_meter_opens(m, t))
            fl_meter_open_window(m, &t);
        if (!fl_meter_ends(m, t))
            continue;
        const reading r = {{m->refresh, t}, t - *(const int64_t *)fl_meter_window(m)};
        k->slot[(size_t)m->refresh & (k->room - 1)] = r;
        fl_meter_taken(m, &r);
    }
}

/* Returns how many reads came before the announced instant and found an older reading than the newest refresh. */
static size_t compare(uint64_t seed) {
    static kept k;
    fl_random r = fl_random_seed(seed, 0);
    const int64_t period = 1 + (int64_t)fl_random_below(&r, 50);
    const fl_sensor_spec spec = {.period_ns = period,
                                 .phase_ns = (int64_t)fl_random_below(&r, 100),
                                 .window_ns = (int64_t)fl_random_below(&r, 200),
                                 .lag_ns = fl_random_below(&r, 4) ? 0 : 30,
                                 .delay_ns = (int64_t)fl_random_below(&r, 8) * (int64_t)fl_random_below(&r, 60)};
    fl_meter m;
    size_t early = 0;
    CU_ASSERT_EQUAL_FATAL(fl_meter_open(&m, 0, &spec, sizeof(int64_t), sizeof(reading), "test", NULL), FL_OK);
    k.room = m.shown_room;
    k.seen = -1;
    CU_ASSERT_FATAL(k.room <= ROOM);
    for (size_t i = 0; i < k.room; i++)
        k.slot[i].stamp.index = -1;
    void *point;
    for (int64_t at; fl_meter_begins_before(&m, &at, &point);)
        memcpy(point, &at, sizeof at);
    int64_t now = -1;
    for (int step = 0; step < 60; step++) {
        const int64_t ahead = (int64_t)fl_random_below(&r, fl_random_below(&r, 2) ? 40000 : 1000000);
        const int64_t read = (now < 0 ? 0 : now) + ahead, before = fl_random_below(&r, 3) ? read : now + ahead / 2;
        take(&m, &k, &now, read, before);
        now = before > now ? before : now;
        for (int again = 0; again < 3; again++) { /* the present, and instants behind it */
            const int64_t t = now - (again ? (int64_t)fl_random_below(&r, 60000) : 0);
            const bool remember = fl_random_below(&r, 2);
            bool fresh = false, expected = false;
            const reading *got = fl_meter_shown(&m, t, remember, &fresh),
                          *want = look(&k, m.delay, t, remember, &expected);
            FL_CHECK(!got == !want && (!got || (!memcmp(got, want, sizeof *got) && fresh == expected)),
                     "seed %llu: at %lld ps refresh %lld, expected %lld", (unsigned long long)seed, (long long)t,
                     got ? (long long)got->stamp.index : -1, want ? (long long)want->stamp.index : -1);
            early += before < read && want && want->stamp.index < m.refresh - 1;
        }
    }
    fl_meter_close(&m);
    return early;
}

static void test_shown(void) {
    size_t early = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++)
        early += compare(seed);
    FL_CHECK(early > 1000, "only %zu early readers among them", early);
}

FL_SUITE("meter", {"what a reader sees", test_shown})
