#include "harness/live/vendor/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
