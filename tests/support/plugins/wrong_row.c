/* A plug-in built against a contract in which one signal has another unit. Only the head of a descriptor may be read.
 */
#include "policies/policy.h"

extern __attribute__((visibility("default"))) const fl_abi foldline_policy;
const fl_abi foldline_policy = {.magic = FL_ABI_MAGIC,
                                .rows = "abi " FL_TEXT(FL_ABI_VERSION) "\ngpu signal power_w mW GAUGE\n",
                                .struct_count = FL_ABI_STRUCT_COUNT};
