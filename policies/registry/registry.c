/* The built-in policies, one row each, in the order in which lists show them. */
#include "policies/registry/registry.h"

#include "policies/policy.h"

#include <stddef.h>

/* X(ident): the ident of the file's FL_POLICY. */
#define BUILT_IN(X)                                                                                                    \
    X(nvboost)                                                                                                         \
    X(maxfreq)                                                                                                         \
    X(fixed)                                                                                                           \
    X(efficientfix)                                                                                                    \
    X(utilizscale)                                                                                                     \
    X(assure)                                                                                                          \
    X(sweetspot)                                                                                                       \
    X(onelevelth)                                                                                                      \
    X(multilevelth)                                                                                                    \
    X(bapm)                                                                                                            \
    X(idealstatic)                                                                                                     \
    X(cap_dynamic_min)                                                                                                 \
    X(cap_dynamic_max)                                                                                                 \
    X(cap_static)                                                                                                      \
    X(cap_hybrid1)                                                                                                     \
    X(cap_hybrid2)                                                                                                     \
    X(cap_static_max)                                                                                                  \
    X(cap_static_min)                                                                                                  \
    X(energyucb)                                                                                                       \
    X(energyucb_v2)                                                                                                    \
    X(random)                                                                                                          \
    X(round_robin)                                                                                                     \
    X(epsilon_greedy)                                                                                                  \
    X(mfgpoeo)                                                                                                         \
    X(depo)                                                                                                            \
    X(odpp)                                                                                                            \
    X(gridpilot)                                                                                                       \
    X(plan)                                                                                                            \
    X(tightrope)                                                                                                       \
    X(ecofreq)                                                                                                         \
    X(ecoroute)                                                                                                        \
    X(fixed_pools)                                                                                                     \
    X(throttllem)                                                                                                      \
    X(agft)                                                                                                            \
    X(polca)                                                                                                           \
    X(slo_pid)                                                                                                         \
    X(biscale_decode)                                                                                                  \
    X(skeleton)

#define DECLARE(ident) extern const fl_policy fl_policy_##ident;
#define ENTRY(ident) &fl_policy_##ident,

BUILT_IN(DECLARE)

const fl_policy *const fl_policies[] = {BUILT_IN(ENTRY)};
const size_t fl_policies_count = FL_COUNT(fl_policies);
