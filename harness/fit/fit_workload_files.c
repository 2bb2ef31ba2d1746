#include "harness/fit/fit_workload_files.h"

#include "harness/base/grid.h"
#include "traces/writing.h"

#include <math.h>
#include <stdio.h>

const char *fl_fit_range_text(const fl_chip *chip, bool mem_known, char *buf, size_t size) {
    const int used = snprintf(buf, size, "SM %g to %g MHz", chip->sm_min, chip->sm_ref);
    if (mem_known)
        (void)snprintf(buf + used, size - (size_t)used, ", memory %g to %g MHz", chip->mem_min, chip->mem_ref);
    return buf;
}

fl_status fl_fit_write_rows(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result, const char *path,
                            fl_diag *d) {
    fl_output *out = fl_output_open(path, d);
    if (!out)
        return d ? d->status : FL_IO;
    FILE *f = fl_output_file(out);
    fputs("workload,kernel,sm_mhz,mem_mhz,fitted,time_s,predicted_time_s,time_sd_pct,power_w,predicted_power_w,"
          "power_sd_pct,beyond_calibration\n",
          f);
    for (size_t i = 0; i < r->entities; i++)
        for (size_t k = 0; result[i].guess && k < r->entity[i].count; k++) {
            const fl_chip_row *row = &r->row[r->entity[i].first + k];
            const fl_chip_guess *g = &result[i].guess[k];
            const bool fitted = isnan(g->time_sd_pct) && !isnan(g->time_s);
            const double value[] = {row->time_s, g->time_s, g->time_sd_pct, row->power_w, g->power_w, g->power_sd_pct};
            char text[32];
            fl_csv_put(f, r->entity[i].workload);
            fputc(',', f);
            fl_csv_put(f, r->entity[i].kernel);
            fprintf(f, ",%s", fl_cell_text(row->sm_mhz, text));
            fprintf(f, ",%s,%d", r->mem_known ? fl_cell_text(row->mem_mhz, text) : "", fitted);
            for (size_t c = 0; c < 6; c++)
                fprintf(f, ",%s", isnan(value[c]) ? "" : fl_cell_text(value[c], text));
            fprintf(f, ",%d\n", fl_fit_is_beyond(chip, row));
        }
    return fl_output_commit(out, d);
}

/* How far off the predicted rows are on average, as they are stated: what compare --model-error moves them by. */
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
    if (n > 0) /* a normal deviate's mean absolute value is sqrt(2/pi) of its deviation */
        fprintf(f, "# model_time_mape_pct: %.3g\n# model_power_mape_pct: %.3g\n", sqrt(M_2_PI) * time_sd / n,
                sqrt(M_2_PI) * power_sd / n);
    if (extrapolated)
        fprintf(f, "# beyond_calibration: %zu rows, outside %s\n", extrapolated,
                fl_fit_range_text(chip, r->mem_known, range, sizeof range));
}

/* The sweep as it is known now: measured where it was looked at, predicted elsewhere, with the standard deviations. */
fl_status fl_fit_write_sweep(const fl_chip *chip, const fl_fit_rows *r, const fl_fit_result_of *result,
                             size_t extrapolated, const char *path, fl_diag *d) {
    fl_output *out = fl_output_open(path, d);
    if (!out)
        return d ? d->status : FL_IO;
    FILE *f = fl_output_file(out);
    write_head(f, chip, r, result, extrapolated);
    fputs("workload,kernel,sm_mhz,mem_mhz,power_cap_w,time_s,power_w,energy_j,time_sd_pct,power_sd_pct\n", f);
    for (size_t i = 0; i < r->entities; i++)
        for (size_t k = 0; result[i].guess && k < r->entity[i].count; k++) {
            const fl_chip_row *row = &r->row[r->entity[i].first + k];
            const fl_chip_guess *g = &result[i].guess[k];
            char text[32];
            if (isnan(g->power_w))
                continue;
            fl_csv_put(f, r->entity[i].workload);
            fputc(',', f);
            fl_csv_put(f, r->entity[i].kernel);
            fprintf(f, ",%s", fl_cell_text(row->sm_mhz, text));
            fprintf(f, ",%s", r->mem_known ? fl_cell_text(row->mem_mhz, text) : "");
            fprintf(f, ",,%s", fl_cell_text(g->time_s, text));
            fprintf(f, ",%s", fl_cell_text(g->power_w, text));
            fprintf(f, ",%s", fl_cell_text(g->time_s * g->power_w, text));
            fprintf(f, ",%s", isnan(g->time_sd_pct) ? "" : fl_cell_text(g->time_sd_pct, text));
            fprintf(f, ",%s\n", isnan(g->power_sd_pct) ? "" : fl_cell_text(g->power_sd_pct, text));
        }
    return fl_output_commit(out, d);
}
