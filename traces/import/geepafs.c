/* The log of the GEEPAFS daemon as telemetry; its decisions are read by fl_geepafs_read (foldline verify). */
#include "traces/import/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The log of the GEEPAFS daemon (EuroSys '24): what it read and set in each of its loops. */

enum {
    UTIL_GPU,
    UTIL_MEM,
    POWER,
    SM_MHZ,
    LOOP,
    SIGNALS,
    PER_GPU = 5,     /* numbers of one GPU in a row */
    HEAD_MAX = 64,   /* lines before the rows; the daemon writes five */
    CLOSING_MAX = 2, /* lines after the rows */
};

static const char *const SIGNAL[SIGNALS] = {"util_gpu_pct", "util_mem_pct", "power_w", "sm_mhz", "loop_ns"};
static const char START[] = "Main loop start..", POLICY[] = "Apply policy: ", MACHINE[] = "MACHINE ";

#define PERIOD_NS INT64_C(200000000) /* the daemon's loop period; a loop that takes longer starts the next one late */

typedef struct loader {
    fl_decisions r;
    fl_decisions_room room;
    bool begun; /* the head is over */
    size_t width;
    int64_t last_us; /* duration of the previous row */
    int closing;     /* lines after the rows so far */
} loader;

/* Keeps what stands behind the first `skip` bytes of the line as a head entry. */
static fl_status keep_head(loader *l, const fl_csv_row *row, const char *key, size_t skip, fl_diag *d) {
    const char *text = row->field[0].text + skip, *end = row->field[0].text + row->field[0].size;
    while (text < end && *text == ' ')
        text++;
    while (end > text && end[-1] == ' ')
        end--;
    for (size_t n, at = 0; text + at < end; at += n)
        if ((n = fl_utf8(text + at, (size_t)(end - text) - at)) == 0)
            return FL_FIELD_FAIL(d, row, 0, "control character in the name of the %s, expected text", key);
    char *value = strndup(text, (size_t)(end - text));
    bool good = value && fl_head_set(&l->r.head, key, value);
    free(value);
    return good ? FL_OK : fl_no_memory(d, row->file);
}

static fl_status read_head(loader *l, const fl_csv_row *row, fl_diag *d) {
    const char *text = row->field[0].text;
    if (row->line == 1) {
        if (strncmp(text, POLICY, sizeof POLICY - 1) != 0)
            return FL_FIELD_FAIL(d, row, 0, "the log begins with '%.60s', expected 'Apply policy: ' and its name",
                                 text);
        return keep_head(l, row, "policy", sizeof POLICY - 1, d);
    }
    if (strncmp(text, MACHINE, sizeof MACHINE - 1) == 0)
        return keep_head(l, row, "machine", sizeof MACHINE - 1, d);
    l->begun = strcmp(text, START) == 0;
    if (!l->begun && (row->count >= 2 + PER_GPU || row->line >= HEAD_MAX))
        return FL_FIELD_FAIL(d, row, 0, "the head has no end, expected the line '%s' before the rows", START);
    return FL_OK;
}

/* The first row tells the number of GPUs; then the columns can be named. */
static fl_status begin_rows(loader *l, const fl_csv_row *row, fl_diag *d) {
    if (row->count < 2 + PER_GPU || (row->count - 2) % PER_GPU)
        return FL_FIELD_FAIL(d, row, row->count - 1,
                             "row has %zu field%s, expected a time, five numbers for each GPU and a duration",
                             row->count, row->count == 1 ? "" : "s");
    fl_decisions *r = &l->r;
    l->width = row->count;
    r->gpu_count = (uint32_t)((row->count - 2) / PER_GPU);
    r->signal = calloc(SIGNALS, sizeof *r->signal);
    r->control = calloc(1, sizeof *r->control);
    if (!r->signal || !r->control)
        return fl_no_memory(d, row->file);
    for (; r->signal_count < SIGNALS; r->signal_count++)
        if (!(r->signal[r->signal_count] = strdup(SIGNAL[r->signal_count])))
            return fl_no_memory(d, row->file);
    if (!(r->control[0] = strdup("sm_mhz")))
        return fl_no_memory(d, row->file);
    r->control_count = 1;
    char gpus[16];
    snprintf(gpus, sizeof gpus, "%u", (unsigned)r->gpu_count);
    return fl_head_set(&r->head, "gpus", gpus) && fl_head_set(&r->head, "source", "GEEPAFS log")
               ? FL_OK
               : fl_no_memory(d, row->file);
}

/* Y-M-D h:m:s without leading zeros. It has whole seconds only, so that it is checked but not used. */
static fl_status check_time(const fl_csv_row *row, fl_diag *d) {
    static const struct {
        int min, max;
        char after;
    } PART[] = {{1970, 9999, '-'}, {1, 12, '-'}, {1, 31, ' '}, {0, 23, ':'}, {0, 59, ':'}, {0, 60, '\0'}};
    const char *t = row->field[0].text;
    bool good = true;
    for (size_t i = 0; good && i < sizeof PART / sizeof *PART; i++) {
        int n = 0, digits = 0;
        for (; *t >= '0' && *t <= '9' && digits < 5; t++, digits++)
            n = n * 10 + (*t - '0');
        good = digits && n >= PART[i].min && n <= PART[i].max && *t == PART[i].after;
        t += PART[i].after != '\0';
    }
    if (good)
        return FL_OK;
    return FL_FIELD_FAIL(d, row, 0, "'%.40s' is no time, expected one such as 2023-9-22 10:21:0", row->field[0].text);
}

/* Fills one GPU's row of the step from the five numbers at field `at`. */
static fl_status read_gpu(const fl_csv_row *row, size_t at, double *value, bool *fresh, double *set, fl_diag *d) {
    int64_t n[PER_GPU] = {0};
    fl_status status = fl_field_int(row, at, "GPU utilisation (%)", 0, 100, &n[0], d);
    if (!status)
        status = fl_field_int(row, at + 1, "memory utilisation (%)", 0, 100, &n[1], d);
    if (!status)
        status = fl_field_int(row, at + 2, "power (mW)", 0, 10000000, &n[2], d);
    if (!status)
        status = fl_field_int(row, at + 3, "SM clock (MHz)", 0, 100000, &n[3], d);
    if (!status)
        status = fl_field_int(row, at + 4, "set clock (MHz, -1 for none)", -1, 100000, &n[4], d);
    if (!status && n[4] == 0)
        status = FL_FIELD_FAIL(d, row, at + 4, "set clock is 0, expected MHz or -1 for none");
    value[UTIL_GPU] = (double)n[0];
    value[UTIL_MEM] = (double)n[1];
    value[POWER] = (double)n[2] / 1000; /* mW to W */
    value[SM_MHZ] = (double)n[3];
    value[LOOP] = NAN;
    for (size_t i = 0; i < SIGNALS; i++)
        fresh[i] = i != LOOP;
    *set = n[4] < 0 ? NAN : (double)n[4];
    return status;
}

static fl_status read_step(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_decisions *r = &l->r;
    fl_status status = fl_columns_width(row, l->width, d);
    if (!status)
        status = check_time(row, d);
    if (status)
        return status;
    size_t now = r->step_count, first = now * (r->gpu_count + 1);
    if (fl_decisions_grow(r, &l->room, now + 1, r->gpu_count))
        return fl_no_memory(d, row->file);
    for (size_t i = 0; i < SIGNALS; i++) {
        r->value[first * SIGNALS + i] = NAN;
        r->fresh[first * SIGNALS + i] = false;
    }
    r->set[first] = NAN;
    if (now) {
        r->value[first * SIGNALS + LOOP] = (double)l->last_us * 1000;
        r->fresh[first * SIGNALS + LOOP] = true;
    }
    for (size_t g = 0; g < r->gpu_count && !status; g++) {
        size_t at = first + 1 + g;
        status = read_gpu(row, 1 + g * PER_GPU, r->value + at * SIGNALS, r->fresh + at * SIGNALS, r->set + at, d);
    }
    int64_t us = 0;
    if (!status)
        status = fl_field_int(row, l->width - 1, "loop duration (us)", 0, INT64_C(3600000000), &us, d);
    if (status)
        return status;
    int64_t step_ns = now && l->last_us * 1000 > PERIOD_NS ? l->last_us * 1000 : PERIOD_NS;
    r->t_ns[now] = now ? r->t_ns[now - 1] + step_ns : 0;
    r->delay_ns[now] = -1;
    r->line[now] = row->line;
    l->last_us = us;
    r->step_count++;
    return FL_OK;
}

/* A daemon that Ctrl-C ended says so, and of which devices it reset the clocks: one line of text or two after the last
 * row. A row begins with a date, so with a digit. */
static bool closes(const loader *l, const fl_csv_row *row) {
    const char first = row->field[0].size ? row->field[0].text[0] : '\0';
    return l->width && l->closing < CLOSING_MAX && ((first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z'));
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->begun)
        return read_head(l, row, d);
    if (closes(l, row)) {
        l->closing++;
        return FL_OK;
    }
    if (l->closing)
        return FL_FIELD_FAIL(d, row, 0, "'%.40s' after the lines with which the daemon ended, expected the end",
                             row->field[0].text);
    fl_diag own = {.status = FL_OK};
    fl_status status = l->width ? FL_OK : begin_rows(l, row, &own);
    if (!status)
        status = read_step(l, row, &own);
    /* The daemon is stopped by a signal, often in the middle of a line. */
    if (status == FL_BAD_INPUT && row->torn && (!l->width || row->count <= l->width)) {
        l->r.torn_line = row->line;
        return FL_OK; /* and nothing is said in *d */
    }
    if (status && d)
        *d = own;
    return status;
}

fl_status fl_geepafs_read(const char *path, fl_decisions *r, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    loader l = {0};
    fl_status status = fl_csv_read(path, &OPTIONS, NULL, on_row, &l, d);
    if (!status && l.r.step_count == 0)
        status = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no whole row, expected at least one after '%s'", START);
    if (status)
        fl_decisions_free(&l.r);
    *r = l.r;
    return status;
}

/* ---- the log as decisions ---- */

static bool detect(const char *path, const char *head, size_t size) {
    static const char FIRST[] = "Apply policy: ";
    (void)path;
    if (size >= 3 && !memcmp(head, "\xef\xbb\xbf", 3)) {
        head += 3;
        size -= 3;
    }
    return size >= sizeof FIRST - 1 && !memcmp(head, FIRST, sizeof FIRST - 1);
}

static fl_status copy_rows(const fl_decisions *r, const char *path, int32_t only, fl_readings *to, fl_diag *d) {
    const fl_field none = {"", 0, 1};
    fl_status status = FL_OK;
    for (size_t i = 0, column; i < r->signal_count && !status; i++)
        status = fl_readings_signal(to, r->signal[i], &column, d);
    for (size_t step = 0; step < r->step_count && !status; step++)
        for (size_t g = 0; g <= r->gpu_count && !status; g++) {
            const fl_csv_row row = {path, r->line[step], &none, 1, false};
            const int32_t device = (int32_t)g - 1;
            if (only >= 0 && device >= 0 && device != only)
                continue;
            double *value = fl_telemetry_row(&to->rows);
            if (!value)
                return fl_no_memory(d, path);
            memcpy(value, r->value + (step * (r->gpu_count + 1) + g) * r->signal_count,
                   r->signal_count * sizeof *value);
            status =
                fl_left_row(&to->left, fl_telemetry_take(&to->rows, &row, r->t_ns[step], device, &to->left.own), d);
        }
    return status;
}

static fl_status add_notes(const fl_decisions *r, fl_imported *out, fl_diag *d) {
    fl_status status = fl_import_note(out, d,
                                      "time of day has whole seconds only: times come from the durations of the "
                                      "daemon's loops and begin at 0");
    if (!status)
        status =
            fl_import_note(out, d, "clocks that were set are left out (foldline verify --format geepafs reads them)");
    if (!status && r->torn_line)
        status = fl_import_note(out, d, "line %lld, the last, is cut off: left out", (long long)r->torn_line);
    return status ? status : fl_import_note(out, d, "no kernels: readings only");
}

static fl_status read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    fl_decisions r = {0};
    fl_readings to;
    fl_readings_begin(&to, out);
    fl_status status = fl_geepafs_read(path, &r, d);
    if (!status)
        status = copy_rows(&r, path, o->device, &to, d);
    if (!status)
        status = fl_readings_end(&to, path, d);
    if (!status)
        status = add_notes(&r, out, d);
    fl_readings_free(&to);
    fl_decisions_free(&r);
    return status;
}

const fl_reader fl_reader_geepafs = {"geepafs",
                                     "log of the GEEPAFS daemon",
                                     "GEEPAFS of 2024",
                                     FL_GIVES_READINGS | FL_GIVES_TIMES | FL_GIVES_CLOCKS | FL_GIVES_POWER |
                                         FL_GIVES_USE,
                                     detect,
                                     read};
