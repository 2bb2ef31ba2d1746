#include "harness/advise/advise_source.h"

#include <string.h>

const char *fl_advise_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

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
