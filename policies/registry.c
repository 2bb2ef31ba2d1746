#include "policies/registry.h"

/* X(ident): the ident of the file's FL_POLICY. */
#define BUILT_IN(X)                                                                                                    \
    X(nvboost)                                                                                                         \
    X(maxfreq)                                                                                                         \
    X(fixed)                                                                                                           \
    X(efficientfix)                                                                                                    \
    X(utilizscale)                                                                                                     \
    X(assure)                                                                                                          \
    X(sweetspot)                                                                                                       \
    X(skeleton)

#define DECLARE(ident) extern const fl_policy fl_policy_##ident;
#define ENTRY(ident) &fl_policy_##ident,

BUILT_IN(DECLARE)

const fl_policy *const fl_policies[] = {BUILT_IN(ENTRY)};
const size_t fl_policies_count = sizeof fl_policies / sizeof *fl_policies;
