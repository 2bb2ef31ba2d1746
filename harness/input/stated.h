/* How sure a fitted model is of a workload at each setting, and what follows for who chooses one by it
 * (models/decide.h). */
#pragma once

#include "models/decide.h"
#include "traces/diag.h"
#include "traces/records.h"

#include <stdbool.h>

typedef struct fl_stated {
    fl_chip_row *at;      /* count settings: clocks alone; ascending by memory clock, then SM clock */
    fl_chip_guess *guess; /* theirs: the workload's kernels one after the other */
    size_t count;         /* 0: the model states nothing */
    bool fitted;          /* by a fit, not by columns of the sweep */
} fl_stated;

/* Of a workload's rows, its kernels added up: their errors are taken to go together, as one chip's do. Settings that
 * some kernel was not measured or predicted at, and those outside [sm_min, sm_max] MHz, are left out. Of rows that were
 * not predicted just now it is empty where none states a deviation. mem_mhz: of rows that name no memory clock. */
fl_status fl_stated_make(const fl_sweep *s, uint32_t workload, bool predicted, double sm_min, double sm_max,
                         double mem_mhz, fl_stated *out, fl_diag *d);
void fl_stated_free(fl_stated *s);

/* At a setting, between the nearest SM clocks by a line (the greater deviations of the two); false outside them. */
bool fl_stated_at(const fl_stated *s, double sm_mhz, double mem_mhz, fl_chip_guess *out);

typedef struct fl_setting_clocks {
    double sm_mhz, mem_mhz;
} fl_setting_clocks;

/* Of a chosen setting against the reference (the driver's default): the chance that the real slowdown exceeds the
 * bound, and the regret to expect in power x time^delay, a share. NAN where the model states nothing there. */
double fl_stated_chance(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound);
double fl_stated_regret(const fl_stated *s, fl_setting_clocks chosen, fl_setting_clocks ref, double bound,
                        double delay);
