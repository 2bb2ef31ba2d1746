/* --path: a test of the simulator forces one of its ways of advancing (sim/base/path.h). */
#pragma once

#include "harness/base/cli/args.h"

/* clang-format off */
#define FL_PATH_OPTION(into)                                                                                           \
    {"path", "NAME", FL_OPTION_TEXT, into, 0, 0,                                                                       \
     "for tests: plain, vector, prefix, events or launches is how to advance; results do not depend on it (auto)"}
/* clang-format on */

/* Forces what --path says; nothing where it was not given (NULL). FL_BAD_INPUT for an unknown name. */
fl_status fl_path_option_use(const char *name, fl_diag *d);
/* With --path: on stderr, how often each path was taken. */
void fl_path_option_tell(const char *name);
