#include "harness/live/records/marks.h"

#include "traces/io/diag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fl_status fl_marks_check(const char *const *name, size_t count, fl_diag *d) {
    for (size_t i = 0; i < count; i++)
        if (!*name[i] || strlen(name[i]) >= FL_RING_MARK_NAME)
            return fl_refuse(d, "--iteration '%.40s': expected the name of a range or mark, of 1 to %d bytes", name[i],
                             FL_RING_MARK_NAME - 1);
    return FL_OK;
}

uint64_t fl_marks_wanted(const fl_marks *m) {
    uint64_t wanted = m->name_count ? 0 : UINT64_C(1); /* 0 would be all */
    for (size_t i = 0; i < m->name_count; i++)
        wanted |= fl_ring_wanted(m->names[i]);
    return wanted;
}

fl_status fl_marks_size(fl_marks *m, uint32_t gpus, fl_diag *d) {
    if (fl_grow(&m->passed, &m->gpu_room, gpus, sizeof *m->passed))
        return fl_no_memory(d, "the markers");
    for (; m->gpus < gpus; m->gpus++)
        m->passed[m->gpus] = 0;
    return FL_OK;
}

/* Of programs that may be anyone's: as it may be shown. */
static void see_name(fl_marks *m, const char *given) {
    char name[FL_RING_MARK_NAME];
    snprintf(name, sizeof name, "%s", given);
    fl_printable(name, strlen(name));
    for (size_t i = 0; i < m->seen_count; i++)
        if (!strcmp(m->seen[i].name, name)) {
            m->seen[i].count++;
            return;
        }
    if (m->seen_count == FL_MARKS_NAMES) {
        m->others++;
        return;
    }
    fl_marks_name *n = &m->seen[m->seen_count++];
    memcpy(n->name, name, sizeof name);
    n->count = 1;
}

fl_status fl_marks_add(fl_marks *m, const char *name, int64_t time_ns, int32_t gpu, uint32_t program, fl_diag *d) {
    bool counts = false;
    see_name(m, name);
    for (size_t i = 0; i < m->name_count && !counts; i++)
        counts = !strcmp(m->names[i], name);
    if (!counts)
        return FL_OK;
    if (gpu < 0 || (size_t)gpu >= m->gpus) {
        m->unplaced++;
        return FL_OK;
    }
    if (fl_grow(&m->marker, &m->room, m->count + 1, sizeof *m->marker))
        return fl_no_memory(d, "the markers");
    m->marker[m->count++] = (fl_marker){time_ns, (uint32_t)gpu, program};
    m->passed[gpu]++;
    m->iterations++;
    return FL_OK;
}

void fl_marks_clear(fl_marks *m) { m->count = 0; }

static int by_count(const void *a, const void *b) {
    const fl_marks_name *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->name, y->name);
}

void fl_marks_text(const fl_marks *m, char *text, size_t size) {
    fl_marks_name sorted[FL_MARKS_NAMES];
    size_t at = 0;
    memcpy(sorted, m->seen, sizeof sorted);
    qsort(sorted, m->seen_count, sizeof *sorted, by_count);
    *text = '\0';
    for (size_t i = 0; i < m->seen_count && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s %llu", i ? ", " : "", sorted[i].name,
                               (unsigned long long)sorted[i].count);
    if (m->others && at < size)
        snprintf(text + at, size - at, ", further names %llu", (unsigned long long)m->others);
}

void fl_marks_free(fl_marks *m) {
    free(m->marker);
    free(m->passed);
    *m = (fl_marks){0};
}
