/* Freeing the structs of records.h, heads of files, and the progress of long work. */
#include "traces/io/inside.h"

#include "traces/io/io.h"

#include "traces/io/records.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- progress ---- */

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

/* ---- records ---- */

static void free_texts(char **text, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(text[i]);
    free(text);
}

void fl_head_free(fl_head *h) {
    for (size_t i = 0; i < h->count; i++) {
        free(h->entry[i].key);
        free(h->entry[i].value);
    }
    free(h->entry);
    memset(h, 0, sizeof *h);
}

const char *fl_head_get(const fl_head *h, const char *key) {
    for (size_t i = 0; i < h->count; i++)
        if (strcmp(h->entry[i].key, key) == 0)
            return h->entry[i].value;
    return NULL;
}

int64_t fl_head_line(const fl_head *h, const char *key) {
    for (size_t i = 0; i < h->count; i++)
        if (strcmp(h->entry[i].key, key) == 0)
            return h->entry[i].line;
    return 0;
}

static fl_status append(fl_head *h, const char *key, const char *value) {
    char *new_key = strdup(key), *new_value = strdup(value);
    if (!new_key || !new_value || fl_grow(&h->entry, &h->room, h->count + 1, sizeof *h->entry)) {
        free(new_key);
        free(new_value);
        return FL_NO_MEMORY;
    }
    h->entry[h->count++] = (fl_head_entry){.key = new_key, .value = new_value};
    return FL_OK;
}

static bool same_key(const void *owner, uint32_t index, const void *key) {
    return !strcmp(((const fl_head_entry *)owner)[index].key, key);
}

fl_status fl_head_add(fl_head *h, fl_intern *keys, const char *key, const char *value, bool *twice) {
    for (size_t i = keys->count; i < h->count; i++) { /* those that were there before */
        fl_intern_slot *old = fl_intern_find(keys, fl_hash(h->entry[i].key, strlen(h->entry[i].key)), same_key,
                                             h->entry, h->entry[i].key);
        if (!old)
            return FL_NO_MEMORY;
        old->index = (uint32_t)i;
    }
    fl_intern_slot *slot = fl_intern_find(keys, fl_hash(key, strlen(key)), same_key, h->entry, key);
    if (!slot)
        return FL_NO_MEMORY;
    *twice = slot->index != UINT32_MAX;
    if (*twice)
        return FL_OK;
    const fl_status s = append(h, key, value);
    slot->index = s ? UINT32_MAX : (uint32_t)h->count - 1;
    return s;
}

bool fl_head_merge(fl_head *to, const fl_head *from) {
    fl_intern keys = {0};
    bool twice, good = true;
    for (size_t i = 0; good && i < from->count; i++)
        good = !fl_head_add(to, &keys, from->entry[i].key, from->entry[i].value, &twice);
    fl_intern_free(&keys);
    return good;
}

bool fl_head_set(fl_head *h, const char *key, const char *value) {
    for (size_t i = 0; i < h->count; i++)
        if (strcmp(h->entry[i].key, key) == 0) {
            char *copy = strdup(value);
            if (!copy)
                return false;
            free(h->entry[i].value);
            h->entry[i].value = copy;
            return true;
        }
    return !append(h, key, value);
}

void fl_kernel_trace_free(fl_kernel_trace *t) {
    fl_head_free(&t->head);
    free_texts(t->names, t->name_count);
    free(t->kinds);
    free(t->ops);
    free(t->waits);
    memset(t, 0, sizeof *t);
}

void fl_kinds_free(fl_kinds *k) {
    fl_head_free(&k->head);
    for (size_t i = 0; i < k->count; i++)
        free(k->kind[i].name);
    free(k->kind);
    memset(k, 0, sizeof *k);
}

void fl_telemetry_free(fl_telemetry *t) {
    fl_head_free(&t->head);
    free_texts(t->signal, t->signal_count);
    free(t->t_ns);
    free(t->device);
    free(t->value);
    memset(t, 0, sizeof *t);
}

void fl_target_free(fl_target *t) {
    fl_head_free(&t->head);
    free(t->t_ns);
    free(t->watts);
    *t = (fl_target){0};
}

void fl_sweep_free(fl_sweep *s) {
    fl_head_free(&s->head);
    free_texts(s->names, s->name_count);
    free(s->rows);
    free(s->activity);
    free(s->util);
    memset(s, 0, sizeof *s);
}

void fl_decisions_free(fl_decisions *d) {
    fl_head_free(&d->head);
    free_texts(d->signal, d->signal_count);
    free_texts(d->control, d->control_count);
    free(d->t_ns);
    free(d->delay_ns);
    free(d->line);
    free(d->value);
    free(d->fresh);
    free(d->set);
    for (size_t i = 0; i < d->kind_count; i++)
        free(d->kind[i].name);
    free(d->kind);
    free(d->kernel);
    free(d->lost);
    free(d->kinds_until);
    free(d->kernels_until);
    free_texts(d->servers.signal, d->servers.signal_count);
    free(d->servers.value);
    free(d->servers.fresh);
    free(d->servers.lost);
    free(d->servers.batch);
    free(d->servers.batches_until);
    memset(d, 0, sizeof *d);
}
