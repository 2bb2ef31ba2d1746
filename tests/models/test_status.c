/* What a status of the models says of itself: each its own, and a number that is none is told so. */
#include "models/math/math.h"
#include "tests/support/suite.h"

static void test_texts(void) {
    static const struct {
        fl_model_status status;
        const char *part;
    } rows[] = {{FL_MODEL_OK, "no error"},
                {FL_MODEL_RANGE, "outside the calibrated or measured range"},
                {FL_MODEL_INVALID, "an argument that no device has"},
                {FL_MODEL_OVERFLOW, "too large for the simulator's integers"},
                {FL_MODEL_NO_MEMORY, "out of memory"},
                {FL_MODEL_NO_FIT, "the data do not determine a fit"},
                {(fl_model_status)77, "unknown model status"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(strstr(fl_model_text(rows[i].status), rows[i].part), "%d: %s", (int)rows[i].status,
                 fl_model_text(rows[i].status));
}

FL_SUITE("status", {"texts", test_texts})
