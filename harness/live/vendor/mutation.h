/* Safety rules that tests break on purpose to check that the trials notice. Only tests compile them in
 * (FL_LIVE_MUTATIONS); in the program every one is false at compile time. */
#pragma once

#ifdef FL_LIVE_MUTATIONS
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool fl_mutated(const char *name) {
    const char *asked = getenv("FOLDLINE_MUTATION");
    return asked && !strcmp(asked, name);
}
#else
#define fl_mutated(name) 0
#endif
