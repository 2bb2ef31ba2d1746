#include "traces/files/tables.h"

#include "traces/io/csv.h"
#include "traces/files/decisions.h"
#include "traces/files/decisions_servers.h"
#include "traces/io/writing.h"

#include <math.h>
#include <stdio.h>

static void put_row(FILE *file, const fl_decisions *r, size_t step, size_t number, size_t row) {
    size_t index = step * (r->gpu_count + 1) + row;
    const double *value = r->value + index * r->signal_count;
    const double *set = r->set + index * r->control_count;
    fl_put_int(file, (int64_t)number);
    fputc(',', file);
    fl_put_int(file, r->t_ns[step]);
    fputc(',', file);
    fl_put_device(file, (int32_t)row - 1);
    for (size_t i = 0; i < r->signal_count; i++) {
        fputc(',', file);
        fl_put_real(file, value[i]);
    }
    fputc(',', file);
    fl_put_fresh(file, (const char *const *)r->signal, value, r->fresh + index * r->signal_count, r->signal_count);
    for (size_t i = 0; i < r->control_count; i++) {
        fputc(',', file);
        if (set[i] == -1)
            fputs("default", file);
        else
            fl_put_real(file, set[i]);
    }
    fputc(',', file);
    if (row == 0 && r->delay_ns[step] >= 0)
        fl_put_int(file, r->delay_ns[step]);
    if (r->has_kernels)
        fl_put_kernel_cells(file, row ? 0 : r->lost[step]);
    if (r->servers.signal)
        fl_put_server_cells(file, r->servers.signal_count);
    fputc('\n', file);
}

static void put_servers(FILE *file, const fl_decisions *r, size_t step, size_t number) {
    const fl_logged_servers *s = &r->servers;
    const fl_server_place at = {.step = number,
                                .t_ns = r->t_ns[step],
                                .between =
                                    r->signal_count + r->control_count + 2 + (r->has_kernels ? FL_KERNEL_COLUMNS : 0),
                                .signal = (const char *const *)s->signal,
                                .signals = s->signal_count};
    for (uint32_t k = 0; k < s->count; k++) {
        const size_t row = step * s->count + k;
        fl_put_server_row(file, &at, k, s->lost[row], s->value + row * s->signal_count,
                          s->fresh + row * s->signal_count);
    }
    for (size_t i = step ? s->batches_until[step - 1] : 0; i < s->batches_until[step]; i++)
        fl_put_batch_row(file, &at, &s->batch[i]);
}

static void put_kernels(FILE *file, const fl_decisions *r, size_t step, size_t number, size_t kinds) {
    const fl_step_place at = {number, r->signal_count + r->control_count + 2,
                              r->servers.signal ? fl_server_column_count(r->servers.signal_count) : 0, r->t_ns[step]};
    for (size_t i = kinds; i < r->kinds_until[step]; i++)
        fl_put_kind_row(file, &at, i, &r->kind[i]);
    for (size_t i = step ? r->kernels_until[step - 1] : 0; i < r->kernels_until[step]; i++)
        fl_put_kernel_row(file, &at, &r->kernel[i]);
}

void fl_decisions_put_names(FILE *file, const fl_decisions *r) {
    fputs("step,t_ns,device", file);
    for (size_t i = 0; i < r->signal_count; i++) {
        fputc(',', file);
        fl_csv_put(file, r->signal[i]);
    }
    fputs(",fresh", file);
    for (size_t i = 0; i < r->control_count; i++)
        fprintf(file, ",set_%s", r->control[i]);
    fputs(",delay_ns", file);
    if (r->has_kernels)
        fl_put_kernel_names(file);
    if (r->servers.signal)
        fl_put_server_names(file, (const char *const *)r->servers.signal, r->servers.signal_count);
    fputc('\n', file);
}

void fl_decisions_put_step(FILE *file, const fl_decisions *r, size_t step, size_t number, size_t kinds) {
    for (size_t row = 0; row <= r->gpu_count; row++) {
        put_row(file, r, step, number, row);
        if (row == 0 && r->has_kernels)
            put_kernels(file, r, step, number, kinds);
        if (row == 0 && r->servers.signal)
            put_servers(file, r, step, number);
    }
}

/* What the reader would refuse must not get into a file. */
static fl_status check_writable(const char *path, const fl_decisions *r, fl_diag *d) {
    size_t rows = r->step_count * (r->gpu_count + 1);
    for (size_t i = 0; i < rows * r->control_count; i++)
        if (!isnan(r->set[i]) && r->set[i] != -1 && !(r->set[i] >= 0 && r->set[i] < HUGE_VAL))
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                           "step %zu sets %s to %g, expected a number of at least 0 or default",
                           i / r->control_count / (r->gpu_count + 1), r->control[i % r->control_count], r->set[i]);
    for (size_t i = 0; i < rows * r->signal_count; i++)
        if (isinf(r->value[i]))
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "step %zu has an infinite %s, expected a number",
                           i / r->signal_count / (r->gpu_count + 1), r->signal[i % r->signal_count]);
    return FL_OK;
}

fl_status fl_decisions_write(const char *path, const fl_decisions *r, fl_diag *d) {
    fl_status status = check_writable(path, r, d);
    if (status)
        return status;
    fl_output *o;
    status = fl_output_begin(path, "foldline-decisions", &r->head, &o, d);
    if (status)
        return status;
    FILE *file = fl_output_file(o);
    fl_decisions_put_names(file, r);
    for (size_t step = 0; step < r->step_count; step++)
        fl_decisions_put_step(file, r, step, step, step && r->has_kernels ? r->kinds_until[step - 1] : 0);
    return fl_output_commit(o, d);
}
