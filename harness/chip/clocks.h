/* The clocks that a user can set, and the clocks at which the GPU then runs. A GPU that was set to 405 MHz and ran at
 * 214 has rows and settings at 214 in every fit; advice on where to measure says 405. fl_fit_asked_mhz (fit_rows.h)
 * maps back. */
#pragma once

#include "harness/base/json/json.h"
#include "harness/chip/rows.h"

/* The clock at which the GPU runs when a user sets this one. A set clock that ran at another clock of the rows (its
 * rows were left out) maps to that clock. */
double fl_fit_ran_mhz(const fl_fit_rows *r, double asked_mhz);
/* Whether these rows show the wrong clock i of their list; otherwise only the device's sweeps do. */
bool fl_fit_clock_shows(const fl_fit_rows *r, size_t i);
/* "1530", or "405 (which runs at 214)". Into buf; returns buf. */
char *fl_fit_clock_text(const fl_fit_rows *r, double sm_mhz, char *buf, size_t size);
/* The settings of a set, as a user sets them. */
void fl_fit_name_probes(const fl_fit_rows *r, fl_probes *p);

/* What a device's own sweeps say of its clocks (405 set, 217 ran). The calibration keeps it for sweeps that are too
 * small to show it. _apply runs before the rows are judged: rows at such a clock get the clock at which it runs. */
#define FL_FIT_CLOCKS_KEY "asked_ran_mhz"
cJSON *fl_fit_clocks_to_json(const fl_fit_rows *r); /* NULL when out of memory; the caller owns it */
fl_status fl_fit_clocks_apply(const fl_json *calibration, fl_fit_rows *r, fl_diag *d);
