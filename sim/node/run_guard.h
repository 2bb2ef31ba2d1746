/* What the checks of a run know of its sensors: when a signal is stale, and where a counter wraps. */
#pragma once

#include "models/laws/device.h"
#include "sim/instance/guard.h"
#include "sim/serving/serving.h"

void fl_run_guard(fl_guard *guard, const fl_node_spec *spec);
/* Servers tell their signals every signals_ns: unknown after a second without any, or after five such times. */
void fl_run_guard_servers(fl_guard *guard, const fl_serving_setup *u);
