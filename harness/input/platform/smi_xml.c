/* Reads what `nvidia-smi -q -x` prints. Elements are identified by their place: the names from <nvidia_smi_log> down,
 * joined by slashes. */
#include "harness/input/platform/platform.h"

#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fl_smi_free(fl_smi *smi) {
    for (size_t i = 0; i < smi->count; i++) {
        free(smi->gpu[i].sm_mhz);
        free(smi->gpu[i].mem_mhz);
    }
    free(smi->gpu);
    *smi = (fl_smi){0};
}

bool fl_is_smi(const char *path) {
    const size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".xml");
}

#if !FL_HAS_EXPAT

fl_status fl_smi_read(const char *path, fl_smi *smi, fl_diag *d) {
    *smi = (fl_smi){0};
    return fl_no_library(d, path, "the file is XML", "expat");
}

#else

#include <expat.h>

#define SIZE_MAX_BYTES (INT64_C(64) << 20)
#define ROOT "nvidia_smi_log"
#define GPU ROOT "/gpu/"
#define CLOCKS GPU "supported_clocks/supported_mem_clock/"
enum { PLACE_SIZE = 256, VALUE_SIZE = 256, DEPTH_MAX = 64, GPUS_MAX = 1024, CLOCKS_MAX = 4096, MHZ_MAX = 100000 };

typedef struct reader {
    XML_Parser parser;
    const char *path;
    fl_smi *smi;
    size_t gpu_room, sm_room, mem_room;
    char place[PLACE_SIZE], value[VALUE_SIZE];
    size_t depth;                               /* elements that are open */
    size_t place_size, value_size, beyond;      /* beyond: elements deeper than the place holds */
    int64_t line, column, gpu_line, gpu_column; /* where the element began, and where the GPU did */
    double mem_mhz;                             /* the memory clock whose SM clocks follow */
    fl_status status;
    fl_diag *d;
} reader;

static void stop(reader *r, fl_status status) {
    r->status = status;
    XML_StopParser(r->parser, XML_FALSE);
}

static void refuse(reader *r, const char *what) {
    stop(r, fl_fail(r->d, FL_BAD_INPUT, fl_input_name(r->path), r->line, r->column, "%s: %s", r->place, what));
}

static fl_smi_gpu *last(const reader *r) { return r->smi->count ? &r->smi->gpu[r->smi->count - 1] : NULL; }

static void open_gpu(reader *r) {
    r->gpu_line = r->line, r->gpu_column = r->column;
    if (r->smi->count >= GPUS_MAX) {
        refuse(r, "more than 1024 GPUs");
        return;
    }
    const fl_status s = fl_grow(&r->smi->gpu, &r->gpu_room, r->smi->count + 1, sizeof *r->smi->gpu);
    if (s) {
        stop(r, fl_no_memory(r->d, "the boards"));
        return;
    }
    fl_smi_gpu *g = &r->smi->gpu[r->smi->count++];
    *g = (fl_smi_gpu){0};
#define UNKNOWN(member, unit, places) g->member = (double)NAN;
    FL_SMI_NUMBERS(UNKNOWN)
    r->sm_room = r->mem_room = 0;
    r->mem_mhz = (double)NAN;
}

static void XMLCALL on_start(void *user, const XML_Char *name, const XML_Char **attributes) {
    reader *r = user;
    const size_t n = strlen(name);
    (void)attributes;
    r->line = (int64_t)XML_GetCurrentLineNumber(r->parser);
    r->column = (int64_t)XML_GetCurrentColumnNumber(r->parser) + 1;
    r->value_size = 0;
    if (++r->depth > DEPTH_MAX) { /* the parser holds each that is open, in 50 times what it takes in the file */
        refuse(r, "more than 64 elements within each other");
        return;
    }
    if (!r->place_size && strcmp(name, ROOT) != 0) {
        stop(r, fl_fail(r->d, FL_BAD_INPUT, fl_input_name(r->path), r->line, r->column,
                        "<%.64s>, expected <" ROOT ">, as nvidia-smi -q -x prints it", name));
        return;
    }
    if (r->beyond || r->place_size + n + 2 > sizeof r->place) {
        r->beyond++;
        return;
    }
    if (r->place_size)
        r->place[r->place_size++] = '/';
    memcpy(r->place + r->place_size, name, n + 1);
    r->place_size += n;
    if (!strcmp(r->place, ROOT "/gpu"))
        open_gpu(r);
}

static void XMLCALL on_text(void *user, const XML_Char *text, int size) {
    reader *r = user;
    const size_t room = sizeof r->value - 1 - r->value_size, n = (size_t)size < room ? (size_t)size : room;
    memcpy(r->value + r->value_size, text, n);
    r->value_size += n;
}

/* One of the places, "a|b", below <gpu>. */
static bool is_at(const reader *r, const char *places) {
    const char *at = r->place + sizeof GPU - 1;
    const size_t n = strlen(at);
    if (strncmp(r->place, GPU, sizeof GPU - 1) != 0)
        return false;
    for (const char *one = places; *one; one += strcspn(one, "|"), one += *one == '|')
        if (strcspn(one, "|") == n && !strncmp(one, at, n))
            return true;
    return false;
}

/* The tool writes words, such as N/A, for numbers that it does not have. */
static void take_number(reader *r, const char *unit, double *out) {
    char *end, what[64];
    if (!strpbrk(r->value, "0123456789"))
        return;
    const double v = strtod(r->value, &end);
    end += strspn(end, " ");
    snprintf(what, sizeof what, "expected a number of %s above 0, or N/A", unit);
    if (end == r->value || strcmp(end, unit) != 0 || !(v > 0) || !(v < 1e9))
        refuse(r, what);
    else
        *out = v;
}

/* As much as a member holds, up to the end of a character. */
static void take_text(const reader *r, char out[FL_SMI_TEXT_SIZE]) {
    size_t n = r->value_size;
    if (n >= FL_SMI_TEXT_SIZE)
        for (n = FL_SMI_TEXT_SIZE - 1; n && ((unsigned char)r->value[n] & 0xc0) == 0x80;)
            n--;
    memcpy(out, r->value, n);
    out[n] = 0;
}

/* A clock into a ladder, each once, ascending. */
static void add_clock(reader *r, int32_t **list, size_t *count, size_t *room, double mhz) {
    size_t at = *count;
    while (at && (*list)[at - 1] > (int32_t)lround(mhz))
        at--;
    if (at && (*list)[at - 1] == (int32_t)lround(mhz))
        return;
    if (*count >= CLOCKS_MAX) {
        refuse(r, "more than 4096 clocks");
        return;
    }
    if (fl_grow(list, room, *count + 1, sizeof **list)) {
        stop(r, fl_no_memory(r->d, "the clocks"));
        return;
    }
    memmove(*list + at + 1, *list + at, (*count - at) * sizeof **list);
    (*list)[at] = (int32_t)lround(mhz);
    ++*count;
}

static void take_clock(reader *r, fl_smi_gpu *g, bool memory) {
    double mhz = (double)NAN;
    take_number(r, "MHz", &mhz);
    if (r->status || isnan(mhz))
        return;
    if (lround(mhz) < 1 || mhz > MHZ_MAX) {
        refuse(r, "expected 1 to 100000 MHz");
        return;
    }
    if (memory) {
        r->mem_mhz = mhz;
        if (g->mem_count && mhz > g->mem_mhz[g->mem_count - 1]) /* the SM clocks are those of the highest */
            g->sm_count = 0;
        add_clock(r, &g->mem_mhz, &g->mem_count, &r->mem_room, mhz);
    } else if (g->mem_count && (int32_t)lround(r->mem_mhz) == g->mem_mhz[g->mem_count - 1]) {
        add_clock(r, &g->sm_mhz, &g->sm_count, &r->sm_room, mhz);
    }
}

static void take_value(reader *r) {
    fl_smi_gpu *g = last(r);
    if (!strcmp(r->place, ROOT "/driver_version"))
        take_text(r, r->smi->driver);
    if (!g)
        return;
#define TAKE_TEXT(member, places)                                                                                      \
    if (is_at(r, places) && strcmp(r->value, "N/A") != 0)                                                              \
        take_text(r, g->member);
#define TAKE_NUMBER(member, unit, places)                                                                              \
    if (is_at(r, places))                                                                                              \
        take_number(r, unit, &g->member);
    FL_SMI_TEXTS(TAKE_TEXT)
    FL_SMI_NUMBERS(TAKE_NUMBER)
    if (!strcmp(r->place, CLOCKS "value"))
        take_clock(r, g, true);
    if (!strcmp(r->place, CLOCKS "supported_graphics_clock"))
        take_clock(r, g, false);
}

static void end_gpu(reader *r) {
    const fl_smi_gpu *g = last(r);
    r->line = r->gpu_line, r->column = r->gpu_column;
    if (!g->name[0])
        refuse(r, "no product_name");
    else if (strcmp(g->name, r->smi->gpu[0].name) != 0)
        refuse(r, "another product than the first GPU, expected boards of one kind");
}

static void XMLCALL on_end(void *user, const XML_Char *name) {
    reader *r = user;
    if (r->status) /* of an element that was refused at its start, the end is told all the same: <this/> */
        return;
    r->depth--;
    if (r->beyond) {
        r->beyond--;
        return;
    }
    while (r->value_size && strchr(" \t\r\n", r->value[r->value_size - 1]))
        r->value_size--;
    r->value[r->value_size] = 0;
    const size_t blank = strspn(r->value, " \t\r\n");
    r->value_size -= blank;
    memmove(r->value, r->value + blank, r->value_size + 1);
    take_value(r);
    if (!r->status && !strcmp(r->place, ROOT "/gpu"))
        end_gpu(r);
    r->value_size = 0;
    r->place_size -= strlen(name) + (r->place_size > strlen(name));
    r->place[r->place_size] = 0;
}

/* The tool declares none; what they stand for may be larger than the file by any factor. */
static void XMLCALL on_entity(void *user, const XML_Char *name, int is_parameter, const XML_Char *value, int size,
                              const XML_Char *base, const XML_Char *system, const XML_Char *public,
                              const XML_Char *notation) {
    reader *r = user;
    (void)is_parameter, (void)value, (void)size, (void)base, (void)system, (void)public, (void)notation;
    stop(r,
         fl_fail(r->d, FL_BAD_INPUT, fl_input_name(r->path), (int64_t)XML_GetCurrentLineNumber(r->parser),
                 (int64_t)XML_GetCurrentColumnNumber(r->parser) + 1, "declares the entity %.64s, expected none", name));
}

/* XML's end before its own, no XML at all, or what the handlers refused. */
static fl_status parse(reader *r, const char *text, size_t size) {
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, on_start, on_end);
    XML_SetCharacterDataHandler(r->parser, on_text);
    XML_SetEntityDeclHandler(r->parser, on_entity);
    const enum XML_Status s = XML_Parse(r->parser, text, (int)size, XML_TRUE);
    if (r->status)
        return r->status;
    if (s != XML_STATUS_OK && (XML_GetErrorCode(r->parser) == XML_ERROR_NO_MEMORY || fl_memory_failed()))
        return fl_no_memory(r->d, r->path);
    if (s != XML_STATUS_OK)
        return fl_fail(r->d, FL_BAD_INPUT, fl_input_name(r->path), (int64_t)XML_GetCurrentLineNumber(r->parser),
                       (int64_t)XML_GetCurrentColumnNumber(r->parser) + 1,
                       "not XML from here on (%s), expected what nvidia-smi -q -x prints",
                       XML_ErrorString(XML_GetErrorCode(r->parser)));
    if (!r->smi->count)
        return fl_fail(r->d, FL_BAD_INPUT, fl_input_name(r->path), (int64_t)XML_GetCurrentLineNumber(r->parser), 1,
                       "no <gpu>, expected at least one");
    return FL_OK;
}

fl_status fl_smi_read(const char *path, fl_smi *smi, fl_diag *d) {
    const XML_Memory_Handling_Suite memory = {malloc, realloc, free};
    char *text = NULL;
    size_t size = 0;
    reader r = {.path = path, .smi = smi, .d = d};
    *smi = (fl_smi){0};
    fl_status s = fl_gunzip_text(path, SIZE_MAX_BYTES, &text, &size, d);
    if (s)
        return s;
    r.parser = XML_ParserCreate_MM(NULL, &memory, NULL);
    s = r.parser ? parse(&r, text, size) : fl_no_memory(d, path);
    XML_ParserFree(r.parser);
    free(text);
    return s;
}

#endif
