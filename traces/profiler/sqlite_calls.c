#include "traces/profiler/sqlite_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

fl_sqlite_calls fl_sql;

static bool loaded;

/* Stays loaded until the program ends. */
static void load(void) {
    void *library = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_LOCAL);
    fl_sqlite_calls found = {0};
    bool all = library != NULL;
#define FIND(name)                                                                                                     \
    do {                                                                                                               \
        void *at = all ? dlsym(library, "sqlite3_" #name) : NULL;                                                      \
        memcpy(&found.name, &at, sizeof at);                                                                           \
        all = at != NULL;                                                                                              \
    } while (0);
    FL_SQLITE_CALLS(FIND)
#undef FIND
    if (all)
        fl_sql = found;
    loaded = all;
}

fl_status fl_sqlite_calls_load(const char *path, fl_diag *d) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (loaded)
        return FL_OK;
    return fl_fail(d, FL_IO, path, 0, 0,
                   "is an SQLite file, but libsqlite3.so.0 is not installed to read it (Debian, Ubuntu: package "
                   "libsqlite3-0)");
}
