/* What the files of harness/live/host share. Other modules include the public header alone. */
#pragma once

#include "harness/live/host/host.h"

#include <stddef.h>

void fl_live_log_limit(fl_live_log *l, size_t room); /* limits the bytes that may wait, for tests */
