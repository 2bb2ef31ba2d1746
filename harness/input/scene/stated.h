/* How sure a fitted model is of a workload at each setting, and what follows for who chooses one by it
 * (models/chip/decide.h). */
#pragma once

#include "models/chip/decide.h"
#include "traces/io/diag.h"
#include "traces/io/records.h"

#include <stdbool.h>

typedef struct fl_setting_clocks {
    double sm_mhz, mem_mhz;
    double limit_w; /* the power limit that was set with the clocks; 0 = none: the board's own holds */
} fl_setting_clocks;

typedef struct fl_stated {
    fl_setting_clocks *at; /* count settings, ascending by memory clock, SM clock, limit (none comes last) */
    fl_chip_guess *guess;  /* theirs: the workload's kernels one after the other */
    size_t count;          /* 0: the model states nothing */
    bool fitted;           /* by a fit, not by columns of the sweep */
} fl_stated;

/* Of a workload's rows, its kernels added up: their errors are taken to go together, as one chip's do. Settings that
 * some kernel was not measured or predicted at, and those outside [sm_min, sm_max] MHz, are left out. Of rows that were
 * not predicted just now it is empty where none states a deviation. mem_mhz: of rows that name no memory clock. Rows
 * under the workload's highest power limit, and rows that name none, are at the board's own limit. */
fl_status fl_stated_make(const fl_sweep *s, uint32_t workload, bool predicted, double sm_min, double sm_max,
                         double mem_mhz, fl_stated *out, fl_diag *d);
void fl_stated_free(fl_stated *s);

/* The clocks of its settings, count of them, which the caller frees; NULL: out of memory. */
fl_chip_row *fl_stated_rows(const fl_stated *s);

bool fl_stated_same(fl_setting_clocks a, fl_setting_clocks b);

/* At a setting, between the nearest SM clocks under the same limit by a line (the greater deviations of the two); false
 * outside them. */
bool fl_stated_at(const fl_stated *s, fl_setting_clocks at, fl_chip_guess *out);

/* Of a chosen setting against the reference (the driver's default): the chance that the real slowdown exceeds the
 * bound, and the regret to expect in power x time^delay, a share. NAN where the model states nothing there. */
double fl_stated_chance(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound);
double fl_stated_regret(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound,
                        double delay);
