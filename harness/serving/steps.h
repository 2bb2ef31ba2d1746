/* The law of a server's steps, and their power, from step tables: times and board powers of whole steps over clocks. */
#pragma once

#include "harness/serving/power.h"
#include "harness/serving/score.h"
#include "models/laws/step_law.h"
#include "traces/serving/serving.h"
#include "traces/serving/step_tables.h"

#include <cjson/cJSON.h>

typedef struct fl_serving_clock_error { /* of a clock that the fit did not see */
    double sm_mhz;
    bool end; /* the lowest or highest: it was told from one side only */
    fl_serving_spread time, power;
} fl_serving_clock_error;

typedef struct fl_serving_steps_fit {
    fl_step_law law;
    fl_serving_power power;
    bool has_power;
    fl_serving_spread seen_time, seen_power; /* on what the fit saw */
    fl_serving_clock_error clock[FL_STEP_CLOCKS];
    uint32_t clocks;
    size_t rows;
    double lowest_mhz, highest_mhz; /* of the table */
} fl_serving_steps_fit;

/* Fits to all rows but those of clock leave_out (0: none), for a server with the limits of *s (its token budget cuts
 * prompts). Errors: of that clock, or, where none is left out, of each clock left out in turn if there are three or
 * more. FL_BAD_INPUT where the table has no decode, no prefill, or no clock is left. */
fl_status fl_serving_steps_make(const fl_step_rows *rows, const fl_serving *s, double leave_out,
                                fl_serving_steps_fit *fit, fl_diag *d);
void fl_serving_steps_free(fl_serving_steps_fit *fit);

/* A platform that draws the fitted powers, with the rest from platform `base`. */
fl_status fl_serving_steps_platform(const fl_serving_steps_fit *fit, const char *base, const char *path, fl_diag *d);

void fl_serving_spread_json(cJSON *json, const char *name, const fl_serving_spread *e);
void fl_serving_steps_print(const fl_serving_steps_fit *fit);
void fl_serving_steps_json(cJSON *json, const fl_serving_steps_fit *fit);
