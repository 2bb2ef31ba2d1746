/* An append-only record of finished jobs, so that a grid that was killed goes on where it stopped, losing and doubling
 * nothing.
 *
 * Text: a first line "# foldline-journal 1 KEY JOBS", then one line for each row of a job:
 *   JOB ROW ROWS CRC TEXT
 * A job counts once all its rows are there; what a kill left half-written is cut off on opening. The key stands for
 * everything that the results hang on (inputs, version, options): a journal under another key is refused. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct fl_journal fl_journal;

/* Opens or creates. FL_BAD_INPUT where the file is no journal or has another key or number of jobs; FL_IO where it
 * cannot be read or written, or another process holds it. */
fl_status fl_journal_open(fl_journal **out, const char *path, const char *key, size_t jobs, fl_diag *d);
void fl_journal_close(fl_journal *j);

bool fl_journal_has(const fl_journal *j, size_t job);
size_t fl_journal_count(const fl_journal *j); /* jobs that are done */

/* Appends a finished job: rows is its text, lines that each end in a newline (none is allowed). From any thread. The
 * text is in the file when it returns; it is on the disk after fl_journal_sync, which this calls once a second. */
fl_status fl_journal_add(fl_journal *j, size_t job, const char *rows, fl_diag *d);
fl_status fl_journal_sync(fl_journal *j, fl_diag *d);

/* The rows of all finished jobs in the order of the jobs, to a FILE *. */
fl_status fl_journal_write(fl_journal *j, FILE *file, fl_diag *d);
/* The same as journal lines under the journal's own first line: a shard. */
fl_status fl_journal_write_shard(fl_journal *j, FILE *file, fl_diag *d);

/* One journal, in memory, of the shards at `path`, of which there is at least one. FL_BAD_INPUT where their keys
 * differ, and where a job is missing or there twice. How many jobs there are is what the first says, believed no
 * further than the bytes of all reach. */
fl_status fl_journal_merge(fl_journal **out, const char *const *path, size_t count, fl_diag *d);
