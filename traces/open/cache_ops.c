/* The ops of a cache: blocks of columns, packed and unpacked. */
#include "traces/open/inside.h"

#include "traces/files/files.h"
#include "traces/io/records.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEP, LENGTH, LEAD, BYTES, KIND, DEVICE, PROCESS, STREAM, THREAD, SM_MHZ, WAITS, FIRST, COLUMNS };
enum { HEAD = COLUMNS * 9 }; /* of a block: the least of each column, then the width of each */

typedef struct part { /* what a thread unpacks by itself */
    uint64_t offset;  /* of its first block */
    uint64_t before;  /* start of the op before it */
} part;

static size_t parts_of(size_t count) { return (count + FL_CACHE_PART - 1) / FL_CACHE_PART; }

size_t fl_cache_ops_room(size_t count) {
    return parts_of(count) * sizeof(part) + (count / FL_CACHE_BLOCK + 1) * (HEAD + 8) +
           count * COLUMNS * sizeof(uint64_t);
}

/* Differences wrap around, so that any values come back. */
static size_t pack_column(const uint64_t *value, size_t count, unsigned char *head, unsigned char *at, int column) {
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        least = (int64_t)value[i] < least ? (int64_t)value[i] : least;
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++)
        most |= value[i] - (uint64_t)least;
    unsigned width = most == 0 ? 0 : most <= 0xff ? 1 : most <= 0xffff ? 2 : most <= 0xffffffff ? 4 : 8;
    memcpy(head + 8 * column, &least, sizeof least);
    head[8 * COLUMNS + column] = (unsigned char)width;
    for (size_t i = 0; width && i < count; i++) {
        uint64_t rest = value[i] - (uint64_t)least;
        for (unsigned k = 0; k < width; k++)
            *at++ = (unsigned char)(rest >> 8 * k);
    }
    return width * count;
}

size_t fl_cache_ops_pack(const fl_kernel_trace *t, unsigned char *bytes) {
    uint64_t column[COLUMNS][FL_CACHE_BLOCK];
    unsigned char *at = bytes + parts_of(t->op_count) * sizeof(part);
    uint64_t before = 0;
    for (size_t first = 0; first < t->op_count; first += FL_CACHE_BLOCK) {
        const part here = {(uint64_t)(at - bytes), before};
        if (first % FL_CACHE_PART == 0)
            memcpy(bytes + first / FL_CACHE_PART * sizeof here, &here, sizeof here);
        size_t count = t->op_count - first < FL_CACHE_BLOCK ? t->op_count - first : FL_CACHE_BLOCK;
        for (size_t i = 0; i < count; i++) {
            const fl_trace_op *op = &t->ops[first + i];
            uint64_t start = (uint64_t)op->start_ns;
            column[STEP][i] = start - before;
            column[LENGTH][i] = (uint64_t)op->end_ns - start;
            column[LEAD][i] = op->launch_ns == INT64_MIN ? 0 : start - (uint64_t)op->launch_ns + 1;
            column[BYTES][i] = (uint64_t)op->bytes;
            column[KIND][i] = op->kind;
            column[DEVICE][i] = (uint64_t)op->device;
            column[PROCESS][i] = (uint64_t)op->process;
            column[STREAM][i] = (uint64_t)op->stream;
            column[THREAD][i] = (uint64_t)op->host_thread;
            column[SM_MHZ][i] = op->sm_mhz;
            column[WAITS][i] = op->waits_count;
            column[FIRST][i] = op->waits_first;
            before = start;
        }
        unsigned char *head = at;
        at += HEAD;
        for (int c = 0; c < COLUMNS; c++)
            at += pack_column(column[c], count, head, at, c);
    }
    return (size_t)(at - bytes);
}

#define UNPACK(type)                                                                                                   \
    for (size_t i = 0; i < count; i++) {                                                                               \
        type rest;                                                                                                     \
        memcpy(&rest, at + i * sizeof rest, sizeof rest);                                                              \
        value[i] = least + rest;                                                                                       \
    }                                                                                                                  \
    return true;

/* False for a width that there is not. */
static inline bool unpack_column(uint64_t *restrict value, size_t count, const unsigned char *restrict at,
                                 uint64_t least, unsigned width) {
    switch (width) {
    case 0:
        for (size_t i = 0; i < count; i++)
            value[i] = least;
        return true;
    case 1:
        UNPACK(uint8_t)
    case 2:
        UNPACK(uint16_t)
    case 4:
        UNPACK(uint32_t)
    case 8:
        UNPACK(uint64_t)
    default:
        return false;
    }
}

/* Of a whole block: with a count known to the compiler the loops become vectors. */
static bool unpack_block(uint64_t *value, const unsigned char *at, uint64_t least, unsigned width) {
    return unpack_column(value, FL_CACHE_BLOCK, at, least, width);
}

typedef struct kind_bound { /* what an op's type is, by its kind */
    const uint8_t *type;
    size_t kinds, waits;
} kind_bound;

/* Puts one block together. True where some field is none that a reader could have made. */
static bool assemble(uint64_t column[COLUMNS][FL_CACHE_BLOCK], size_t count, const kind_bound *b, uint64_t *before,
                     fl_trace_op *ops) {
    uint64_t start = *before, odd = 0, outside = 0;
    for (size_t i = 0; i < count; i++) {
        start += column[STEP][i];
        uint64_t end = start + column[LENGTH][i], lead = column[LEAD][i], kind = column[KIND][i];
        uint64_t waits = column[WAITS][i], first = column[FIRST][i];
        uint64_t launch = lead ? start - (lead - 1) : (uint64_t)INT64_MIN;
        outside |= (uint64_t)(kind >= b->kinds) | (uint64_t)(lead > start + 1) | (uint64_t)(waits > UINT16_MAX) |
                   (uint64_t)(first > UINT32_MAX) | (uint64_t)(waits && first + waits > b->waits);
        odd |= start | end | column[LENGTH][i]; /* none has the sign bit */
        outside |= (column[DEVICE][i] | column[PROCESS][i] | column[STREAM][i]) >> 31;
        outside |= (uint64_t)(column[THREAD][i] + 1 > (uint64_t)INT32_MAX + 1) |
                   (uint64_t)(column[BYTES][i] + 1 > (uint64_t)INT64_MAX + 1); /* -1: not known */
        outside |= column[SM_MHZ][i] >> 16;
        ops[i] = (fl_trace_op){.start_ns = (int64_t)start,
                               .end_ns = (int64_t)end,
                               .launch_ns = (int64_t)launch,
                               .bytes = (int64_t)column[BYTES][i],
                               .kind = (uint32_t)kind,
                               .device = (int32_t)column[DEVICE][i],
                               .process = (int32_t)column[PROCESS][i],
                               .stream = (int32_t)column[STREAM][i],
                               .host_thread = (int32_t)column[THREAD][i],
                               .waits_first = (uint32_t)first,
                               .waits_count = (uint16_t)waits,
                               .sm_mhz = (uint16_t)column[SM_MHZ][i],
                               .type = kind < b->kinds ? b->type[kind] : 0};
    }
    *before = start;
    return outside || odd >> 63;
}

static bool waits_sound(const fl_kernel_trace *t, const fl_trace_op *op, size_t row) {
    for (uint32_t k = 0; k < op->waits_count; k++)
        if (t->waits[op->waits_first + k] >= row)
            return false;
    return true;
}

typedef struct job {
    const unsigned char *bytes;
    const fl_kernel_trace *t;
    kind_bound bound;
    fl_trace_op *ops;
    size_t count;      /* of all ops */
    const part *parts; /* one more than there are: the end */
    size_t first_part, parts_end;
    bool sound;
} job;

static bool unpack_part(const job *j, size_t p) {
    uint64_t column[COLUMNS][FL_CACHE_BLOCK], before = j->parts[p].before;
    const unsigned char *at = j->bytes + j->parts[p].offset, *end = j->bytes + j->parts[p + 1].offset;
    const size_t stop = j->count - p * FL_CACHE_PART < FL_CACHE_PART ? j->count : (p + 1) * FL_CACHE_PART;
    for (size_t first = p * FL_CACHE_PART; first < stop; first += FL_CACHE_BLOCK) {
        size_t n = stop - first < FL_CACHE_BLOCK ? stop - first : FL_CACHE_BLOCK;
        const unsigned char *head = at;
        if ((size_t)(end - at) < HEAD)
            return false;
        at += HEAD;
        for (int c = 0; c < COLUMNS; c++) {
            uint64_t least;
            unsigned width = head[8 * COLUMNS + c];
            memcpy(&least, head + 8 * c, sizeof least);
            if (width > 8 || (size_t)(end - at) < width * n ||
                !(n == FL_CACHE_BLOCK ? unpack_block(column[c], at, least, width)
                                      : unpack_column(column[c], n, at, least, width)))
                return false;
            at += width * n;
        }
        if (assemble(column, n, &j->bound, &before, j->ops + first))
            return false;
        for (size_t i = 0; j->t->wait_count && i < n; i++)
            if (!waits_sound(j->t, &j->ops[first + i], first + i))
                return false;
    }
    return at == end && (stop == j->count || before == j->parts[p + 1].before);
}

static void *unpack_parts(void *user) {
    job *j = user;
    j->sound = true;
    for (size_t p = j->first_part; p < j->parts_end && j->sound; p++)
        j->sound = unpack_part(j, p);
    return NULL;
}

/* Most of the time goes into memory that is touched for the first time, which several threads do at once. */
static bool unpack_all(const job *like, size_t parts) {
    enum { THREADS = 4 };
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = processors < 1 ? 1 : processors < THREADS ? (size_t)processors : THREADS;
    threads = parts < threads ? parts : threads;
    job jobs[THREADS];
    pthread_t thread[THREADS];
    bool started[THREADS] = {false}, sound = true;
    for (size_t i = 0; i < threads; i++) {
        jobs[i] = *like;
        jobs[i].first_part = parts * i / threads;
        jobs[i].parts_end = parts * (i + 1) / threads;
        started[i] = i > 0 && pthread_create(&thread[i], NULL, unpack_parts, &jobs[i]) == 0;
    }
    for (size_t i = 0; i < threads; i++)
        if (!started[i])
            unpack_parts(&jobs[i]);
    for (size_t i = 0; i < threads; i++) {
        if (started[i])
            pthread_join(thread[i], NULL);
        sound = sound && jobs[i].sound;
    }
    return sound;
}

bool fl_cache_ops_unpack(const unsigned char *bytes, size_t size, fl_kernel_trace *t, fl_trace_op *ops, size_t count) {
    const size_t parts = parts_of(count);
    if (!bytes || !count || parts > size / sizeof(part))
        return false;
    uint8_t *type = malloc(t->kind_count + 1);
    part *table = malloc((parts + 1) * sizeof *table);
    bool sound = type && table;
    if (sound) {
        memcpy(table, bytes, parts * sizeof *table);
        sound = table[0].offset == parts * sizeof *table && table[0].before == 0;
    }
    for (size_t p = 1; sound && p < parts; p++)
        sound = table[p].offset >= table[p - 1].offset && table[p].offset <= size;
    for (size_t k = 0; sound && k < t->kind_count; k++)
        type[k] = (uint8_t)fl_op_type_of(t->names[t->kinds[k].name]);
    if (sound) {
        job j = {bytes, t, {type, t->kind_count, t->wait_count}, ops, count, table, 0, 0, false};
        table[parts] = (part){size, 0};
        sound = unpack_all(&j, parts);
    }
    free(type);
    free(table);
    return sound;
}
