/* A folder for the files of tests/bench, which may be gigabytes: it goes when they are no longer needed, and when
 * the program is interrupted. */
#pragma once

#include "traces/io/io.h"

#include <sys/types.h>

/* Makes it in TMPDIR, or in /tmp. One at a time; the path is static. From now on SIGINT, SIGTERM and SIGHUP remove it
 * before they end the program. FL_IO where there is none. */
fl_status fl_bench_folder_open(const char **path, fl_diag *d);
/* Removes every file in it, whoever made it: caches stand beside traces. */
void fl_bench_folder_clear(void);
void fl_bench_folder_close(void);

/* The child that may be writing into it, 0 = none: it ends first where the program is interrupted. */
void fl_bench_folder_child(pid_t child);
/* What a child begins with: signals end it at once. */
void fl_bench_folder_leave(void);
