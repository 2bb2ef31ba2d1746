/* The chips behind a prior (models/chip/chip.h), for tests. */
#pragma once

#include "harness/input/platform/platform.h"
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"

#include <fnmatch.h>

#define KIN_MAX 32

/* The bundled chips but those whose name matches, and generic, which is no chip. */
static inline size_t known_chips(const char *without, fl_kin *kin) {
    char **names = NULL;
    size_t count = 0, n = 0;
    fl_diag d = {0};
    CU_ASSERT_FATAL(fl_platform_list(&names, &count, &d) == FL_OK);
    for (size_t i = 0; i < count; i++) {
        fl_platform p = {0};
        if (n < KIN_MAX && strcmp(names[i], "generic") != 0 && (!without || fnmatch(without, names[i], 0) != 0)) {
            CU_ASSERT_FATAL(fl_platform_open(names[i], 1, &p, &d) == FL_OK);
            CU_ASSERT(fl_kin_of_device(&p.node.device[0], &kin[n++]) == FL_MODEL_OK);
        }
        fl_platform_free(&p);
        free(names[i]);
    }
    free(names);
    return n;
}
