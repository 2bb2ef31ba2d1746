/* Which measurements a device was fitted to: its file keeps a mark (a hash) of each row's values. If a workload is
 * among them, the device knows the answers already, whatever the workload's name, file or order of rows. */
#pragma once

#include "harness/base/json/json.h"
#include "harness/chip/rows.h"

#define FL_FIT_MARKS_KEY "rows_seen" /* in a calibration */

typedef struct fl_fit_marks {
    uint32_t *mark; /* count, ascending */
    size_t count;
} fl_fit_marks;

/* The marks of entities with two rows or more, to which a device is fitted. FL_NO_MEMORY leaves it zeroed. */
fl_status fl_fit_marks_make(const fl_fit_rows *r, fl_fit_marks *m, fl_diag *d);
cJSON *fl_fit_marks_to_json(const fl_fit_marks *m); /* NULL when out of memory; the caller owns it */
/* The marks of a calibration; empty where it has none. */
fl_status fl_fit_marks_from_json(const fl_json *calibration, fl_fit_marks *m, fl_diag *d);
void fl_fit_marks_free(fl_fit_marks *m);

/* Whether the marks contain half of the entity's rows or more. */
bool fl_fit_marks_have(const fl_fit_marks *m, const fl_fit_rows *r, const fl_fit_entity *e);
