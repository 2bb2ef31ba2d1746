#include "models/unsound/parts.h"

#include <gsl/gsl_statistics.h>
#include <math.h>
#include <stdlib.h>

double fl_unsound_middle(double *x, size_t n, double *spread) {
    const double m = gsl_stats_median(x, 1, n);
    for (size_t i = 0; i < n; i++)
        x[i] = fabs(x[i] - m);
    *spread = 1.4826 * gsl_stats_median(x, 1, n);
    return m;
}

void fl_unsound_close(fl_unsound_load *load) {
    fl_row_curve_close(&load->time);
    fl_row_curve_close(&load->power);
}

fl_model_status fl_unsound_open(const fl_unsound_search *s, fl_unsound_load *load) {
    fl_unsound_close(load);
    if (load->count < FL_UNSOUND_ROWS)
        return FL_MODEL_OK;
    const fl_chip_row *row = s->row + load->first;
    fl_model_status status = fl_row_curve_open(row, load->count, 0, &load->time);
    if (status == FL_MODEL_OK && fl_row_curve_open(row, load->count, 1, &load->power) == FL_MODEL_NO_MEMORY)
        status = FL_MODEL_NO_MEMORY;
    if (status == FL_MODEL_NO_FIT)
        status = FL_MODEL_OK;
    for (size_t i = 0; status == FL_MODEL_OK && i < load->count; i++)
        if (s->found->row[load->first + i].kind != FL_SOUND) {
            fl_row_curve_drop(&load->time, i);
            fl_row_curve_drop(&load->power, i);
        }
    return status;
}
