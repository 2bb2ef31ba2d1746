/* The control law of a power limit, found from the course of a board that follows it. Power is 200 W at 1380 MHz and
 * goes with the clock to the power of 2.4; it is read each 5 ms and refreshed each 20 ms. */
#include "models/fit/fit.h"
#include "models/math/math.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { ROWS = 4000, EVERY = 4 };

typedef struct course {
    double time_s[ROWS], watts[ROWS], sm_mhz[ROWS], limit_w[ROWS];
} course;

typedef struct law {
    double exponent, aim, rise_mhz, filter_ms;
    int rise_looks;
} law;

static double power_at(double mhz) { return 200 * pow(mhz / 1380, 2.4); }

/* limit: for 2.5 s each, then again from the first. */
static fl_limit_log follow(course *c, const law *l, const double *limit, size_t limits) {
    const double keep = l->filter_ms > 0 ? exp(-20 / l->filter_ms) : 0;
    double mhz = 1380, seen = 200, shown = 200;
    int recover = 0, look = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const double now = limit[i / 500 % limits], before = i ? limit[(i - 1) / 500 % limits] : now;
        recover = now > before ? 0 : recover;
        if (i % EVERY == 0) {
            shown = power_at(mhz);
            seen = keep * seen + (1 - keep) * shown;
            look++;
            recover = seen > now ? 12 : recover - 1;
            const double law_mhz = mhz * pow(l->aim * now / seen, l->exponent);
            if (seen > now)
                mhz = law_mhz;
            else if (seen < l->aim * now && (recover > 0 || look % l->rise_looks == 0))
                mhz = fmin(fmin(law_mhz, mhz + l->rise_mhz), 1380);
        }
        c->time_s[i] = 0.005 * (double)i;
        c->watts[i] = shown;
        c->sm_mhz[i] = mhz;
        c->limit_w[i] = now;
    }
    return (fl_limit_log){c->time_s, c->watts, c->sm_mhz, c->limit_w, ROWS};
}

static course room[2];

static void test_found(void) {
    static const double limit[] = {210, 100, 180, 120, 190};
    static const law rows[] = {{0.38, 0.985, 135, 12, 8}, {0.25, 0.97, 90, 0, 5}, {0.5, 0.99, 60, 20, 10}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const law *l = &rows[i];
        const fl_limit_log log = follow(&room[0], l, limit, 5);
        fl_limit_learnt found;
        CU_ASSERT(fl_limit_learn(&log, 1, &found) == FL_MODEL_OK);
        FL_CHECK(fabs(found.period_s - 0.02) < 2e-4, "law %zu: a look each %g s", i, found.period_s);
        FL_CHECK(fabs(found.exponent / l->exponent - 1) < 0.1 && found.low <= found.exponent &&
                     found.exponent <= found.high,
                 "law %zu: exponent %g of %g to %g", i, found.exponent, found.low, found.high);
        FL_CHECK(fabs(found.aim - l->aim) < 0.015, "law %zu: aims at %g", i, found.aim);
        FL_CHECK(fabs(found.rise_s - 0.02 * l->rise_looks) < 0.006, "law %zu: up each %g s", i, found.rise_s);
        FL_CHECK(fabs(found.rise_mhz - l->rise_mhz) < 1e-6 && found.rise_bound, "law %zu: by %g MHz", i,
                 found.rise_mhz);
        FL_CHECK(fabs(found.filter_s * 1e3 - l->filter_ms) <= 6, "law %zu: filter of %g s", i, found.filter_s);
        FL_CHECK(found.downs >= 3 && found.ups >= 3, "law %zu: %zu and %zu steps", i, found.downs, found.ups);
    }
}

/* What a log lacks is unknown or refused, never made up. */
static void test_too_little(void) {
    static const law l = {0.38, 0.985, 135, 12, 8};
    static const struct {
        const char *what;
        double limit[8];
        fl_model_status status;
    } rows[] = {{"one limit", {150, 150, 150, 150, 150, 150, 150, 150}, FL_MODEL_NO_FIT},
                {"limits out of reach", {300, 250, 300, 250, 300, 250, 300, 250}, FL_MODEL_NO_FIT},
                {"steps below 5 %", {160, 155, 160, 155, 160, 155, 160, 155}, FL_MODEL_NO_FIT},
                {"steps up alone", {100, 120, 140, 160, 180, 200, 220, 240}, FL_MODEL_NO_FIT},
                {"steps down alone", {210, 190, 170, 150, 130, 115, 100, 90}, FL_MODEL_OK}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fl_limit_log log = follow(&room[0], &l, rows[i].limit, 8);
        fl_limit_learnt found = {0};
        const fl_model_status s = fl_limit_learn(&log, 1, &found);
        FL_CHECK(s == rows[i].status, "%s: status %d", rows[i].what, (int)s);
        if (!s)
            FL_CHECK(isnan(found.rise_s) && isnan(found.rise_mhz) && !found.ups && found.downs == 7, "%s: %zu down",
                     rows[i].what, found.downs);
    }
}

/* Two logs count together; readings that are not known are passed over. */
static void test_together(void) {
    static const law l = {0.38, 0.985, 135, 12, 8};
    static const double limit[] = {210, 100, 180, 120, 190};
    const fl_limit_log log[] = {follow(&room[0], &l, limit, 5), follow(&room[1], &l, limit, 5)};
    fl_limit_learnt one, both;
    CU_ASSERT(fl_limit_learn(log, 1, &one) == FL_MODEL_OK && fl_limit_learn(log, 2, &both) == FL_MODEL_OK);
    FL_CHECK(both.downs == 2 * one.downs && both.moves == 2 * one.moves && fabs(both.exponent - one.exponent) < 1e-9,
             "%zu steps, exponent %g", both.downs, both.exponent);
    for (size_t i = 7; i < ROWS; i += 50)
        room[0].watts[i] = NAN;
    CU_ASSERT(fl_limit_learn(log, 1, &both) == FL_MODEL_OK);
    FL_CHECK(fabs(both.exponent / one.exponent - 1) < 0.1, "exponent %g", both.exponent);
}

FL_SUITE("limit_fit", {"found", test_found}, {"too little", test_too_little}, {"together", test_together})
