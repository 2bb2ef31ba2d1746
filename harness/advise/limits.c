#include "harness/advise/limits.h"

#include <math.h>
#include <string.h>

#define SAME_W 0.5 /* a limit is set in whole watts */

/* Whether limits are all that was set for the workload. */
static bool limits_alone(const fl_sweep *s, uint32_t workload) {
    bool limits = false, clocks = false;
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        limits |= r->workload == workload && !isnan(r->power_cap_w);
        clocks |= r->workload == workload && !isnan(r->sm_mhz);
    }
    return limits && !clocks;
}

double fl_advise_settle_limits(fl_sweep *s, const fl_device *dev) {
    double own = 0;
    size_t kept = 0;
    for (size_t i = 0; i < s->row_count; i++)
        if (isnan(s->rows[i].sm_mhz) && limits_alone(s, s->rows[i].workload))
            for (size_t k = i, of = s->rows[i].workload; k < s->row_count; k++)
                s->rows[k].sm_mhz = s->rows[k].workload == of ? 0 : s->rows[k].sm_mhz;
    for (size_t i = 0; i < s->row_count; i++)
        own = fmax(own, isnan(s->rows[i].power_cap_w) ? (double)INFINITY : s->rows[i].power_cap_w);
    own = dev->power_default_w > 0 ? dev->power_default_w : own;
    for (size_t i = 0; i < s->row_count; i++) {
        fl_sweep_row *r = &s->rows[i];
        if (r->power_cap_w > own + SAME_W)
            continue;
        if (!(r->power_cap_w < own - SAME_W))
            r->power_cap_w = NAN;
        s->rows[kept++] = *r;
    }
    s->row_count = kept;
    return own;
}

bool fl_advise_as_measured(const fl_sweep_chip *c, const fl_sweep_row *r) {
    bool as = r->energy_j > 0 && !(r->time_sd_pct > 0) && !(r->power_sd_pct > 0);
    for (size_t i = 0; i < c->rows.unsounds; i++)
        as &= c->rows.unsound[i].at.line != r->line;
    for (size_t i = 0; i < c->rows.clocks; i++)
        as &= !(fabs(c->rows.clock[i].sm_mhz - r->sm_mhz) < 0.5);
    return as;
}

/* Whether the laws have a row of the same setting under a limit that does not bind. */
static bool is_known(const fl_sweep_chip *c, const fl_sweep *s, const fl_sweep_row *r) {
    for (size_t i = 0; i < c->rows.count; i++) {
        const fl_chip_row *k = &c->rows.row[i];
        const fl_fit_entity *e = &c->rows.entity[k->workload];
        if (fabs(k->sm_mhz - r->sm_mhz) < 0.5 &&
            (!c->rows.mem_known || isnan(r->mem_mhz) || fabs(k->mem_mhz - r->mem_mhz) < 0.5) &&
            !strcmp(e->workload, s->names[r->workload]) && !strcmp(e->kernel, s->names[r->kernel]))
            return true;
    }
    return false;
}

/* Whether the row is a candidate by itself, as the laws have none of its setting. */
static bool stands_alone(const fl_sweep_chip *c, const fl_sweep *s, uint32_t workload, const fl_sweep_row *r) {
    return r->workload == workload && fl_advise_as_measured(c, r) && (!isnan(r->power_cap_w) || !is_known(c, s, r));
}

/* Whether somebody measured what the row predicts. */
static bool is_measured(const fl_sweep_chip *c, const fl_sweep *s, const fl_sweep_row *predicted) {
    for (size_t i = 0; i < s->row_count; i++) {
        const fl_sweep_row *r = &s->rows[i];
        if (isnan(r->power_cap_w) && r->kernel == predicted->kernel && fabs(r->sm_mhz - predicted->sm_mhz) < 0.5 &&
            (isnan(r->mem_mhz) || fabs(r->mem_mhz - predicted->mem_mhz) < 0.5) &&
            stands_alone(c, s, predicted->workload, r))
            return true;
    }
    return false;
}

fl_status fl_advise_add_limited(const fl_sweep_chip *c, const fl_sweep *measured, uint32_t workload, double sm_min,
                                double sm_max, fl_sweep *to, fl_diag *d) {
    size_t kept = 0;
    for (size_t i = 0; i < to->row_count; i++)
        if (to->rows[i].sm_mhz >= sm_min && to->rows[i].sm_mhz <= sm_max && !is_measured(c, measured, &to->rows[i]))
            to->rows[kept++] = to->rows[i];
    to->row_count = kept;
    for (size_t i = 0; i < measured->row_count; i++) {
        const fl_sweep_row *r = &measured->rows[i];
        if (!stands_alone(c, measured, workload, r))
            continue;
        if (fl_grow(&to->rows, &to->row_room, to->row_count + 1, sizeof *to->rows))
            return fl_no_memory(d, "the settings");
        const fl_chip_guess g = fl_chip_measured(c->chip, r->time_s, r->energy_j / r->time_s, 1);
        fl_sweep_row *row = &to->rows[to->row_count++];
        *row = *r;
        row->time_sd_pct = g.time_sd_pct;
        row->power_sd_pct = g.power_sd_pct;
    }
    return FL_OK;
}
