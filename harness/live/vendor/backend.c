/* Opens a vendor's library, and what all back ends share. */
#include "harness/live/vendor/vendor.h"

#include "traces/io/io.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- libraries opened at run time ---- */

void *fl_library_open(const char *variable, const char *const *names, const char *what, char *path, size_t size,
                      fl_diag *d) {
    const char *asked = getenv(variable), *only[2] = {asked, NULL};
    char why[256] = "";
    const char *const *at = asked && *asked ? only : names;
    for (; *at; at++) {
        void *library = dlopen(*at, RTLD_NOW | RTLD_LOCAL);
        const char *error = library ? NULL : dlerror();
        snprintf(path, size, "%s", *at);
        if (library)
            return library;
        snprintf(why, sizeof why, "%s", error ? error : *at); /* the last name is the most general one */
    }
    *path = '\0';
    fl_error(d, FL_HARDWARE, "no %s: %s", what, why);
    return NULL;
}

/* Copied through a void *, since POSIX allows that for dlsym. */
int fl_library_find(void *library, const char *newest, const char *older, void *into) {
    void *symbol = dlsym(library, newest);
    if (!symbol && older)
        symbol = dlsym(library, older);
    memcpy(into, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* ---- what all back ends share ---- */

void fl_gpus_close(fl_gpus *g) {
    if (g->self)
        g->back->close(g->self);
    *g = (fl_gpus){0};
}

fl_status fl_gpus_open(fl_gpus *out, const fl_backend *back, size_t size, fl_gpus_find_all *find, const char *list,
                       fl_diag *missing, fl_diag *d) {
    fl_gpus opened = {.back = back, .self = calloc(1, size)};
    fl_status s = opened.self ? find(&opened, list, missing, d) : fl_no_memory(d, "the GPUs");
    if (s)
        fl_gpus_close(&opened);
    *out = opened;
    return s;
}

bool fl_gpus_simulated(const fl_gpus *g) { return g->back->simulated && g->back->simulated(g->self); }

int fl_gpus_find(const fl_gpus *g, const char *unit) {
    for (uint32_t i = 0; i < g->back->count(g->self); i++)
        if (!strcmp(g->back->unit(g->self, i), unit))
            return (int)i;
    return -1;
}

static bool all_listed(const char *list) { return !list || !*list || !strcmp(list, "all"); }

static bool is_name(const char *at, size_t size, uint32_t index, const char *unit) {
    char number[16];
    snprintf(number, sizeof number, "%u", index);
    return (strlen(number) == size && !strncmp(at, number, size)) || (strlen(unit) == size && !strncmp(at, unit, size));
}

bool fl_gpus_listed(const char *list, uint32_t index, const char *unit) {
    if (all_listed(list))
        return true;
    for (const char *at = list; *at;) {
        size_t size = strcspn(at, ",");
        if (size && is_name(at, size, index, unit))
            return true;
        at += size + (at[size] == ',');
    }
    return false;
}

/* The first name of the list that matches no GPU. A GPU that does not answer reveals only its number, so where there is
 * one, a UUID may be its. */
static void check_names(const fl_gpus *g, const char *list, uint32_t all, const fl_diag *silent, fl_diag *missing) {
    for (const char *at = all_listed(list) ? "" : list; *at && !missing->status;) {
        const size_t size = strcspn(at, ",");
        bool found = !size;
        for (uint32_t i = 0; i < g->back->count(g->self) && !found; i++)
            found = is_name(at, size, g->back->index(g->self, i), g->back->unit(g->self, i));
        if (!found)
            fl_error(missing, silent->status ? silent->status : FL_BAD_INPUT,
                     "--gpus: '%.*s' is none of the %u GPUs, expected indices or UUIDs%s%s", (int)size, at, all,
                     silent->status ? "; " : "", silent->message);
        at += size + (at[size] == ',');
    }
}

fl_status fl_gpus_gather(const fl_gpus *g, uint32_t all, const char *list, fl_gpus_add *add, fl_diag *missing,
                         fl_diag *d) {
    fl_diag silent = {0}, first = {0};
    for (uint32_t i = 0; i < all; i++) {
        fl_diag one = {0};
        if (!add(g->self, i, list, &one))
            continue;
        if (one.status == FL_NO_MEMORY) {
            if (d)
                *d = one;
            return one.status;
        }
        if (!first.status && fl_gpus_listed(list, i, ""))
            first = one;
        if (!silent.status)
            silent = one;
    }
    check_names(g, list, all, &silent, &first);
    if (!first.status && !g->back->count(g->self))
        fl_refuse(&first, "--gpus %s names no GPU, expected indices or UUIDs", list);
    if (missing)
        *missing = first;
    if (!first.status || (missing && g->back->count(g->self)))
        return FL_OK;
    if (d)
        *d = first;
    return first.status;
}

int fl_gpus_position(void *gpus, const char *uuid, size_t size) {
    const fl_gpus *g = gpus;
    for (uint32_t i = 0; i < g->back->count(g->self); i++) {
        const char *unit = g->back->unit(g->self, i);
        if (strlen(unit) == size && !strncasecmp(unit, uuid, size))
            return (int)i;
    }
    return -1;
}

static int rising(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x > y ? 1 : x < y ? -1 : 0;
}

uint32_t fl_gpus_ladder(int32_t *mhz, uint32_t count) {
    uint32_t kept = 0;
    if (count)
        qsort(mhz, count, sizeof *mhz, rising);
    for (uint32_t i = 0; i < count; i++)
        if (mhz[i] > 0 && (!kept || mhz[kept - 1] != mhz[i]))
            mhz[kept++] = mhz[i];
    return kept;
}
