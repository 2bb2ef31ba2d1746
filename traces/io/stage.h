/* The progress of a long piece of work: counters that the worker updates and that a program may show
 * (harness/base/cli/ticker.h). This module shows nothing, and counts nothing until a program asks for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum fl_stage {
    FL_STAGE_NONE,   /* no one asks, or another piece is in progress: later calls for this one do nothing */
    FL_STAGE_WHOLE,  /* the piece is the work itself */
    FL_STAGE_REFINES /* the piece is a part of work whose size is unknown */
} fl_stage;

/* Starts the counting of pieces. Call it before any thread starts. */
void fl_stage_watch(void);

/* Begins a piece. what: a static text. The size is in any unit, 0 = not known. Any thread may call it; of several
 * pieces at once the first counts. A piece of known size inside a piece of unknown size refines it. */
fl_stage fl_stage_begin(const char *what, uint64_t size);
void fl_stage_at(fl_stage mine, uint64_t done);
void fl_stage_add(fl_stage mine, uint64_t more);
void fl_stage_end(fl_stage mine);

typedef struct fl_stage_state {
    const char *what; /* NULL: nothing is in progress */
    uint64_t done, size;
    uint64_t begun; /* how many pieces have begun; distinguishes two pieces */
} fl_stage_state;
fl_stage_state fl_stage_look(void);
