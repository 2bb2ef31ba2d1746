/* The clocks that one can set, and those that they run at. A GPU that was asked for 405 MHz and ran at 214 has rows and
 * settings at 214 in every fit; who is told where to measure is told 405. fl_fit_asked_mhz (fit_rows.h) is the way
 * back. */
#ifndef FL_FIT_CLOCKS_H
#define FL_FIT_CLOCKS_H

#include "harness/base/json.h"
#include "harness/chip/fit_rows.h"

/* What a clock runs at that somebody asks for. One that is another clock of the rows (they were left out) is that. */
double fl_fit_ran_mhz(const fl_fit_rows *r, double asked_mhz);
/* Whether clock i of the rows' list is one of these rows', or only the device knows of it. */
bool fl_fit_clock_shows(const fl_fit_rows *r, size_t i);
/* "1530", or "405 (which runs at 214)". Into buf; returns buf. */
char *fl_fit_clock_text(const fl_fit_rows *r, double sm_mhz, char *buf, size_t size);
/* The settings of a set as one asks for them. */
void fl_fit_name_probes(const fl_fit_rows *r, fl_probes *p);

/* What a device's own sweeps say of its clocks, kept in the calibration, for sweeps too small to tell: 405 asked, 217
 * ran. _apply, before the rows are judged: rows at such a clock get the one that it runs at. */
#define FL_FIT_CLOCKS_KEY "asked_ran_mhz"
cJSON *fl_fit_clocks_to_json(const fl_fit_rows *r); /* NULL when out of memory; the caller owns it */
fl_status fl_fit_clocks_apply(const fl_json *calibration, fl_fit_rows *r, fl_diag *d);

#endif
