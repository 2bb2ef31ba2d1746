/* A vendor's library, opened at run time. */
#pragma once

#include "traces/io/diag.h"

/* Opens the library that the environment variable names, else the first of names (NULL at the end) that opens. path
 * receives its name. NULL where none opens: FL_HARDWARE, "no WHAT: why". */
void *fl_library_open(const char *variable, const char *const *names, const char *what, char *path, size_t size,
                      fl_diag *d);

/* Stores a pointer to the function of the newest name, else of the older one (may be NULL), in *into (a pointer to a
 * function pointer). Returns whether there is one. */
int fl_library_find(void *library, const char *newest, const char *older, void *into);
