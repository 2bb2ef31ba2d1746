/* Decisions while they are read or written: room for their steps, and the rows of one step. */
#pragma once

#include "traces/files/decisions_kernels.h"

#include <stdio.h>

/* Makes room in *r for so many steps of one host and `gpus` GPUs; FL_NO_MEMORY otherwise. */
fl_status fl_decisions_grow(fl_decisions *r, fl_decisions_room *room, size_t steps, size_t gpus);

/* The header row. */
void fl_decisions_put_names(FILE *file, const fl_decisions *r);
/* The rows of a step, under this number. kinds: so many kinds of kernels stand in the file already. */
void fl_decisions_put_step(FILE *file, const fl_decisions *r, size_t step, size_t number, size_t kinds);
