/* Locks against power limits, worked by hand: which points compare, and the two bounds of a lock between two others. */
#include "harness/report/data/data.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>

#define HEAD "workload,sm_mhz,power_cap_w,time_s,power_w\n"
/* Work per second of 1, 2 and 2.5 at 100, 150 and 200 W: the parabola is 1 + x / 50 - x (x - 50) / 10000, x = P - 100.
 */
#define LOCKS "a,500,300,1,100\na,1000,300,0.5,150\na,1500,300,0.4,200\n"

static const struct {
    const char *what, *rows;
    size_t workloads, points;
    double low, high; /* NAN: nothing to compare */
} sweeps[] = {
    /* At 175 W: a line of 2.25, a parabola of 1 + 1.5 - 0.1875 = 2.3125; the limit does 2.25 */
    {"between two locks", HEAD LOCKS "a,1500,250,0.44444444444444442,175\n", 1, 1, 100 * (2.25 / 2.3125 - 1), 0},
    {"the limit costs less", HEAD LOCKS "a,1500,250,0.4,175\n", 1, 1, 100 * (2.5 / 2.3125 - 1), 100 * (2.5 / 2.25 - 1)},
    /* At 125 W: a line of 1.5, a parabola of 1 + 0.5 + 0.0625 */
    {"between the lowest two", HEAD LOCKS "a,1500,250,0.5,125\n", 1, 1, 100 * (2 / 1.5625 - 1), 100 * (2 / 1.5 - 1)},
    {"a limit that does not act", HEAD LOCKS "a,1500,250,0.4,197\n", 0, 0, NAN, NAN},
    {"below every lock", HEAD LOCKS "a,1500,150,2,90\n", 1, 0, NAN, NAN},
    {"limits at other locks do not count", HEAD LOCKS "a,1000,150,0.6,125\n", 0, 0, NAN, NAN},
    {"two locks", HEAD "a,500,300,1,100\na,1500,300,0.4,200\na,1500,250,0.5,175\n", 0, 0, NAN, NAN},
    {"no limits", "workload,sm_mhz,time_s,power_w\na,500,1,100\na,1000,0.5,150\na,1500,0.4,200\n", 0, 0, NAN, NAN},
};

static bool near(double a, double b) { return (isnan(a) && isnan(b)) || fabs(a - b) < 1e-9; }

static void test_sweeps(void) {
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++) {
        fl_lock_caps all;
        fl_diag d = {0};
        double low, high;
        const fl_status s = fl_lock_caps_read(fl_temp_text("s.csv", sweeps[i].rows), &all, &d);
        FL_CHECK(!s && all.count == sweeps[i].workloads, "%s: %zu workloads, %s", sweeps[i].what, all.count, d.message);
        const size_t points = fl_lock_caps_range(&all, &low, &high);
        FL_CHECK(points == sweeps[i].points && near(low, sweeps[i].low) && near(high, sweeps[i].high),
                 "%s: %zu points, %.9g to %.9g %%", sweeps[i].what, points, low, high);
        fl_lock_caps_free(&all);
    }
    fl_temp_remove();
}

FL_SUITE("lock_cap", {"sweeps", test_sweeps})
