/* Pieces that the writers of canonical files share. `file` is a FILE *. */
#ifndef FL_OUTPUT_H
#define FL_OUTPUT_H

#include "traces/diag.h"
#include "traces/records.h"

void fl_put_int(void *file, int64_t value);
void fl_put_real(void *file, double value); /* shortest text that comes back; nothing for NAN */

void fl_put_device(void *file, int32_t device); /* "host" for -1 */

/* "# format 1" and the entries. FL_BAD_INPUT for an entry that would not come back as it is. */
fl_status fl_put_head(void *file, const char *path, const char *format, const fl_head *h, fl_diag *d);

#endif
