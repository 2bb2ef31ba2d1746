/* Times as people write them. */
#pragma once

#include "traces/io/diag.h"

#include <stdint.h>

/* "60s", "500ms", "5m", "1h", or a number of seconds. FL_BAD_INPUT for anything else, 0 and less. */
fl_status fl_duration_parse(const char *text, int64_t *ns, fl_diag *d);
