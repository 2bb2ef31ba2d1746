/* Decisions while they are read or written: room for their steps. */
#pragma once

#include "traces/decisions_kernels.h"

/* Makes room in *r for so many steps of one host and `gpus` GPUs; FL_NO_MEMORY otherwise. */
fl_status fl_decisions_grow(fl_decisions *r, fl_decisions_room *room, size_t steps, size_t gpus);
