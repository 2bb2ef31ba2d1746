/* Names of the files that ship with foldline. */
#pragma once

#include "harness/base/cli/place.h"
#include "traces/io/diag.h"

/* The NAMEs of all NAME.json of a place, sorted. The caller frees each name and the array. FL_IO where the folder
 * cannot be read. */
fl_status fl_place_list(fl_place_id id, char ***names, size_t *count, fl_diag *d);
void fl_place_list_free(char **names, size_t count);
