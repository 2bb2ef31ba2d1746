/* How far a long piece of work is: counters that whoever works writes and a program may show (harness/base/ticker.h).
 * Nothing is shown here, and nothing is counted until a program asks for it. */
#ifndef FL_STAGE_H
#define FL_STAGE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fl_stage {
    FL_STAGE_NONE,   /* nobody asks, or another piece is under way: what follows does nothing */
    FL_STAGE_WHOLE,  /* the piece is the work itself */
    FL_STAGE_REFINES /* it is a part of work whose size nobody knows */
} fl_stage;

/* From now on pieces are counted. To be called before any thread starts. */
void fl_stage_watch(void);

/* Begins a piece: what, a text that lives for ever, and its size in any unit, 0 = not known. Any thread; of several
 * pieces at once the first counts. A piece of unknown size is refined by one of known size within it. */
fl_stage fl_stage_begin(const char *what, uint64_t size);
void fl_stage_at(fl_stage mine, uint64_t done);
void fl_stage_add(fl_stage mine, uint64_t more);
void fl_stage_end(fl_stage mine);

typedef struct fl_stage_state {
    const char *what; /* NULL: nothing is under way */
    uint64_t done, size;
    uint64_t begun; /* how many pieces have begun: tells two apart */
} fl_stage_state;
fl_stage_state fl_stage_look(void);

#endif
