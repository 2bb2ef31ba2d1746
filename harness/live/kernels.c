#include "harness/live/kernels.h"

#include "harness/live/ring.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AT_ONCE = 1024 };

typedef struct source { /* one program */
    fl_ring ring;
    char path[512];
    ino_t inode;
    uint64_t lost; /* of it, told already */
    bool over;     /* ended or killed, and emptied */
} source;

struct fl_kernels {
    char folder[400];
    source *source;
    size_t source_count, source_room;
    fl_kernel_kind *kind;
    size_t kind_count, kind_room;
    fl_kernel_record *record;
    size_t record_count, record_room, program_room;
    uint32_t *program; /* of each record */
    fl_kernels_counts counts;
};

static fl_status no_memory(fl_diag *d) { return fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the kernels"); }

fl_status fl_kernels_open(fl_kernels **out, const char *folder, fl_diag *d) {
    *out = NULL;
    if (mkdir(folder, 0700) && errno != EEXIST)
        return fl_fail(d, FL_IO, folder, 0, 0, "cannot make the folder: %s", fl_reason(errno));
    fl_kernels *k = calloc(1, sizeof *k);
    if (!k)
        return no_memory(d);
    snprintf(k->folder, sizeof k->folder, "%s", folder);
    *out = k;
    return FL_OK;
}

void fl_kernels_close(fl_kernels *k) {
    if (!k)
        return;
    for (size_t i = 0; i < k->source_count; i++) {
        if (k->source[i].over)
            unlink(k->source[i].path);
        fl_ring_close(&k->source[i].ring);
    }
    for (size_t i = 0; i < k->kind_count; i++)
        free((char *)(uintptr_t)k->kind[i].name);
    free(k->source);
    free(k->kind);
    free(k->record);
    free(k->program);
    free(k);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static fl_status add_source(fl_kernels *k, const char *name, fl_diag *d) {
    source s = {0};
    struct stat st;
    snprintf(s.path, sizeof s.path, "%s/%.80s", k->folder, name);
    if (stat(s.path, &st))
        return FL_OK;
    s.inode = st.st_ino;
    for (size_t i = 0; i < k->source_count; i++)
        if (k->source[i].inode == s.inode && !strcmp(k->source[i].path, s.path))
            return FL_OK;
    if (fl_ring_open(&s.ring, s.path)) /* not a ring: not ours */
        return FL_OK;
    if (fl_grow(&k->source, &k->source_room, k->source_count + 1, sizeof *k->source)) {
        fl_ring_close(&s.ring);
        return no_memory(d);
    }
    k->source[k->source_count++] = s;
    k->counts.programs++;
    return FL_OK;
}

static fl_status find_sources(fl_kernels *k, fl_diag *d) {
    fl_status s = FL_OK;
    DIR *folder = opendir(k->folder);
    for (struct dirent *e; !s && folder && (e = readdir(folder));) {
        size_t size = strlen(e->d_name);
        if (size > 5 && e->d_name[0] != '.' && !strcmp(e->d_name + size - 5, ".ring"))
            s = add_source(k, e->d_name, d);
    }
    if (folder)
        closedir(folder);
    return s;
}

/* ---- records: streams of further contexts get numbers of their own
 * ----------------------------------------------------------------------------------------------------- */

static fl_status kind_of(fl_kernels *k, const source *s, const fl_ring_record *r, uint32_t *kind, fl_diag *d) {
    const char *name = fl_ring_name_at(&s->ring, r->name);
    uint32_t name_id = (uint32_t)k->kind_count;
    for (size_t i = 0; i < k->kind_count; i++) {
        const fl_kernel_kind *at = &k->kind[i];
        if (strcmp(at->name, name) != 0)
            continue;
        name_id = at->name_id;
        if (!memcmp(at->grid, r->grid, sizeof at->grid) && !memcmp(at->block, r->block, sizeof at->block)) {
            *kind = (uint32_t)i;
            return FL_OK;
        }
    }
    char *copy = strdup(name);
    if (!copy || fl_grow(&k->kind, &k->kind_room, k->kind_count + 1, sizeof *k->kind)) {
        free(copy);
        return no_memory(d);
    }
    fl_kernel_kind *new = &k->kind[k->kind_count];
    *new = (fl_kernel_kind){.name = copy, .name_id = name_id};
    memcpy(new->grid, r->grid, sizeof new->grid);
    memcpy(new->block, r->block, sizeof new->block);
    *kind = (uint32_t)k->kind_count++;
    return FL_OK;
}

static fl_status add_record(fl_kernels *k, const source *s, const fl_ring_record *r, int64_t origin_ns, fl_diag *d) {
    fl_kernel_record record = {.start_ns = r->start_ns - origin_ns,
                               .end_ns = r->end_ns < 0 ? -1 : r->end_ns - origin_ns,
                               .stream = r->context > 1 ? (r->context << 16) + r->stream : r->stream,
                               .gpu = r->gpu,
                               .flags = (uint32_t)(s - k->source)};
    if (record.start_ns < 0) /* began before this host did */
        return FL_OK;
    fl_status status = kind_of(k, s, r, &record.kind, d);
    if (status)
        return status;
    if (fl_grow(&k->record, &k->record_room, k->record_count + 1, sizeof *k->record))
        return no_memory(d);
    k->record[k->record_count++] = record;
    return FL_OK;
}

/* Whether the program is over is asked before the ring is emptied: what it put in last is then in. */
static fl_status empty(fl_kernels *k, source *s, int64_t origin_ns, uint32_t gpus, uint64_t *lost, fl_diag *d) {
    fl_ring_record batch[AT_ONCE];
    const bool ended = atomic_load(&s->ring.head->ended), gone = kill(s->ring.head->pid, 0) && errno == ESRCH;
    fl_status status = FL_OK;
    size_t n = AT_ONCE;
    while (!status && n == AT_ONCE) {
        n = fl_ring_take(&s->ring, batch, AT_ONCE, &k->counts.damaged);
        k->counts.consumed += n;
        for (size_t i = 0; !status && i < n; i++)
            if (batch[i].gpu < gpus)
                status = add_record(k, s, &batch[i], origin_ns, d);
    }
    const uint64_t dropped = atomic_load(&s->ring.head->dropped);
    *lost += dropped - s->lost;
    s->lost = dropped;
    if (ended || gone) {
        s->over = true;
        k->counts.ends_missing += !ended;
    }
    return status;
}

static int by_end(const void *a, const void *b) {
    const fl_kernel_record *x = a, *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? 1 : -1;
    return x->start_ns > y->start_ns ? 1 : x->start_ns < y->start_ns ? -1 : 0;
}

fl_status fl_kernels_take(fl_kernels *k, int64_t origin_ns, fl_sample *sample, fl_diag *d) {
    uint64_t lost = 0;
    k->record_count = 0;
    fl_status s = find_sources(k, d);
    k->counts.running = 0;
    for (size_t i = 0; !s && i < k->source_count; i++)
        if (!k->source[i].over) {
            s = empty(k, &k->source[i], origin_ns, sample->gpu_count, &lost, d);
            k->counts.running += !k->source[i].over;
        }
    if (k->record_count)
        qsort(k->record, k->record_count, sizeof *k->record, by_end);
    if (!s && fl_grow(&k->program, &k->program_room, k->record_count + 1, sizeof *k->program))
        s = no_memory(d);
    for (size_t i = 0; !s && i < k->record_count; i++) { /* the flags only kept it through the sorting */
        k->program[i] = k->record[i].flags;
        k->record[i].flags = 0;
    }
    k->counts.lost += lost;
    sample->record = k->record_count ? k->record : NULL;
    sample->record_count = k->record_count;
    sample->record_lost = lost;
    sample->kind = k->kind;
    sample->kind_count = (uint32_t)k->kind_count;
    return s;
}

fl_kernels_counts fl_kernels_count(const fl_kernels *k) { return k->counts; }

const uint32_t *fl_kernels_programs(const fl_kernels *k) { return k->program; }
