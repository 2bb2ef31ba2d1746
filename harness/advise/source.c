#include "harness/advise/source.h"

#include <stdlib.h>
#include <string.h>

fl_status fl_advise_add(fl_advise_subjects *s, const char *name, fl_advise_subject **to, fl_diag *d) {
    if (fl_grow(&s->item, &s->room, s->count + 1, sizeof *s->item))
        return fl_no_memory(d, "the advice");
    *to = &s->item[s->count++];
    **to = (fl_advise_subject){.name = strdup(name)};
    return (*to)->name ? FL_OK : fl_no_memory(d, "the advice");
}

fl_status fl_advise_note_platform(fl_advise_subjects *s, const fl_platform *p, fl_diag *d) {
    s->several_memories = p && p->node.device[p->node.gpu[0]].mem_count > 1;
    return p ? FL_ADVISE_REST(s, d, "platform %s: its laws of time and power as they are", p->name) : FL_OK;
}

void fl_advise_close(fl_advise_subjects *s) {
    for (size_t i = 0; i < s->count; i++) {
        free(s->item[i].name);
        for (size_t k = 0; k < s->item[i].cases; k++)
            fl_stated_free(&s->item[i].of[k].stated);
    }
    for (size_t i = 0; i < s->rest_count; i++)
        free(s->rests[i]);
    free(s->rests);
    free(s->item);
    free(s->device);
    *s = (fl_advise_subjects){0};
}
