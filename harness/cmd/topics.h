/* What `foldline help` explains beside commands. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>
#include <stddef.h>

extern const char *const fl_topics[]; /* fl_topics_count names */
extern const size_t fl_topics_count;

/* Prints a topic on the standard output. *known: whether it is one; then the status is that of printing it. */
fl_status fl_topic_print(const char *name, bool *known, fl_diag *d);
