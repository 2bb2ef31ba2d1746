#include "harness/live/collector/cupti.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELD = 39 /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */, PATH = PATH_MAX };

typedef struct search {
    fl_cupti *c;
    fl_cupti_requested *requested;
    fl_cupti_completed *completed;
    fl_cupti_clock *clock;
    bool found, held;
} search;

static bool find_symbol(void *library, const char *name, void *into) {
    void *symbol = dlsym(library, name);
    memcpy(into, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool look_up(fl_cupti *c, void *library) {
    *c = (fl_cupti){0};
    find_symbol(library, "cuptiActivityDisable", &c->disable);
    find_symbol(library, "cuptiActivityGetNumDroppedRecords", &c->dropped);
    find_symbol(library, "cuptiActivityFlushPeriod", &c->period);
    find_symbol(library, "cuptiGetTimestamp", &c->timestamp);
    find_symbol(library, "cuptiActivityRegisterTimestampCallback", &c->use_clock);
    return find_symbol(library, "cuptiActivityRegisterCallbacks", &c->callbacks) &&
           find_symbol(library, "cuptiActivityEnable", &c->enable) &&
           find_symbol(library, "cuptiActivityGetNextRecord", &c->next) &&
           find_symbol(library, "cuptiActivityFlushAll", &c->flush);
}

/* The clock must be set before a kind is enabled. All times are then on that clock, including those that the GPU took
 * (CUPTI interpolates between the two). */
static void enable(search *s) {
    fl_cupti *c = s->c;
    if (c->callbacks(s->requested, s->completed))
        return;
    c->on_our_clock = c->use_clock && !c->use_clock(s->clock);
    const int error = c->enable(FL_CUPTI_KERNEL);
    s->found = !error;
    s->held = error == HELD;
}

static bool over(const search *s) { return s->found || s->held; }

static void try_library(search *s, const char *path, int flags) {
    void *library = over(s) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (library && look_up(s->c, library))
        enable(s); /* it stays loaded in any case, since it may have threads now */
    else if (library)
        dlclose(library);
}

/* folder NULL: search as the loader does. */
static void try_names(search *s, const char *folder, const char *below, int flags) {
    static const char *const NAMES[] = {"libcupti.so",      "libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8",
                                        "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so.11.5", "libcupti.so.11.4",
                                        "libcupti.so.11.3", "libcupti.so.11.2", "libcupti.so.11.1", "libcupti.so.11.0"};
    char path[PATH];
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && !over(s); i++) {
        const int size = folder ? snprintf(path, sizeof path, "%s/%s/%s", folder, below, NAMES[i])
                                : snprintf(path, sizeof path, "%s", NAMES[i]);
        if ((size_t)size < sizeof path)
            try_library(s, path, flags);
    }
}

static void try_toolkit(search *s, const char *folder) {
    if (!folder || !*folder)
        return;
    try_names(s, folder, "extras/CUPTI/lib64", 0);
    try_names(s, folder, "lib64", 0);
}

static int is_cudart(struct dl_phdr_info *object, size_t size, void *folder) {
    const char *slash = strrchr(object->dlpi_name, '/');
    (void)size;
    if (!slash || strncmp(slash, "/libcudart", strlen("/libcudart")) != 0 || slash - object->dlpi_name >= PATH)
        return 0;
    snprintf(folder, PATH, "%.*s", (int)(slash - object->dlpi_name), object->dlpi_name);
    return 1;
}

/* A toolkit has it in the same folder or in a sibling; Python's packages have one folder for each library. */
static void try_beside_cudart(search *s) {
    char folder[PATH];
    if (!dl_iterate_phdr(is_cudart, folder))
        return;
    try_names(s, folder, ".", 0);
    try_names(s, folder, "../extras/CUPTI/lib64", 0);
    try_names(s, folder, "../../cuda_cupti/lib", 0);
}

bool fl_cupti_start(fl_cupti *c, fl_cupti_requested *requested, fl_cupti_completed *completed, fl_cupti_clock *clock) {
    search s = {.c = c, .requested = requested, .completed = completed, .clock = clock};
    const char *asked = getenv("FOLDLINE_CUPTI");
    if (asked && *asked) {
        try_library(&s, asked, 0);
        return s.found;
    }
    try_names(&s, NULL, NULL, RTLD_NOLOAD);
    try_beside_cudart(&s);
    try_toolkit(&s, getenv("CUDA_HOME"));
    try_toolkit(&s, getenv("CUDA_PATH"));
    try_names(&s, NULL, NULL, 0);
    try_toolkit(&s, "/usr/local/cuda");
    return s.found;
}
