/* When a sensor refreshed: a changed value says so, and so does time, but for a counter that always moves. */
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "tests/support/suite.h"

static void test_fresh(void) {
    static const struct {
        const char *what;
        int64_t refresh_ns, t_ns;
        double value;
        bool fresh;
    } rows[] = {
        {"the first", 100, 1000, 5, true},
        {"the same, before it is due", 100, 1099, 5, false},
        {"the same, as long after the last that was fresh", 100, 1100, 5, true},
        {"the same, not due again", 100, 1199, 5, false},
        {"another value", 100, 1150, 6, true},
        {"due since that one alone", 100, 1249, 6, false},
        {"back again", 100, 1249, 5, true},
        {"who always moves and did not", FL_SEEN_MOVES, 1000000, 5, false},
        {"who always moves and did", FL_SEEN_MOVES, 1000001, 7, true},
        {"without a period each is fresh", 0, 1000001, 7, true},
    };
    fl_seen last = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int id = (int)(i % 3);
        fl_gpu_sample sample = {.valid = UINT64_C(1) << 40, .fresh = UINT64_C(1) << 41};
        const int64_t before = last.fresh_ns;
        const bool fresh = fl_seen_put(&last, &sample, id, rows[i].value, rows[i].t_ns, rows[i].refresh_ns);
        FL_CHECK(fresh == rows[i].fresh, "%s: %d", rows[i].what, fresh);
        FL_CHECK(sample.value[id] == rows[i].value && sample.valid == (UINT64_C(1) << 40 | FL_BIT(id)) &&
                     sample.fresh == (UINT64_C(1) << 41 | (fresh ? FL_BIT(id) : 0)),
                 "%s: the sample", rows[i].what);
        FL_CHECK(last.fresh_ns == (fresh ? rows[i].t_ns : before) && last.value == rows[i].value && last.known,
                 "%s: what is remembered", rows[i].what);
    }
    fl_seen zero = {0}; /* a first value of 0 is as fresh as any */
    fl_gpu_sample sample = {0};
    FL_CHECK(fl_seen_put(&zero, &sample, 0, 0, 5, FL_SEEN_MOVES), "0, for the first time");
}

FL_SUITE("seen", {"fresh", test_fresh})
