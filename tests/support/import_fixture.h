/* Foreign text through its reader: fl_take(...) imports a text, notes and refusals are looked for, and truncation at
 * every byte must give an error or whole rows. */
#pragma once

#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>

typedef struct fl_taken {
    fl_status status;
    fl_diag d;
    fl_imported in;
} fl_taken;

static inline fl_taken fl_take_bytes(const char *format, const char *bytes, size_t size, const fl_import_options *o) {
    static const fl_import_options every = {.device = -1};
    fl_taken t = {.status = FL_OK};
    const fl_reader *reader = NULL;
    const char *path = fl_temp_write("input", bytes, size);
    t.status = fl_reader_find(path, format, &reader, &t.d);
    memset(&t.in, 0xaa, sizeof t.in); /* a reader clears it first */
    if (t.status != FL_OK)
        memset(&t.in, 0, sizeof t.in);
    else
        t.status = fl_reader_read(reader, path, o ? o : &every, &t.in, &t.d);
    static const fl_imported none;
    if (t.status != FL_OK)
        FL_CHECK(memcmp(&t.in, &none, sizeof none) == 0 && t.d.message[0], "%s left something behind",
                 format ? format : "it");
    return t;
}

static inline fl_taken fl_take(const char *format, const char *text) {
    return fl_take_bytes(format, text, strlen(text), NULL);
}

static inline bool fl_noted(const fl_imported *in, const char *part) {
    for (size_t i = 0; i < in->note_count; i++)
        if (strstr(in->note[i], part))
            return true;
    return false;
}

/* The text is refused at line:column with a message that holds `part`. */
static inline void fl_refused(const char *format, const char *text, long long line, long long column,
                              const char *part) {
    fl_taken t = fl_take(format, text);
    FL_CHECK(t.status == FL_BAD_INPUT && t.d.line == line && t.d.column == column && strstr(t.d.message, part),
             "status %d at %lld:%lld '%s', expected %lld:%lld '%s' for\n%s", t.status, (long long)t.d.line,
             (long long)t.d.column, t.d.message, line, column, part, text);
    fl_imported_free(&t.in);
}

static inline double fl_signal(const fl_telemetry *t, size_t row, const char *name) {
    for (size_t i = 0; i < t->signal_count; i++)
        if (!strcmp(t->signal[i], name))
            return t->value[row * t->signal_count + i];
    return NAN;
}

static inline bool fl_same_real(double a, double b) { return (isnan(a) && isnan(b)) || (a >= b && a <= b); }

static inline const char *fl_op_name(const fl_kernel_trace *t, const fl_trace_op *op) {
    return t->names[t->kinds[op->kind].name];
}

static inline bool fl_same_op(const fl_kernel_trace *a, const fl_trace_op *x, const fl_kernel_trace *b,
                              const fl_trace_op *y) {
    const fl_trace_kind *k = &a->kinds[x->kind], *l = &b->kinds[y->kind];
    return x->start_ns == y->start_ns && x->end_ns == y->end_ns && x->launch_ns == y->launch_ns &&
           x->bytes == y->bytes && x->device == y->device && x->process == y->process && x->stream == y->stream &&
           x->sm_mhz == y->sm_mhz && !strcmp(fl_op_name(a, x), fl_op_name(b, y)) &&
           !memcmp(k->grid, l->grid, sizeof k->grid) && !memcmp(k->block, l->block, sizeof k->block);
}

/* Every row of the part is a row of the whole, as it is there. */
static inline bool fl_is_part(const fl_imported *part, const fl_imported *whole) {
    for (size_t i = 0; i < part->kernels.op_count; i++) {
        bool found = false;
        for (size_t k = 0; !found && k < whole->kernels.op_count; k++)
            found = fl_same_op(&part->kernels, &part->kernels.ops[i], &whole->kernels, &whole->kernels.ops[k]);
        if (!found)
            return false;
    }
    const fl_telemetry *t = &part->telemetry, *w = &whole->telemetry;
    for (size_t n = 0; n < t->row_count; n++) {
        if (n >= w->row_count || t->t_ns[n] != w->t_ns[n] || t->device[n] != w->device[n])
            return false;
        for (size_t i = 0; i < t->signal_count; i++)
            if (!fl_same_real(t->value[n * t->signal_count + i], fl_signal(w, n, t->signal[i])))
                return false;
    }
    return true;
}

/* Cut after every byte: refused, or whole rows of the whole file and no more than that. */
static inline void fl_cut_everywhere(const char *format, const char *text) {
    fl_taken whole = fl_take(format, text);
    FL_CHECK(whole.status == FL_OK, "%s: %s", format, whole.d.message);
    size_t taken = 0;
    for (size_t size = 0; whole.status == FL_OK && size < strlen(text); size++) {
        fl_taken part = fl_take_bytes(format, text, size, NULL);
        bool good = part.status == FL_BAD_INPUT || (part.status == FL_OK && fl_is_part(&part.in, &whole.in));
        FL_CHECK(good, "%s cut after %zu bytes: status %d, %s", format, size, part.status, part.d.message);
        taken += part.status == FL_OK;
        fl_imported_free(&part.in);
    }
    FL_CHECK(taken > 0, "%s: no part was taken", format);
    fl_imported_free(&whole.in);
}

/* What was read is written and read again the same. */
static inline void fl_round_trip(const fl_imported *in) {
    fl_diag d = {0};
    fl_imported back = {0};
    if (in->has_kernels) {
        const char *path = fl_temp_path("back.csv");
        FL_CHECK(fl_kernels_write(path, &in->kernels, &d) == FL_OK &&
                     fl_kernels_read(path, &back.kernels, NULL, &d) == FL_OK,
                 "%s", d.message);
        FL_CHECK(back.kernels.op_count == in->kernels.op_count && fl_is_part(&back, in), "kernels differ");
    }
    fl_kernel_trace_free(&back.kernels);
    if (in->has_telemetry) {
        const char *path = fl_temp_path("back.telemetry.csv");
        FL_CHECK(fl_telemetry_write(path, &in->telemetry, &d) == FL_OK &&
                     fl_telemetry_read(path, &back.telemetry, NULL, &d) == FL_OK,
                 "%s", d.message);
        FL_CHECK(back.telemetry.row_count == in->telemetry.row_count && fl_is_part(&back, in), "telemetry differs");
    }
    fl_imported_free(&back);
}

/* A file below $FOLDLINE_DATA, or NULL with one line that says so. */
static inline const char *fl_sample_path(const char *name) {
    static char path[1024];
    const char *folder = getenv("FOLDLINE_DATA");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "", name);
    FILE *f = folder ? fopen(path, "rb") : NULL;
    if (!f) {
        printf("skipped: %s (set FOLDLINE_DATA) ", name);
        return NULL;
    }
    fclose(f);
    return path;
}
