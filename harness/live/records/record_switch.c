#include "harness/live/records/record_switch.h"

#include <stdlib.h>

typedef struct fl_record_state { /* of one GPU */
    bool on, was;                /* from at_ns on, and up to it */
    bool shown;                  /* a sample was shown since */
    int64_t at_ns;
} fl_record_state;

fl_status fl_record_switch_open(fl_record_switch *s, uint32_t gpus, bool on, fl_diag *d) {
    *s = (fl_record_switch){.gpu = calloc(gpus + 1, sizeof *s->gpu), .count = gpus};
    if (!s->gpu)
        return fl_no_memory(d, "the kernel records");
    for (uint32_t i = 0; i < gpus; i++)
        s->gpu[i] = (fl_record_state){on, on, true, INT64_MIN};
    return FL_OK;
}

void fl_record_switch_close(fl_record_switch *s) {
    free(s->gpu);
    free(s->kept);
    *s = (fl_record_switch){0};
}

void fl_record_switch_set(fl_record_switch *s, uint32_t gpu, bool on, int64_t t_ns) {
    fl_record_state *g = &s->gpu[gpu];
    if (on != g->on) /* else it is no switch */
        *g = (fl_record_state){on, g->on, false, t_ns};
}

/* Records come late, by as long as the collector keeps them: each is judged by when its kernel ended, however many
 * samples were shown since the switch. */
static bool seen(const fl_record_switch *s, const fl_kernel_record *r) {
    const fl_record_state *g = r->gpu < s->count ? &s->gpu[r->gpu] : NULL;
    return g && (r->end_ns <= g->at_ns ? g->was : g->on);
}

fl_status fl_record_switch_show(fl_record_switch *s, fl_sample *sample, fl_diag *d) {
    bool all = true, any = false;
    for (uint32_t i = 0; i < s->count; i++) {
        fl_record_state *g = &s->gpu[i];
        all = all && g->on && g->was;
        any = any || g->on || (g->was && !g->shown);
        g->shown = true;
    }
    if (all)
        return FL_OK;
    if (fl_grow(&s->kept, &s->room, sample->record_count + 1, sizeof *s->kept))
        return fl_no_memory(d, "the kernel records");
    size_t kept = 0;
    for (uint64_t k = 0; k < sample->record_count; k++)
        if (seen(s, &sample->record[k]))
            s->kept[kept++] = sample->record[k];
    sample->record = any || kept ? s->kept : NULL;
    sample->record_count = kept;
    sample->record_lost = any ? sample->record_lost : 0;
    return FL_OK;
}
