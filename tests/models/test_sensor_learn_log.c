/* What the log of a sensor tells by itself. */
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#include <math.h>

/* Steps of which all values are multiples, the longest time without a change, and how many
 * readings there are. The sensor refreshes each 100 ms and is read each 10 ms; once it stands still for a second. */
static void test_log(void) {
    static const double quantum[] = {10, 5, 1, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001, 0};
    enum { COUNT = 1500 };
    static double time_s[COUNT], watts[COUNT];
    for (size_t k = 0; k < sizeof quantum / sizeof *quantum; k++) {
        const double unit = quantum[k] > 0 ? quantum[k] : 1.23456e-4;
        for (int i = 0; i < COUNT; i++) {
            int refresh = i / 10;
            if (refresh > 50 && refresh <= 59)
                refresh = 50;
            time_s[i] = 5 + 0.01 * i;
            watts[i] = i % 100 == 99 ? NAN : unit * (1000 + refresh * refresh % 97 + (refresh / 20 % 2 ? 400 : 0));
        }
        fl_sensor_learnt l = {0};
        CU_ASSERT_FATAL(fl_sensor_learn(&(fl_sensor_log){time_s, watts, COUNT}, &l) == FL_MODEL_OK);
        FL_CHECK(l.quantum == quantum[k], "steps of %g, not %g", l.quantum, quantum[k]);
        FL_CHECK(fabs(l.held_s - 1) < 0.011 && l.readings == COUNT - COUNT / 100, "held for %g s, %zu readings",
                 l.held_s, (size_t)l.readings);
        FL_CHECK(fabs(l.period_s - 0.1) < 0.002 && l.step_w > 0, "refreshes each %g s, steps of %g W", l.period_s,
                 l.step_w);
    }
}

FL_SUITE("sensor_learn_log", {"a log alone", test_log})
