/* Kernel classes of activity records, the markers that count, and the switch of records. */
#include "harness/live/records/inside.h"

#include "harness/live/collector/ring.h"
#include "harness/live/records/records.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- kernel classes ---- */

typedef struct key {
    uint32_t name_id, grid[3], block[3];
} key;

static bool same(const void *owner, uint32_t index, const void *key_of) {
    const fl_kernel_kind *kind = (const fl_kernel_kind *)owner + index;
    const key *k = key_of;
    return kind->name_id == k->name_id && !memcmp(kind->grid, k->grid, sizeof k->grid) &&
           !memcmp(kind->block, k->block, sizeof k->block);
}

static bool same_name(const void *owner, uint32_t index, const void *name) {
    return !strcmp(((char *const *)owner)[index], name);
}

/* *name_id of that name; UINT32_MAX where it is new and `add` is false. False: out of memory. */
static bool name_of(fl_kind_table *k, const char *name, bool add, uint32_t *name_id) {
    const size_t size = strlen(name);
    if (add) {
        *name_id = fl_intern_text(&k->by_name, &k->name, &k->name_count, &k->name_room, name, size);
        return *name_id != UINT32_MAX;
    }
    const fl_intern_slot *slot = fl_intern_find(&k->by_name, fl_hash(name, size), same_name, k->name, name);
    *name_id = slot ? slot->index : UINT32_MAX;
    k->by_name.count -= slot && slot->index == UINT32_MAX; /* it was counted as taken, and stays empty */
    return slot != NULL;
}

fl_status fl_kind_of(fl_kind_table *k, const char *name, const uint32_t grid[3], const uint32_t block[3], bool add,
                     uint32_t *index, fl_diag *d) {
    key at = {0};
    *index = UINT32_MAX;
    if (!name_of(k, name, add, &at.name_id))
        return fl_no_memory(d, "the kinds of kernels");
    if (at.name_id == UINT32_MAX)
        return FL_OK;
    memcpy(at.grid, grid, sizeof at.grid);
    memcpy(at.block, block, sizeof at.block);
    fl_intern_slot *slot = fl_intern_find(&k->by_kind, fl_hash(&at, sizeof at), same, k->kind, &at);
    if (!slot || (slot->index == UINT32_MAX && fl_grow(&k->kind, &k->room, k->count + 1, sizeof *k->kind)))
        return fl_no_memory(d, "the kinds of kernels");
    if (slot->index == UINT32_MAX && !add) {
        k->by_kind.count--;
        return FL_OK;
    }
    if (slot->index == UINT32_MAX) {
        fl_kernel_kind *new = &k->kind[k->count];
        *new = (fl_kernel_kind){.name = k->name[at.name_id], .name_id = at.name_id};
        memcpy(new->grid, grid, sizeof new->grid);
        memcpy(new->block, block, sizeof new->block);
        slot->index = (uint32_t)k->count++;
    }
    *index = slot->index;
    return FL_OK;
}

void fl_kind_table_free(fl_kind_table *k) {
    for (size_t i = 0; i < k->name_count; i++)
        free(k->name[i]);
    free(k->name);
    free(k->kind);
    fl_intern_free(&k->by_name);
    fl_intern_free(&k->by_kind);
    *k = (fl_kind_table){0};
}

/* ---- markers that count as iterations ---- */

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

/* ---- records that a policy switches on and off ---- */

typedef struct fl_record_state { /* of one GPU */
    bool on, was;                /* from at_ns on, and up to it */
    bool shown;                  /* a sample was shown since */
    int64_t at_ns;
} fl_record_state;

fl_status fl_record_switch_open(fl_record_switch *s, uint32_t gpus, bool on, fl_diag *d) {
    *s = (fl_record_switch){.gpu = calloc(gpus + 1, sizeof *s->gpu), .count = gpus};
    if (!s->gpu)
        return fl_no_memory(d, "the activity records");
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
        return fl_no_memory(d, "the activity records");
    size_t kept = 0;
    for (uint64_t k = 0; k < sample->record_count; k++)
        if (seen(s, &sample->record[k]))
            s->kept[kept++] = sample->record[k];
    sample->record = any || kept ? s->kept : NULL;
    sample->record_count = kept;
    sample->record_lost = any ? sample->record_lost : 0;
    return FL_OK;
}
