/* Target files: the power that a node is to draw, over time. */
#include "traces/files/files.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define WATTS_MOST 1e7 /* as the option --gpu-budget */

enum { T_NS, WATTS, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"t_ns", "watts"};

typedef struct loader {
    fl_target t;
    size_t where[COLUMNS], width;
} loader;

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_target *t = &l->t;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, COLUMNS, COLUMNS, l->where, d);
    }
    int64_t at = 0;
    double watts = 0;
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = fl_field_int(row, l->where[T_NS], COLUMN[T_NS], 0, INT64_MAX, &at, d);
    if (!s)
        s = fl_field_real(row, l->where[WATTS], COLUMN[WATTS], 0, WATTS_MOST, &watts, d);
    if (s)
        return s;
    if (t->count && at <= t->t_ns[t->count - 1])
        return FL_FIELD_FAIL(d, row, l->where[T_NS], "t_ns is %" PRId64 " after %" PRId64 ", expected a later time", at,
                             t->t_ns[t->count - 1]);
    if (fl_grow(&t->t_ns, &t->room, t->count + 1, sizeof *t->t_ns) ||
        fl_grow(&t->watts, &t->watts_room, t->count + 1, sizeof *t->watts))
        return fl_no_memory(d, row->file);
    t->t_ns[t->count] = at;
    t->watts[t->count++] = watts;
    return FL_OK;
}

fl_status fl_target_read(const char *path, fl_target *t, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-target", .head_optional = true};
    loader l = {0};
    fl_status s = fl_csv_read(path, &OPTIONS, &l.t.head, on_row, &l, d);
    if (!s && !l.t.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no target, expected at least one row after the header");
    if (s)
        fl_target_free(&l.t);
    *t = l.t;
    return s;
}
