/* Events of Kineto's JSON, one after the other, from a stream of text. */
#include "traces/profiler/inside.h"

#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if !FL_HAS_YAJL

fl_status fl_kineto_events(const char *path, const fl_kineto_reader *r, fl_kineto_file *file, fl_diag *d) {
    (void)r;
    *file = (fl_kineto_file){0};
    return fl_no_library(d, path, "the file is JSON of a profiler", "YAJL");
}

#else

#include <yajl/yajl_parse.h>

#define FL_KINETO_NAME_MAX (256u << 10) /* bytes; longer names are refused */

enum { CHUNK = 64 << 10, QUIET_MAX = (16 << 20) / CHUNK, DEPTH_MAX = 200 };

typedef enum place { BEFORE, TOP, EVENTS, EVENT, ARGS, GRID, BLOCK, DEVICES, DEVICE, RANKS } place;

typedef enum key {
    KEY_NONE = -1, /* 0 and up: fl_kineto_key */
    KEY_PHASE = FL_KINETO_NUMBERS,
    KEY_CATEGORY,
    KEY_NAME,
    KEY_ARGS,
    KEY_SYNC,
    KEY_GRID,
    KEY_BLOCK,
    KEY_EVENTS,
    KEY_BASE,
    KEY_DEVICES,
    KEY_ID,
    KEY_RANKS,
    KEY_RANK
} key;

typedef struct parser {
    const fl_kineto_reader *r;
    fl_kineto_file *file;
    const char *path;
    yajl_handle yajl;
    fl_diag *d;
    fl_status status;
    place at;
    int key;
    int depth, skip; /* skip: depth within what is not looked at */
    bool heard;      /* something since the last chunk */
    bool bare;       /* the file is a list of events */
    fl_json_mend mend;
    fl_kineto_event e;
    fl_kineto_device device;
    char *name;
    size_t name_room;
    /* the chunk at hand and how far its lines are counted */
    const char *chunk;
    size_t counted;
    int64_t line, column;
} parser;

/* ---- where we are in the text ---- */

static void count_to(parser *p, size_t offset) {
    const char *from = p->chunk + p->counted, *end = p->chunk + offset;
    for (const char *newline; from < end && (newline = memchr(from, '\n', (size_t)(end - from))); from = newline + 1) {
        p->line++;
        p->column = 0;
    }
    p->column += end > from ? end - from : 0;
    p->counted = offset > p->counted ? offset : p->counted;
}

static int refuse(parser *p, const char *message) {
    count_to(p, yajl_get_bytes_consumed(p->yajl));
    p->status = fl_fail(p->d, FL_BAD_INPUT, p->path, p->line, p->column ? p->column : 1, "%s", message);
    return 0;
}

static int out_of_memory(parser *p) {
    p->status = fl_no_memory(p->d, p->path);
    return 0;
}

/* ---- values ---- */

static int on_number(void *user, const char *text, size_t size) {
    parser *p = user;
    int64_t value;
    p->heard = true;
    if (p->skip)
        return 1;
    if (p->at == TOP && p->key == KEY_BASE) {
        if (!fl_json_whole(text, size, &value) || value < 0)
            return refuse(p, "baseTimeNanoseconds is no time, expected whole nanoseconds");
        p->file->base_ns = value;
    } else if ((p->at == EVENT || p->at == ARGS) && p->key >= 0 && p->key < FL_KINETO_NUMBERS) {
        bool time = p->key == FL_KINETO_TS || p->key == FL_KINETO_DUR;
        p->e.known[p->key] = time ? fl_us_to_ns(text, size, &value) : fl_json_whole(text, size, &value);
        if (time && !p->e.known[p->key] && size && strchr("-0123456789", *text)) { /* beyond all times, not unknown */
            value = *text == '-' ? -INT64_MAX : INT64_MAX;
            p->e.known[p->key] = true;
        }
        p->e.number[p->key] = p->e.known[p->key] ? value : 0;
    } else if (p->at == GRID || p->at == BLOCK) {
        uint8_t *count = p->at == GRID ? &p->e.grid_count : &p->e.block_count;
        p->e.wrong_size |= !fl_json_whole(text, size, &value) || value < 0 || value > UINT32_MAX;
        if (*count < 3 && !p->e.wrong_size)
            (p->at == GRID ? p->e.grid : p->e.block)[(*count)++] = (uint32_t)value;
    } else if (p->at == RANKS && p->key == KEY_RANK) {
        p->file->has_rank = fl_json_whole(text, size, &p->file->rank) && p->file->rank >= 0;
    } else if (p->at == DEVICE && p->key == KEY_ID) {
        p->device.id = fl_json_whole(text, size, &value) ? value : -1;
    }
    return 1;
}

static void copy_text(char *to, size_t room, const char *text, size_t size) {
    size_t kept = size < room ? size : room - 1;
    memcpy(to, text, kept);
    to[kept] = '\0';
}

static int on_string(void *user, const unsigned char *bytes, size_t size) {
    parser *p = user;
    const char *text = (const char *)bytes;
    p->heard = true;
    if (p->skip)
        return 1;
    if (p->at == EVENT && p->key == KEY_NAME) {
        if (size > FL_KINETO_NAME_MAX)
            return refuse(p, "name is longer than 262144 bytes");
        if (fl_grow(&p->name, &p->name_room, size + 1, 1))
            return out_of_memory(p);
        copy_text(p->name, size + 1, text, size);
        p->e.name = p->name;
        p->e.name_size = size;
        p->e.has_name = true;
    } else if (p->at == EVENT && p->key == KEY_CATEGORY) {
        copy_text(p->e.category, sizeof p->e.category, text, size);
    } else if (p->at == EVENT && p->key == KEY_PHASE) {
        p->e.phase = size == 1 ? *text : '?';
    } else if (p->at == ARGS && p->key == KEY_SYNC) {
        copy_text(p->e.sync, sizeof p->e.sync, text, size);
    } else if (p->at == EVENT && (p->key == FL_KINETO_TS || p->key == FL_KINETO_DUR)) {
        return on_number(user, text, size); /* as viewers take it */
    } else if (p->at == DEVICE && p->key == KEY_NAME) {
        copy_text(p->device.name, sizeof p->device.name, text, size);
    }
    return 1;
}

static int on_null(void *user) {
    ((parser *)user)->heard = true;
    return 1;
}

static int on_boolean(void *user, int value) {
    (void)value;
    return on_null(user);
}

/* ---- objects and arrays ---- */

static int descend(parser *p) {
    p->heard = true;
    if (++p->depth > DEPTH_MAX)
        return refuse(p, "values are nested more than 200 deep");
    return 1;
}

static int on_start_map(void *user) {
    parser *p = user;
    if (!descend(p))
        return 0;
    if (p->skip) {
        p->skip++;
    } else if (p->at == BEFORE) {
        p->at = TOP;
    } else if (p->at == EVENTS) {
        p->at = EVENT;
        p->e = (fl_kineto_event){.name = ""};
        count_to(p, yajl_get_bytes_consumed(p->yajl));
        p->e.line = p->line;
        p->e.column = p->column ? p->column : 1;
    } else if (p->at == EVENT && p->key == KEY_ARGS) {
        p->at = ARGS;
    } else if (p->at == TOP && p->key == KEY_RANKS) {
        p->at = RANKS;
    } else if (p->at == DEVICES) {
        p->at = DEVICE;
        p->device = (fl_kineto_device){.id = -1};
    } else {
        p->skip = 1;
    }
    p->key = KEY_NONE;
    return 1;
}

static int on_start_array(void *user) {
    parser *p = user;
    if (!descend(p))
        return 0;
    if (p->skip) {
        p->skip++;
    } else if (p->at == BEFORE || (p->at == TOP && p->key == KEY_EVENTS)) { /* a bare list of events is legal too */
        p->bare = p->at == BEFORE;
        p->at = EVENTS;
        p->file->has_events = true;
    } else if (p->at == TOP && p->key == KEY_DEVICES) {
        p->at = DEVICES;
    } else if (p->at == ARGS && (p->key == KEY_GRID || p->key == KEY_BLOCK)) {
        p->at = p->key == KEY_GRID ? GRID : BLOCK;
        *(p->at == GRID ? &p->e.grid_count : &p->e.block_count) = 0;
    } else {
        p->skip = 1;
    }
    return 1;
}

static int on_end_map(void *user) {
    parser *p = user;
    p->heard = true;
    p->depth--;
    p->key = KEY_NONE;
    if (p->skip) {
        p->skip--;
    } else if (p->at == ARGS) {
        p->at = EVENT;
    } else if (p->at == RANKS) {
        p->at = TOP;
    } else if (p->at == DEVICE) {
        if (p->file->device_count < sizeof p->file->device / sizeof *p->file->device)
            p->file->device[p->file->device_count++] = p->device;
        p->at = DEVICES;
    } else if (p->at == EVENT) {
        p->at = EVENTS;
        p->status = p->r->event(p->r->user, &p->e, p->d);
        return !p->status;
    }
    return 1;
}

static int on_end_array(void *user) {
    parser *p = user;
    p->heard = true;
    p->depth--;
    if (p->skip)
        p->skip--;
    else if (p->at == GRID || p->at == BLOCK)
        p->at = ARGS;
    else
        p->at = TOP;
    return 1;
}

static int on_key(void *user, const unsigned char *text, size_t size) {
    static const struct {
        place at;
        int key;
        const char *text;
    } KEYS[] = {
        {EVENT, KEY_PHASE, "ph"},
        {EVENT, KEY_CATEGORY, "cat"},
        {EVENT, KEY_NAME, "name"},
        {EVENT, FL_KINETO_PID, "pid"},
        {EVENT, FL_KINETO_TID, "tid"},
        {EVENT, FL_KINETO_TS, "ts"},
        {EVENT, FL_KINETO_DUR, "dur"},
        {EVENT, KEY_ARGS, "args"},
        {ARGS, FL_KINETO_DEVICE, "device"},
        {ARGS, FL_KINETO_STREAM, "stream"},
        {ARGS, FL_KINETO_CONTEXT, "context"},
        {ARGS, FL_KINETO_CORRELATION, "correlation"},
        {ARGS, FL_KINETO_BYTES, "bytes"},
        {ARGS, FL_KINETO_WAIT_STREAM, "wait_on_stream"},
        {ARGS, FL_KINETO_WAIT_RECORD, "wait_on_cuda_event_record_corr_id"},
        {ARGS, KEY_SYNC, "cuda_sync_kind"},
        {ARGS, KEY_GRID, "grid"},
        {ARGS, KEY_BLOCK, "block"},
        {TOP, KEY_EVENTS, "traceEvents"},
        {TOP, KEY_BASE, "baseTimeNanoseconds"},
        {TOP, KEY_DEVICES, "deviceProperties"},
        {TOP, KEY_RANKS, "distributedInfo"},
        {RANKS, KEY_RANK, "rank"},
        {DEVICE, KEY_ID, "id"},
        {DEVICE, KEY_NAME, "name"},
    };
    parser *p = user;
    p->heard = true;
    p->key = KEY_NONE;
    if (p->skip)
        return 1;
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (KEYS[i].at == p->at && KEYS[i].text[0] == (char)*text && strlen(KEYS[i].text) == size &&
            memcmp(KEYS[i].text, text, size) == 0) {
            p->key = KEYS[i].key;
            break;
        }
    return 1;
}

/* ---- the file ---- */

static fl_status check_parsed(parser *p, yajl_status result) {
    if (result == yajl_status_ok || p->status)
        return p->status;
    unsigned char *text = yajl_get_error(p->yajl, 0, NULL, 0);
    char message[160] = "this is no JSON";
    if (text)
        copy_text(message, sizeof message, (const char *)text, strcspn((const char *)text, "\n"));
    yajl_free_error(p->yajl, text);
    count_to(p, yajl_get_bytes_consumed(p->yajl));
    return p->status = fl_fail(p->d, FL_BAD_INPUT, p->path, p->line, p->column ? p->column : 1,
                               "%s, expected the JSON of a profiler", message);
}

/* Reads a chunk behind the bytes that the last one left over, and mends both. *given: how many to parse. */
static fl_status next_chunk(parser *p, fl_gunzip *g, char *chunk, size_t *left, size_t *given, bool *end) {
    size_t got = 0;
    fl_status status = fl_gunzip_read(g, chunk + *left, CHUNK, &got, p->d);
    *end = got < CHUNK;
    *left += got;
    *given = status ? 0 : fl_json_mend_bytes(&p->mend, chunk, *left, *end);
    *left -= *given;
    return status;
}

static fl_status parse_chunks(parser *p, fl_gunzip *g, char *chunk) {
    unsigned quiet = 0;
    size_t left = 0, given = 0;
    bool end = false;
    for (size_t n = 0; !end && !p->status; n++) {
        const fl_status status = next_chunk(p, g, chunk, &left, &given, &end);
        if (status)
            return status;
        if (n == 0 && given == 0)
            return fl_fail(p->d, FL_BAD_INPUT, p->path, 0, 0, "the file is empty");
        const size_t bom = n == 0 && given >= 3 && memcmp(chunk, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        p->chunk = chunk + bom;
        p->counted = 0;
        p->heard = false;
        check_parsed(p, yajl_parse(p->yajl, (const unsigned char *)p->chunk, given - bom));
        if (p->status)
            return p->status;
        count_to(p, given - bom);
        memmove(chunk, chunk + given, left);
        quiet = p->heard ? 0 : quiet + 1;
        if (quiet > QUIET_MAX)
            return fl_fail(p->d, FL_BAD_INPUT, p->path, p->line, p->column,
                           "a text is longer than 16777216 bytes, expected the JSON of a profiler");
        if (p->r->progress && n % 64 == 0)
            p->r->progress(p->r->progress_user, fl_gunzip_share(g));
    }
    p->file->slashes = p->mend.slashes;
    p->file->unknown = p->mend.unknown;
    /* A list of events that is no part of an object may lack its end: the writer need not know when it ends. */
    p->file->open_end = p->bare && p->at == EVENTS && p->depth == 1;
    if (!p->status && !p->file->open_end && yajl_complete_parse(p->yajl) != yajl_status_ok)
        p->status = fl_fail(p->d, FL_BAD_INPUT, p->path, p->line, p->column ? p->column : 1,
                            "the file ends within its JSON, expected it whole");
    return p->status;
}

/* Apart, so that no variable of the caller changes between the place where it is set and the jump to it. */
static fl_status parse(parser *p, fl_yajl_memory *memory, fl_gunzip *g, char *chunk) {
    static const yajl_callbacks CALLS = {.yajl_null = on_null,
                                         .yajl_boolean = on_boolean,
                                         .yajl_number = on_number,
                                         .yajl_string = on_string,
                                         .yajl_start_map = on_start_map,
                                         .yajl_map_key = on_key,
                                         .yajl_end_map = on_end_map,
                                         .yajl_start_array = on_start_array,
                                         .yajl_end_array = on_end_array};
    yajl_alloc_funcs functions = fl_yajl_functions(memory); /* copied by yajl_alloc */
    if (setjmp(memory->out) || !(p->yajl = yajl_alloc(&CALLS, &functions, p)))
        return fl_no_memory(p->d, p->path);
    yajl_config(p->yajl, yajl_dont_validate_strings, 1); /* names are cleaned where they are used */
    return parse_chunks(p, g, chunk);
}

fl_status fl_kineto_events(const char *path, const fl_kineto_reader *r, fl_kineto_file *file, fl_diag *d) {
    parser p = {.r = r, .file = file, .path = path, .d = d, .key = KEY_NONE, .line = 1};
    fl_yajl_memory memory = {.first = NULL};
    *file = (fl_kineto_file){0};
    fl_gunzip *g = fl_gunzip_open(path, d);
    if (!g)
        return d ? d->status : FL_BAD_INPUT;
    char *chunk = malloc(CHUNK + FL_MEND_ROOM);
    fl_status status = chunk ? parse(&p, &memory, g, chunk) : fl_no_memory(d, path);
    if (!status && !file->has_events)
        status = fl_fail(d, FL_BAD_INPUT, path, 1, 1, "no list of traceEvents, expected the JSON of a profiler");
    fl_yajl_memory_free(&memory);
    free(chunk);
    free(p.name);
    fl_gunzip_close(g);
    return status;
}

#endif
