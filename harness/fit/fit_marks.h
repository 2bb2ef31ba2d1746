/* Which measurements a device was fitted to: a mark of each row's values, kept in its file. A workload that is among
 * them is predicted by a device that knows the answers, whatever its name, file or order of rows. */
#ifndef FL_FIT_MARKS_H
#define FL_FIT_MARKS_H

#include "harness/base/json.h"
#include "harness/chip/fit_rows.h"

#define FL_FIT_MARKS_KEY "rows_seen" /* in a calibration */

typedef struct fl_fit_marks {
    uint32_t *mark; /* count, ascending */
    size_t count;
} fl_fit_marks;

/* Of the rows of entities with two or more, which a device is fitted to. FL_NO_MEMORY leaves it zeroed. */
fl_status fl_fit_marks_make(const fl_fit_rows *r, fl_fit_marks *m, fl_diag *d);
cJSON *fl_fit_marks_to_json(const fl_fit_marks *m); /* NULL when out of memory; the caller owns it */
/* Of a calibration; none where it has none. */
fl_status fl_fit_marks_from_json(const fl_json *calibration, fl_fit_marks *m, fl_diag *d);
void fl_fit_marks_free(fl_fit_marks *m);

/* Whether half of the entity's rows or more have their mark there. */
bool fl_fit_marks_have(const fl_fit_marks *m, const fl_fit_rows *r, const fl_fit_entity *e);

#endif
