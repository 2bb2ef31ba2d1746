#include "sim/base/path.h"

#include <stdatomic.h>

#define FL_ROW_PATH_NAME(id, name, meaning) #name,
const char *const fl_path_names[FL_PATH_COUNT] = {FL_PATHS(FL_ROW_PATH_NAME)};

static fl_path forced;
static _Atomic uint64_t taken_by[FL_PATH_COUNT];

void fl_path_force(fl_path path) { forced = path; }
fl_path fl_path_forced(void) { return forced; }

void fl_path_count(const uint64_t taken[FL_PATH_COUNT]) {
    for (int i = 0; i < FL_PATH_COUNT; i++)
        atomic_fetch_add_explicit(&taken_by[i], taken[i], memory_order_relaxed);
}

uint64_t fl_path_taken(fl_path path) { return atomic_load_explicit(&taken_by[path], memory_order_relaxed); }
