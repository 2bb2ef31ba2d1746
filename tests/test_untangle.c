/* How much work kernels did that were recorded side by side, by hand: where all fits, as much as they lasted. */
#include "sim/untangle.h"
#include "tests/support/sim_fixture.h"

enum { OPS = 3 };

static void test_shared(void) {
    static const struct {
        const char *what;
        int64_t from[OPS], to[OPS]; /* ns; none where both are equal */
        double sms, memory;         /* shares of the GPU that each takes */
        bool shared;
        double work[OPS];
    } rows[] = {
        {"alone", {0}, {100}, 0.9, 0.9, false, {100}},
        {"one after the other", {0, 100, 300}, {100, 200, 400}, 0.75, 0.75, false, {100, 100, 100}},
        {"SMs for both", {0, 50}, {100, 150}, 0.5, 0, false, {100, 100}},
        {"memory for both", {0, 50}, {100, 150}, 0, 0.5, false, {100, 100}},
        {"two at once, then one", {0, 0, 200}, {100, 100, 300}, 0.5, 0.5, false, {100, 100, 100}},
        {"SMs for one and a third", {0, 60}, {100, 160}, 0.75, 0, true, {60 + 40 / 1.5, 40 / 1.5 + 60}},
        {"memory for one and a third", {0, 60}, {100, 160}, 0, 0.75, true, {60 + 40 / 1.5, 40 / 1.5 + 60}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_row row = {.sms = (uint16_t)(rows[i].sms * FL_ROW_ONE), .memory = (uint16_t)(rows[i].memory * FL_ROW_ONE)};
        const uint32_t class_of_op[OPS] = {0};
        fl_edge edge[2 * OPS];
        double work[OPS] = {0};
        size_t count = 0;
        bool shared = false;
        for (uint32_t k = 0; k < OPS; k++)
            if (rows[i].to[k] > rows[i].from[k]) {
                edge[count++] = (fl_edge){.at_ns = rows[i].to[k], .op = k, .end = true};
                edge[count++] = (fl_edge){.at_ns = rows[i].from[k], .op = k};
            }
        FX_MUST(fl_untangle(edge, count, class_of_op, &row, work, 0, &shared, d));
        FL_CHECK(shared == rows[i].shared, "%s: shared %d", rows[i].what, shared);
        for (int k = 0; k < OPS; k++)
            FL_CHECK(fx_near(work[k], rows[i].work[k], 1e-4) || work[k] == rows[i].work[k], "%s: op %d did %g ns of %g",
                     rows[i].what, k, work[k], rows[i].work[k]);
    }
}

FL_SUITE("untangle", {"shared or not", test_shared})
