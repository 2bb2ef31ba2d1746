#include "harness/fit/chip/marks.h"

#include "traces/io/intern.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Clock, time and power in the precision of files; not the memory clock, which some files leave out. */
static uint32_t mark_of(const fl_chip_row *row) {
    char text[96];
    const int size =
        snprintf(text, sizeof text, "%.6g,%.6g,%.6g", row->sm_mhz, row->time_s, isnan(row->power_w) ? 0 : row->power_w);
    return fl_hash(text, (size_t)size) & INT32_MAX; /* JSON holds it as a whole number */
}

static int ascending(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

fl_status fl_fit_marks_make(const fl_fit_rows *r, fl_fit_marks *m, fl_diag *d) {
    *m = (fl_fit_marks){.mark = malloc((r->count + 1) * sizeof *m->mark)};
    if (!m->mark)
        return fl_no_memory(d, "the rows' marks");
    for (size_t i = 0; i < r->count; i++)
        if (r->entity[r->row[i].workload].count > 1)
            m->mark[m->count++] = mark_of(&r->row[i]);
    qsort(m->mark, m->count, sizeof *m->mark, ascending);
    return FL_OK;
}

cJSON *fl_fit_marks_to_json(const fl_fit_marks *m) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; list && i < m->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(m->mark[i]));
    return list;
}

fl_status fl_fit_marks_from_json(const fl_json *calibration, fl_fit_marks *m, fl_diag *d) {
    fl_json list;
    *m = (fl_fit_marks){0};
    if (!fl_json_has(calibration, FL_FIT_MARKS_KEY))
        return FL_OK;
    fl_status s = fl_json_get_array(calibration, FL_FIT_MARKS_KEY, &list, d);
    if (s)
        return s;
    m->mark = malloc((fl_json_count(&list) + 1) * sizeof *m->mark);
    if (!m->mark)
        return fl_no_memory(d, "the rows' marks");
    for (fl_json e = fl_json_first(&list); !s && e.node; e = fl_json_next(&list, &e)) {
        double x = 0;
        s = fl_json_real(&e, 0, INT32_MAX, &x, d);
        m->mark[m->count++] = (uint32_t)x;
    }
    qsort(m->mark, m->count, sizeof *m->mark, ascending);
    if (s)
        fl_fit_marks_free(m);
    return s;
}

void fl_fit_marks_free(fl_fit_marks *m) {
    free(m->mark);
    *m = (fl_fit_marks){0};
}

bool fl_fit_marks_have(const fl_fit_marks *m, const fl_fit_rows *r, const fl_fit_entity *e) {
    size_t have = 0, measured = 0;
    for (size_t i = e->first; m->count && i < e->first + e->count; i++) {
        if (isnan(r->row[i].time_s)) /* a requested setting without measurement */
            continue;
        measured++;
        const uint32_t mark = mark_of(&r->row[i]);
        have += bsearch(&mark, m->mark, m->count, sizeof *m->mark, ascending) ? 1 : 0;
    }
    return have > 0 && 2 * have >= measured;
}
