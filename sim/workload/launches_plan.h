/* Finds the islands that are one stream and the thread that launches into it, when a workload is closed. Internal to
 * sim/. */
#pragma once

#include "sim/workload/workload.h"

/* Gives the island its plan. The plan stays NULL where the island is not one stream with one thread that launches all
 * of it in order, where something in it could wait for ever, and where requests arrive. The island owns the plan, also
 * after an error. */
fl_status fl_launches_plan(const fl_workload *w, fl_island *is, fl_diag *d);
