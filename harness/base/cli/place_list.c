#include "harness/base/cli/place_list.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char suffix[] = ".json";

static size_t stem(const char *name) {
    const size_t n = strlen(name), m = sizeof suffix - 1;
    return n > m && name[0] != '.' && !strcmp(name + n - m, suffix) ? n - m : 0;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void fl_place_list_free(char **names, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

fl_status fl_place_list(fl_place_id id, char ***names, size_t *count, fl_diag *d) {
    char folder[PATH_MAX], **list = NULL;
    size_t used = 0, room = 0;
    fl_status s = FL_OK;
    DIR *dir = opendir(fl_place(id, folder, sizeof folder));
    if (!dir)
        return fl_fail(d, FL_IO, folder, 0, 0,
                       "cannot list the bundled files: %s; FOLDLINE_SHARE names the folder that holds platforms/ and "
                       "boards/",
                       fl_reason(errno));
    for (const struct dirent *e; !s && (e = readdir(dir));) {
        const size_t size = stem(e->d_name);
        char *name = size ? strndup(e->d_name, size) : NULL;
        if (!size)
            continue;
        if (!name || fl_grow(&list, &room, used + 1, sizeof *list)) {
            free(name);
            s = fl_no_memory(d, NULL);
        } else {
            list[used++] = name;
        }
    }
    (void)closedir(dir);
    if (s) {
        fl_place_list_free(list, used);
        return s;
    }
    if (used > 0)
        qsort(list, used, sizeof *list, by_text);
    *names = list;
    *count = used;
    return FL_OK;
}
