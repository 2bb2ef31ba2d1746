/* What `emulate` tells of a session that has ended. */
#pragma once

#include "harness/emulate/session/kills.h"

#include <cjson/cJSON.h>

/* Every set call, by process; the caller frees it. NULL where there is no memory. */
cJSON *fl_emulate_json(const fl_emulate_result *r);
/* The same in short, on standard error. */
void fl_emulate_print(const fl_emulate_result *r, const fl_scene *scene);

/* What a program leaves changed when it is killed: as a table on standard output, and as JSON, which the caller frees.
 */
void fl_kills_print(const fl_kills *k);
cJSON *fl_kills_json(const fl_kills *k);
