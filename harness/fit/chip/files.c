/* What `fit workload` writes: the predicted rows, and the sweep completed by them. */
#include "harness/fit/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/chip/chip.h"
#include "models/chip/chip.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *fl_fit_range_text(const fl_chip *chip, const fl_fit_rows *r, char *buf, size_t size) {
    char low[48], high[48];
    const int used = snprintf(buf, size, "SM %s to %s MHz", fl_fit_clock_text(r, chip->sm_min, low, sizeof low),
                              fl_fit_clock_text(r, chip->sm_ref, high, sizeof high));
    if (r->mem_known)
        (void)snprintf(buf + used, size - (size_t)used, ", memory %g to %g MHz", chip->mem_min, chip->mem_ref);
    return buf;
}

typedef struct written { /* one row of the file */
    const fl_fit_entity *e;
    double sm_mhz, mem_mhz, limit_w, time_s, power_w; /* limit_w: NAN = no limit binds */
    fl_chip_guess guess;
    bool fitted, beyond;
} written;

/* limits: whether the file has a column for them. */
static void write_row(FILE *f, bool mem_known, bool limits, const written *w) {
    const double value[] = {w->time_s,  w->guess.time_s,  w->guess.time_sd_pct,
                            w->power_w, w->guess.power_w, w->guess.power_sd_pct};
    char text[32];
    fl_csv_put(f, w->e->workload);
    fputc(',', f);
    fl_csv_put(f, w->e->kernel);
    if (limits)
        fprintf(f, ",%s", isnan(w->limit_w) ? "" : fl_cell_text(w->limit_w, text));
    fprintf(f, ",%s", isnan(w->sm_mhz) ? "" : fl_cell_text(w->sm_mhz, text));
    fprintf(f, ",%s,%d", mem_known ? fl_cell_text(w->mem_mhz, text) : "", w->fitted);
    for (size_t c = 0; c < 6; c++)
        fprintf(f, ",%s", isnan(value[c]) ? "" : fl_cell_text(value[c], text));
    fprintf(f, ",%d\n", w->beyond);
}

fl_status fl_fit_write_rows(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result,
                            const fl_fit_capped_result *capped, const char *path, fl_diag *d) {
    fl_output *out = fl_output_open(path, d);
    if (!out)
        return d ? d->status : FL_IO;
    FILE *f = fl_output_file(out);
    bool limits = false;
    for (size_t i = 0; i < r->entities; i++)
        limits |= capped[i].count > 0;
    fprintf(f,
            "workload,kernel%s,sm_mhz,mem_mhz,fitted,time_s,predicted_time_s,time_sd_pct,power_w,predicted_power_w,"
            "power_sd_pct,beyond_calibration\n",
            limits ? ",power_cap_w" : "");
    for (size_t i = 0; i < r->entities; i++) {
        const fl_fit_entity *e = &r->entity[i];
        for (size_t k = 0; result[i].guess && k < e->count; k++) {
            const fl_chip_row *row = &r->row[e->first + k];
            const fl_chip_guess *g = &result[i].guess[k];
            write_row(f, r->mem_known, limits,
                      &(written){e, fl_fit_asked_mhz(r, row->sm_mhz), row->mem_mhz, NAN, row->time_s, row->power_w, *g,
                                 isnan(g->time_sd_pct) && !isnan(g->time_s), fl_fit_is_beyond(chip, row)});
        }
        for (size_t k = 0; k < capped[i].count; k++) {
            const fl_fit_capped *row = &r->capped[capped[i].first + k];
            const fl_fit_capped_row *p = &capped[i].row[k];
            write_row(f, r->mem_known, limits,
                      &(written){e, fl_fit_asked_mhz(r, row->sm_mhz), row->mem_mhz, row->limit_w, row->time_s,
                                 row->power_w, p->guess, p->looked, p->beyond});
        }
    }
    return fl_output_commit(out, d);
}

/* The mean error of the predicted rows, from their stated deviations: compare --model-error shifts them by it. */
static void write_head(FILE *f, const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result,
                       size_t extrapolated) {
    char range[128];
    double time_sd = 0, power_sd = 0, n = 0;
    for (size_t i = 0; i < r->entities; i++)
        for (size_t k = 0; result[i].guess && k < r->entity[i].count; k++) {
            const fl_chip_guess *g = &result[i].guess[k];
            if (isnan(g->time_sd_pct) || isnan(g->power_sd_pct))
                continue;
            time_sd += g->time_sd_pct;
            power_sd += g->power_sd_pct;
            n++;
        }
    fputs("# foldline-sweep 1\n", f);
    if (n > 0) /* the mean absolute value of a normal deviate is sqrt(2/pi) of its deviation */
        fprintf(f, "# model_time_mape_pct: %.3g\n# model_power_mape_pct: %.3g\n", sqrt(M_2_PI) * time_sd / n,
                sqrt(M_2_PI) * power_sd / n);
    if (extrapolated)
        fprintf(f, "# beyond_calibration: %zu rows, outside %s\n", extrapolated,
                fl_fit_range_text(chip, r, range, sizeof range));
}

/* The end of the rows that have the setting of row k. */
static size_t setting_end(const fl_fit_rows *r, const fl_fit_entity *e, size_t k) {
    const fl_chip_row *row = &r->row[e->first];
    size_t end = k + 1;
    while (end < e->count && fabs(row[end].sm_mhz - row[k].sm_mhz) < 1e-9 &&
           fabs(row[end].mem_mhz - row[k].mem_mhz) < 1e-9)
        end++;
    return end;
}

/* The estimate for a setting: the mean of its rows that the prediction used, else its prediction. */
static fl_chip_guess known_of(const fl_chip_guess *guess, size_t count) {
    fl_chip_guess sum = {0, 0, NAN, NAN};
    double n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isnan(guess[i].time_sd_pct) || isnan(guess[i].time_s))
            continue;
        sum.time_s += guess[i].time_s;
        sum.power_w += guess[i].power_w;
        n++;
    }
    return n > 0 ? (fl_chip_guess){sum.time_s / n, sum.power_w / n, NAN, NAN} : guess[0];
}

fl_status fl_fit_check_twice(const fl_fit_rows *r, const fl_fit_result_of *result, fl_diag *d) {
    char name[256];
    for (size_t i = 0; i < r->entities; i++)
        for (size_t k = 0; result[i].guess && k < i; k++)
            if (result[k].guess && !strcmp(r->entity[i].workload, r->entity[k].workload) &&
                !strcmp(r->entity[i].kernel, r->entity[k].kernel))
                return fl_refuse(d, "%s is in %s and in %s, expected a workload of a sweep in one file",
                                 fl_fit_entity_name(&r->entity[i], name, sizeof name), r->file[r->entity[k].file],
                                 r->file[r->entity[i].file]);
    return FL_OK;
}

/* The completed sweep: measured values where the prediction used them, predictions with their standard deviations
 * elsewhere. */
fl_status fl_fit_write_sweep(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result,
                             size_t extrapolated, const char *path, fl_diag *d) {
    fl_output *out = fl_output_open(path, d);
    if (!out)
        return d ? d->status : FL_IO;
    FILE *f = fl_output_file(out);
    write_head(f, chip, r, result, extrapolated);
    fputs("workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j,time_sd_pct,power_sd_pct\n", f);
    for (size_t i = 0; i < r->entities; i++)
        for (size_t k = 0, end = 0; result[i].guess && k < r->entity[i].count; k = end) {
            end = setting_end(r, &r->entity[i], k);
            const fl_chip_row *row = &r->row[r->entity[i].first + k];
            const fl_chip_guess g = known_of(&result[i].guess[k], end - k);
            char text[32];
            if (isnan(g.power_w))
                continue;
            fl_csv_put(f, r->entity[i].workload);
            fputc(',', f);
            fl_csv_put(f, r->entity[i].kernel);
            fprintf(f, ",%s", fl_cell_text(fl_fit_asked_mhz(r, row->sm_mhz), text));
            fprintf(f, ",%s", r->mem_known ? fl_cell_text(row->mem_mhz, text) : "");
            fprintf(f, ",,%s", fl_cell_text(g.time_s, text));
            fprintf(f, ",%s", fl_cell_text(g.power_w, text));
            fprintf(f, ",%s", fl_cell_text(g.time_s * g.power_w, text));
            fprintf(f, ",%s", isnan(g.time_sd_pct) ? "" : fl_cell_text(g.time_sd_pct, text));
            fprintf(f, ",%s\n", isnan(g.power_sd_pct) ? "" : fl_cell_text(g.power_sd_pct, text));
        }
    return fl_output_commit(out, d);
}
