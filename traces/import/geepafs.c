/* The log of the GEEPAFS daemon as telemetry; its decisions are read by fl_geepafs_read (foldline replay). */
#include "traces/import/import.h"

#include "traces/import/readings.h"
#include "traces/files/tables.h"

#include <stdio.h>
#include <string.h>

static bool detect(const char *path, const char *head, size_t size) {
    static const char FIRST[] = "Apply policy: ";
    (void)path;
    if (size >= 3 && !memcmp(head, "\xef\xbb\xbf", 3)) {
        head += 3;
        size -= 3;
    }
    return size >= sizeof FIRST - 1 && !memcmp(head, FIRST, sizeof FIRST - 1);
}

static fl_status copy_rows(const fl_decisions *r, int32_t only, fl_readings *to, fl_diag *d) {
    fl_status status = FL_OK;
    for (size_t i = 0, column; i < r->signal_count && !status; i++)
        status = fl_readings_signal(to, r->signal[i], &column, d);
    for (size_t step = 0; step < r->step_count && !status; step++)
        for (size_t g = 0; g <= r->gpu_count && !status; g++) {
            int32_t device = (int32_t)g - 1;
            double *value = NULL;
            if (only >= 0 && device >= 0 && device != only)
                continue;
            status = fl_readings_row(to, r->t_ns[step], device, &value, d);
            if (!status)
                memcpy(value, r->value + (step * (r->gpu_count + 1) + g) * r->signal_count,
                       r->signal_count * sizeof *value);
        }
    return status;
}

static fl_status add_notes(const fl_decisions *r, fl_imported *out, fl_diag *d) {
    fl_status status = fl_import_note(out, d,
                                      "time of day has whole seconds only: times come from the durations of the "
                                      "daemon's loops and begin at 0");
    if (!status)
        status =
            fl_import_note(out, d, "clocks that were set are left out (foldline replay --format geepafs reads them)");
    if (!status && r->torn_line)
        status = fl_import_note(out, d, "line %lld, the last, is cut off: left out", (long long)r->torn_line);
    return status ? status : fl_import_note(out, d, "no kernels: readings only");
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    fl_decisions r = {0};
    fl_readings to = {.out = out};
    fl_status status = fl_geepafs_read(path, &r, d);
    if (!status)
        status = copy_rows(&r, o->device, &to, d);
    if (!status)
        status = fl_readings_end(&to, path, d);
    if (!status)
        status = add_notes(&r, out, d);
    fl_readings_free(&to);
    fl_decisions_free(&r);
    return status;
}

const fl_reader fl_reader_geepafs = {"geepafs", "log of the GEEPAFS daemon", detect, read};
