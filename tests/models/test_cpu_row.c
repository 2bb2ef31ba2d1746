#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"

#include "tests/support/suite.h"

#include <math.h>

#define COUNTS 1048576.0 /* of a rate: per ps in 2^-20 */

/* 1000 and 2000 MHz at 1 V, boost 3000 MHz at 2 V; host time recorded at 2000 MHz. */
static fl_cpu_spec cpu_spec(void) {
    static int32_t mhz[] = {1000, 2000}, boost_mhz[] = {3000};
    static double volt[] = {1, 1}, boost_volt[] = {2};
    return (fl_cpu_spec){.mhz = mhz,
                         .volt = volt,
                         .count = 2,
                         .boost_mhz = boost_mhz,
                         .boost_volt = boost_volt,
                         .boost_count = 1,
                         .default_mhz = 2000,
                         .ref_mhz = 2000,
                         .static_w = 10,
                         .core_w = 5,
                         .bound = 0.5,
                         .alpha = 1,
                         .wait_alpha = 0.5,
                         .upc = 1,
                         .wait_upc = 0.25,
                         .bytes_per_s = 16e9};
}

/* Host time takes `ratio` times as long, and what it moves per second falls by as much: on the counters, and on the bus
 * of an APU, of which it never asks for more than all. */
static void test_rows(void) {
    static const struct {
        uint32_t state;
        double bound, bytes_per_s, ratio, traffic;
        int32_t mw;
    } rows[] = {
        {0, 0.5, 16e9, 1.5, 16 / 1.5 / 80, 5000},
        {1, 0.5, 16e9, 1, 0.2, 10000},
        {2, 0.5, 16e9, 5.0 / 6, 0.2 * 6 / 5, 60000},
        {0, 0, 16e9, 1, 0.2, 5000},
        {0, 1, 16e9, 2, 0.1, 5000},
        {0, 1, 160e9, 2, 1, 5000},  /* exactly all */
        {1, 1, 160e9, 1, 1, 10000}, /* twice all there is */
        {1, 1, 8e14, 1, 1, 10000},  /* whatever a file says */
        {1, 0.5, 0, 1, 0, 10000},
    };
    const fl_cpu_spec cpu = cpu_spec();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fl_host_load load = {rows[i].bound, .alpha = 1, .upc = 1, .bytes_per_s = rows[i].bytes_per_s};
        fl_cpu_row row;
        FL_CHECK(fl_cpu_row_make(&cpu, &load, rows[i].state, 80e9, &row) == FL_MODEL_OK, "row %zu", i);
        FL_CHECK(row.mul == (uint32_t)lround(rows[i].ratio * FL_MUL_ONE) && row.mw == rows[i].mw,
                 "row %zu: mul %u, %d mW", i, row.mul, row.mw);
        FL_CHECK(row.bytes == (uint32_t)lround(rows[i].bytes_per_s / rows[i].ratio * 1e-12 * COUNTS), "row %zu: %u", i,
                 row.bytes);
        FL_CHECK(row.uops == (uint32_t)lround(2e9 / rows[i].ratio * 1e-12 * COUNTS), "row %zu: %u uops", i, row.uops);
        FL_CHECK(row.traffic == (uint32_t)lround(rows[i].traffic * 65536), "row %zu: %u of the bus", i, row.traffic);
        FL_CHECK(fl_cpu_row_make(&cpu, &load, rows[i].state, 0, &row) == FL_MODEL_OK && row.traffic == 0,
                 "row %zu: no shared bus", i);
    }
}

static void test_states(void) {
    static const fl_cpu_state expected[] = {
        {.mhz = 1000, .static_mw = 10000, .wait_mw = 2500},
        {.mhz = 2000, .static_mw = 10000, .wait_mw = 5000},
        {.mhz = 3000, .static_mw = 20000, .wait_mw = 30000},
    };
    for (int sleeps = 0; sleeps < 2; sleeps++)
        for (uint32_t s = 0; s < 3; s++) {
            fl_cpu_spec cpu = cpu_spec();
            cpu.sleeps = sleeps;
            fl_cpu_state state;
            FL_CHECK(fl_cpu_state_make(&cpu, s, &state) == FL_MODEL_OK, "state %u", s);
            FL_CHECK(state.mhz == expected[s].mhz && state.static_mw == expected[s].static_mw,
                     "state %u: %d MHz, %d mW", s, state.mhz, state.static_mw);
            FL_CHECK(state.wait_mw == (sleeps ? 0 : expected[s].wait_mw), "state %u: a wait draws %d mW", s,
                     state.wait_mw);
            const double hz = expected[s].mhz * 1e6;
            FL_CHECK(state.cycles == (uint32_t)lround(hz * 1e-12 * COUNTS) &&
                         state.wait_uops == (sleeps ? 0 : (uint32_t)lround(0.25 * hz * 1e-12 * COUNTS)),
                     "state %u: %u cycles, %u uops of waiting", s, state.cycles, state.wait_uops);
        }
}

/* Where the platform says no reference clock it is the highest state; nothing set on the highest of software's states
 * is boost. */
static void test_clocks(void) {
    fl_cpu_spec cpu = cpu_spec();
    FL_CHECK(fl_cpu_state_count(&cpu) == 3 && fl_cpu_ref_mhz(&cpu) == 2000 && fl_cpu_default_mhz(&cpu) == 3000,
             "%u states, reference %g, default %g", fl_cpu_state_count(&cpu), fl_cpu_ref_mhz(&cpu),
             fl_cpu_default_mhz(&cpu));
    cpu.ref_mhz = 0;
    cpu.default_mhz = 1000;
    FL_CHECK(fl_cpu_ref_mhz(&cpu) == 3000 && fl_cpu_default_mhz(&cpu) == 1000, "reference %g, default %g",
             fl_cpu_ref_mhz(&cpu), fl_cpu_default_mhz(&cpu));
    cpu.boost_count = 0;
    FL_CHECK(fl_cpu_ref_mhz(&cpu) == 2000, "without boost %g", fl_cpu_ref_mhz(&cpu));
}

static void test_refuses(void) {
    static const struct {
        fl_host_load load;
        fl_model_status status;
        const char *what;
    } rows[] = {
        {{.bound = -0.1}, FL_MODEL_INVALID, "a negative share"},
        {{.bound = 1.1}, FL_MODEL_INVALID, "a share above 1"},
        {{.alpha = -1}, FL_MODEL_INVALID, "negative power"},
        {{.alpha = 1e6}, FL_MODEL_OVERFLOW, "more than a row holds of power"},
        {{.upc = -1}, FL_MODEL_INVALID, "negative counts"},
        {{.upc = 1e7}, FL_MODEL_OVERFLOW, "more than a row holds of counts"},
        {{.bytes_per_s = 1e18}, FL_MODEL_OVERFLOW, "more than a row holds of bytes"},
        {{.bytes_per_s = (double)NAN}, FL_MODEL_INVALID, "no number"},
    };
    const fl_cpu_spec cpu = cpu_spec();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_cpu_row row;
        const fl_model_status s = fl_cpu_row_make(&cpu, &rows[i].load, 1, 80e9, &row);
        FL_CHECK(s == rows[i].status, "%s: %s", rows[i].what, fl_model_text(s));
    }
}

/* Clocks and voltages that no CPU has. */
static void test_refuses_states(void) {
    static const struct {
        int32_t mhz;
        double volt, ref_mhz;
        fl_model_status state, row;
        const char *what;
    } rows[] = {
        {0, 1, 2000, FL_MODEL_INVALID, FL_MODEL_INVALID, "no clock"},
        {-1000, 1, 2000, FL_MODEL_INVALID, FL_MODEL_INVALID, "a negative clock"},
        {1000, 0, 2000, FL_MODEL_INVALID, FL_MODEL_OK, "no voltage"},
        {1000, (double)NAN, 2000, FL_MODEL_INVALID, FL_MODEL_INVALID, "a voltage that is no number"},
        {1000, 1, 2e8, FL_MODEL_OK, FL_MODEL_OVERFLOW, "host time that takes 200000 times as long"},
        {1000000000, 1, 0.1, FL_MODEL_OVERFLOW, FL_MODEL_OVERFLOW, "host time that takes none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int32_t mhz = rows[i].mhz;
        double volt = rows[i].volt;
        fl_cpu_spec cpu = cpu_spec();
        cpu.mhz = &mhz;
        cpu.volt = &volt;
        cpu.count = 1;
        cpu.ref_mhz = rows[i].ref_mhz;
        fl_cpu_state state;
        fl_cpu_row row;
        const fl_host_load load = {.bound = 1};
        const fl_model_status a = fl_cpu_state_make(&cpu, 0, &state), b = fl_cpu_row_make(&cpu, &load, 0, 0, &row);
        FL_CHECK(a == rows[i].state, "%s: the state: %s", rows[i].what, fl_model_text(a));
        FL_CHECK(b == rows[i].row, "%s: the row: %s", rows[i].what, fl_model_text(b));
    }
}

FL_SUITE("cpu_row", {"rows", test_rows}, {"states", test_states}, {"clocks", test_clocks}, {"refuses", test_refuses},
         {"refuses states", test_refuses_states})
