/* Room for decisions while they are read; shared by the readers that produce them. */
#ifndef FL_DECISIONS_H
#define FL_DECISIONS_H

#include "traces/diag.h"
#include "traces/records.h"

typedef struct fl_decisions_room { /* items that each array of fl_decisions has room for */
    size_t t_ns, delay_ns, line, value, fresh, set;
} fl_decisions_room;

/* Makes room in *r for so many steps of one host and `gpus` GPUs; FL_NO_MEMORY otherwise. */
fl_status fl_decisions_grow(fl_decisions *r, fl_decisions_room *room, size_t steps, size_t gpus);

#endif
