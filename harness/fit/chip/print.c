/* What `fit device` prints of each constant. */
#include "harness/fit/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/chip/chip.h"
#include "models/chip/chip.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool fl_fit_knows_a(const fl_chip *chip) {
    const uint32_t top = chip->knots ? chip->knots - 1 : 0;
    return chip->power_left > 0 && 2 * chip->volt_sd[top] <= FL_FIT_UNKNOWN * chip->volt[top];
}

bool fl_fit_knows_b(const fl_chip *chip) { return chip->power_left > 0; }

char *fl_fit_error_text(double pct, char *buf) {
    if (isnan(pct))
        strcpy(buf, "n/a");
    else
        snprintf(buf, 32, "%.3g", pct);
    return buf;
}

static void add_error(fl_grid *g, const char *name, double value, double plain) {
    char text[32];
    fl_grid_add(g, "%s", name);
    fl_grid_add(g, "%s", fl_fit_error_text(value, text));
    fl_grid_add(g, "-");
    fl_grid_add(g, "%s", fl_fit_error_text(plain, text));
    fl_grid_add(g, "%s", isnan(value) ? "as many numbers to fit as rows" : "");
}

static void add_load(fl_grid *g, const char *name, double value, double plain, bool known) {
    fl_grid_add(g, "%s\t%.4g\t-", name, value);
    if (isnan(plain))
        fl_grid_add(g, "-");
    else
        fl_grid_add(g, "%.4g", plain);
    fl_grid_add(g, "%s", known ? "" : "not identifiable");
}

static void add_row(fl_grid *g, const char *name, double value, double sd, double plain) {
    fl_grid_add(g, "%s\t%.4g", name, value);
    if (isfinite(sd))
        fl_grid_add(g, "%.2g", sd);
    else
        fl_grid_add(g, "-");
    if (isnan(plain))
        fl_grid_add(g, "-");
    else
        fl_grid_add(g, "%.4g", plain);
    fl_grid_add(g, "%s", !isnan(sd) && !(sd <= FL_FIT_UNKNOWN * value) ? "not identifiable" : "");
}

/* A share between 0 and 1, for which 0 is a plausible value. */
static void add_share(fl_grid *g, const char *name, double value, double sd) {
    fl_grid_add(g, "%s\t%.2f", name, value);
    if (isfinite(sd))
        fl_grid_add(g, "%.2f", sd);
    else
        fl_grid_add(g, "-");
    fl_grid_add(g, "1\t%s", isfinite(sd) && sd < 0.25 ? "" : "not identifiable");
}

static void add_a0(fl_grid *g, const fl_chip *c, const fl_chip *p) {
    fl_grid_add(g, "A0, W per V^2 GHz\t%.4g\t-", c->a0_w);
    if (p->has_power)
        fl_grid_add(g, "%.4g", p->a0_w);
    else
        fl_grid_add(g, "-");
    if (isfinite(p->slope_sd))
        fl_grid_add(g, "0 to %.3g: least slope %.3g +- %.2g", fmax(0, p->slope_w + 2 * p->slope_sd), p->slope_w,
                    p->slope_sd);
    else
        fl_grid_add(g, "not identifiable");
}

/* The calibration's law and the reason for it. */
static void print_law(const fl_chip *c) {
    printf("\nlaw of the calibration: %s", c->law == FL_CHIP_PLAIN ? "plain" : "full");
    if (isnan(c->time_law_pct[0]))
        printf(" (too few workloads to compare it with the other)\n");
    else
        printf(
            "; errors on workloads left out of the fit, full and plain: time %.2f and %.2f, power %.2f and %.2f %%\n",
            c->time_law_pct[FL_CHIP_FULL], c->time_law_pct[FL_CHIP_PLAIN], c->power_law_pct[FL_CHIP_FULL],
            c->power_law_pct[FL_CHIP_PLAIN]);
}

void fl_fit_device_print(const fl_chip *full, const fl_chip *plain, const fl_fit_rows *rows, const char *files,
                         const fl_idle_log *idle) {
    const fl_chip *c = full, *p = plain;
    static const char *const head[] = {"value", "calibration", "+-", "simulator's law", ""};
    fl_grid g = FL_GRID_HEADED(head);
    char name[64];
    add_row(&g, "sharpness p", c->sharpness, c->sharpness_sd, p->sharpness);
    if (c->link_mhz > 0) {
        add_row(&g, "link: below MHz", c->link_mhz, c->link_sd, NAN);
        add_row(&g, "link: slope", c->link_slope, NAN, NAN);
    }
    if (c->has_power) {
        for (uint32_t i = 0; i < c->knots; i++) {
            (void)snprintf(name, sizeof name, "V at %g MHz", c->knot_mhz[i]);
            add_row(&g, name, fl_chip_volt(c, c->knot_mhz[i], c->mem_ref), c->volt_sd[i],
                    p->has_power ? p->volt[i] : (double)NAN);
        }
        for (uint32_t i = 0; i < c->mems && c->mems > 1; i++) {
            (void)snprintf(name, sizeof name, "V at least, at memory %g MHz", c->mem_mhz[i]);
            add_row(&g, name, fl_chip_volt(c, c->sm_min, c->mem_mhz[i]), NAN, NAN);
        }
        for (uint32_t i = 0; i < c->mems; i++) {
            if (rows->mem_known)
                (void)snprintf(name, sizeof name, "B0 at %g MHz, W", c->mem_mhz[i]);
            else
                (void)snprintf(name, sizeof name, "B0, W");
            add_row(&g, name, c->b0_w[i], c->b0_sd[i], p->has_power ? p->b0_w[i] : (double)NAN);
        }
        add_load(&g, "A, W per V^2 GHz", c->a_w, p->a_w, fl_fit_knows_a(c));
        add_a0(&g, c, p);
        add_load(&g, "B, W", c->b_w, p->b_w, fl_fit_knows_b(c));
        add_row(&g, "C, W per V", c->c_w, c->c_sd, p->c_w);
        add_share(&g, "stalled SMs draw", c->stall, c->stall_sd);
        add_share(&g, "stalled memory draws", c->stall_memory, c->stall_memory_sd);
    }
    add_error(&g, "error of time, %", c->time_rms_pct, p->time_rms_pct);
    if (c->has_power)
        add_error(&g, "error of power, %", c->power_rms_pct, p->power_rms_pct);
    fl_grid_print(&g, 1, stdout);
    print_law(c);
    printf("\n"
           "%s: %u workloads, %zu rows; %zu times and %zu powers are outliers and hardly count\n",
           files, c->workloads, c->rows, c->time_outliers, c->power_outliers);
    fl_fit_rows_notes(rows);
    fl_fit_sound_notes(rows);
    if (c->has_power && fl_voltage_floor_mhz(p->knot_mhz, p->volt, p->knots, 0.02) < p->knot_mhz[p->knots > 1])
        printf("note: V has no floor within these clocks, so V and A cannot be identified separately\n");
    if (idle->clocks)
        printf(
            "A0 in the device file: %.4g +- %.2g W per V^2 GHz, from GPU %d idling at %zu clocks, %g to %g MHz, within "
            "%.2g W\n",
            idle->idle.a0_w, idle->a0_sd, idle->device, idle->clocks, idle->low_mhz, idle->high_mhz,
            idle->idle.worst_w);
}
