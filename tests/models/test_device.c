/* What a device is made of: its ladders, and how far its kernels disturb each other. */
#include "models/laws/device.h"
#include "tests/support/suite.h"

#include <math.h>

/* Shares of 1/65536, rounded to the nearest. */
static void test_interference(void) {
    static const struct {
        double share;
        uint32_t want;
    } rows[] = {{0, 0},
                {-1, 0},
                {(double)NAN, 0},
                {1, 65536},
                {2.5, 163840},
                {100.47 / 65536, 100},
                {100.52 / 65536, 101},
                {0.3 / 65536, 0},
                {0.6 / 65536, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(fl_gpu_interference(&(fl_device){.interference = rows[i].share}) == rows[i].want, "row %zu: %u", i,
                 fl_gpu_interference(&(fl_device){.interference = rows[i].share}));
}

FL_SUITE("device", {"interference", test_interference})
