#include "traces/serving/arrivals.h"

#include "traces/io/columns.h"

#include <inttypes.h>
#include <stdlib.h>

#define LAST_NS (INT64_C(26) * 86400 * 1000000000)

static const char *const COLUMN[] = {"t_ns"};

typedef struct loader {
    fl_arrivals a;
    size_t where, width;
} loader;

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_arrivals *a = &l->a;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, 1, 1, &l->where, d);
    }
    int64_t t;
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = fl_field_int(row, l->where, COLUMN[0], 0, LAST_NS, &t, d);
    if (s)
        return s;
    if (a->count && t < a->t_ns[a->count - 1])
        return FL_FIELD_FAIL(d, row, l->where, "t_ns is %" PRId64 " after %" PRId64 ", expected ascending times", t,
                             a->t_ns[a->count - 1]);
    if (fl_grow(&a->t_ns, &a->room, a->count + 1, sizeof *a->t_ns))
        return fl_no_memory(d, row->file);
    a->t_ns[a->count++] = t;
    return FL_OK;
}

fl_status fl_arrivals_read(const char *path, fl_arrivals *a, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-arrivals"};
    loader l = {0};
    fl_status s = fl_csv_read(path, &OPTIONS, &l.a.head, on_row, &l, d);
    if (!s && !l.a.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no arrivals, expected at least one row after the header");
    if (s)
        fl_arrivals_free(&l.a);
    *a = l.a;
    return s;
}

void fl_arrivals_free(fl_arrivals *a) {
    fl_head_free(&a->head);
    free(a->t_ns);
    *a = (fl_arrivals){0};
}
