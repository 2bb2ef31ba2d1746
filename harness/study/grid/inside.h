/* What the files of harness/study/grid share. Other modules include the public header alone. */
#pragma once

#include "harness/study/grid/grid.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdio.h>

/* Opens or creates a journal. FL_BAD_INPUT where the file is no journal or has another key or number of jobs; FL_IO
 * where it cannot be read or written, or another process holds it. */
fl_status fl_journal_open(fl_journal **out, const char *path, const char *key, size_t jobs, fl_diag *d);

bool fl_journal_has(const fl_journal *j, size_t job);

/* Appends a finished job; any thread may call it. rows: lines that each end in a newline, or no text. The text is in
 * the file when the function returns, and on the disk after fl_journal_sync, which it calls once a second. */
fl_status fl_journal_add(fl_journal *j, size_t job, const char *rows, fl_diag *d);
fl_status fl_journal_sync(fl_journal *j, fl_diag *d);

/* Writes the finished jobs as a shard: journal lines below the journal's own first line. */
void fl_journal_write_shard(fl_journal *j, FILE *file);

/* Adds a row without seeds to a gate's record. Returns the row, which is valid until the next one is added. */
fl_gate_row *fl_gate_add_row(fl_gate_record *r, const char *policy, const char *workload, const char *platform);
/* Adds one more run, value[] of each metric, to a row, which is new if the record does not have it. Runs are kept in
 * their order, so that pairs of them do not depend on the order of a file's lines. NULL: the row has this run already.
 */
fl_gate_row *fl_gate_add_run(fl_gate_record *r, const char *policy, const char *workload, const char *platform,
                             fl_gate_run run, const double *value);
