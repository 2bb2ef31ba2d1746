#include "traces/io/stage.h"

#include <stdatomic.h>
#include <stddef.h>

static atomic_bool watched, whole, refined;
static const char *_Atomic whole_what, *_Atomic part_what;
static atomic_uint_fast64_t size_of, done_of, begun_of;

void fl_stage_watch(void) { atomic_store(&watched, true); }

static void start(const char *_Atomic *what, const char *text, uint64_t size) {
    atomic_store(&size_of, size);
    atomic_store(&done_of, 0);
    atomic_fetch_add(&begun_of, 1);
    atomic_store(what, text);
}

fl_stage fl_stage_begin(const char *what, uint64_t size) {
    if (!atomic_load(&watched))
        return FL_STAGE_NONE;
    if (!atomic_exchange(&whole, true)) {
        start(&whole_what, what, size);
        return FL_STAGE_WHOLE;
    }
    if (!size || atomic_load(&size_of) || atomic_exchange(&refined, true))
        return FL_STAGE_NONE;
    start(&part_what, what, size);
    return FL_STAGE_REFINES;
}

void fl_stage_at(fl_stage mine, uint64_t done) {
    if (mine != FL_STAGE_NONE)
        atomic_store(&done_of, done);
}

void fl_stage_add(fl_stage mine, uint64_t more) {
    if (mine != FL_STAGE_NONE)
        atomic_fetch_add(&done_of, more);
}

void fl_stage_end(fl_stage mine) {
    if (mine == FL_STAGE_NONE)
        return;
    atomic_store(&size_of, 0);
    atomic_store(&part_what, NULL);
    if (mine == FL_STAGE_REFINES) {
        atomic_store(&refined, false);
        return;
    }
    atomic_store(&whole_what, NULL);
    atomic_store(&whole, false);
}

fl_stage_state fl_stage_look(void) {
    const char *part = atomic_load(&part_what);
    return (fl_stage_state){.what = part ? part : atomic_load(&whole_what),
                            .done = atomic_load(&done_of),
                            .size = atomic_load(&size_of),
                            .begun = atomic_load(&begun_of)};
}
