/* Files by their place: folders of shipped files, lists of them, and tables of policies' parameters. */
#include "harness/base/cli/cli.h"

#include "policies/policy.h"
#include "traces/io/io.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- folders of shipped files ---- */

static const struct {
    const char *variable, *below; /* the folder: $variable + below */
    const char *installed, *near; /* from the program's folder */
    const char *built;
} places[] = {
    [FL_PLACE_PLATFORMS] = {"FOLDLINE_SHARE", "/platforms", "../share/foldline/platforms", "../models/platforms",
                            FL_SHARE_DIR "/platforms"},
    [FL_PLACE_BOARDS] = {"FOLDLINE_SHARE", "/boards", "../share/foldline/boards", "../models/boards",
                         FL_SHARE_DIR "/boards"},
    [FL_PLACE_PLOTS] = {"FOLDLINE_PLOTS", "", "../share/foldline/plots", "../plots", FL_PLOTS_DIR},
    [FL_PLACE_CLIENTS] = {"FOLDLINE_CLIENT_DIR", "", "../lib/foldline", "emulated", FL_CLIENT_DIR},
};

const char *fl_place(fl_place_id id, char *buf, size_t size) {
    const char *asked = getenv(places[id].variable);
    char folder[2048] = "";
    if (asked && *asked) {
        snprintf(buf, size, "%s%s", asked, places[id].below);
        return buf;
    }
    const ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    Dl_info own; /* the shared library in another program: PREFIX/lib, or PREFIX/lib/x86_64-linux-gnu */
    char deeper[128];
    (void)snprintf(deeper, sizeof deeper, "../%s", places[id].installed);
    const char *const file[] = {n > 0 ? folder : "", dladdr(places, &own) && own.dli_fname ? own.dli_fname : ""};
    const char *const near[] = {places[id].installed, places[id].near, deeper};
    for (size_t i = 0; i < 2 * FL_COUNT(near); i++) {
        const char *from = file[i / FL_COUNT(near)], *slash = strrchr(from, '/');
        char path[2560], real[PATH_MAX];
        if (!slash)
            continue;
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - from), from, near[i % FL_COUNT(near)]);
        if (realpath(path, real) && !access(real, R_OK | X_OK)) {
            snprintf(buf, size, "%s", real);
            return buf;
        }
    }
    snprintf(buf, size, "%s", places[id].built);
    return buf;
}

/* ---- the names in a folder ---- */

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

/* ---- a policy's table from a CSV file ---- */

enum { COLUMNS_MAX = 64 };

typedef struct loader {
    const fl_param *row;
    char *names; /* owns the text of name[] */
    const char *name[COLUMNS_MAX];
    size_t where[COLUMNS_MAX], columns, width; /* column 0 is the key where keyed */
    bool keyed, headed;
    double *cell;
    char **key;
    size_t rows, cell_room, key_room;
} loader;

static fl_status header(loader *l, const fl_csv_row *r, fl_diag *d) {
    l->width = r->count;
    for (size_t c = 0; c < l->columns; c++) {
        size_t i = 0;
        while (i < r->count && strcmp(r->field[i].text, l->name[c]))
            i++;
        if (i == r->count)
            return fl_fail(d, FL_BAD_INPUT, r->file, r->line, 1, "no column '%s' for parameter '%s', expected %s",
                           l->name[c], l->row->name, l->row->choices);
        l->where[c] = i;
    }
    l->headed = true;
    return FL_OK;
}

static fl_status read_row(void *user, const fl_csv_row *r, fl_diag *d) {
    loader *l = user;
    if (!l->headed)
        return header(l, r, d);
    if (r->count != l->width)
        return fl_fail(d, FL_BAD_INPUT, r->file, r->line, 1, "row has %zu fields, expected %zu", r->count, l->width);
    size_t numbers = l->columns - l->keyed;
    if (fl_grow(&l->cell, &l->cell_room, (l->rows + 1) * numbers + 1, sizeof *l->cell) ||
        fl_grow(&l->key, &l->key_room, l->rows + 1, sizeof *l->key))
        return fl_no_memory(d, NULL);
    l->key[l->rows] = l->keyed ? strdup(r->field[l->where[0]].text) : NULL;
    for (size_t c = 0; c < numbers; c++) {
        fl_status s = fl_field_real(r, l->where[c + l->keyed], l->name[c + l->keyed], -HUGE_VAL, HUGE_VAL,
                                    &l->cell[l->rows * numbers + c], d);
        if (s) {
            free(l->key[l->rows]);
            return s;
        }
    }
    l->rows++;
    return FL_OK;
}

fl_status fl_table_file_read(const char *path, const fl_param *row, fl_table *t, fl_diag *d) {
    loader l = {.row = row, .names = strdup(row->choices ? row->choices : "")};
    *t = (fl_table){0};
    if (!l.names)
        return fl_no_memory(d, NULL);
    char *text = l.names, *save = NULL;
    if ((l.keyed = !strncmp(text, "key:", 4)))
        text += 4;
    for (char *p = strtok_r(text, "|", &save); p && l.columns < COLUMNS_MAX; p = strtok_r(NULL, "|", &save))
        l.name[l.columns++] = p;
    fl_csv_options options = {.trim = true};
    fl_status s = fl_csv_read(path, &options, NULL, read_row, &l, d);
    if (!s && !l.rows)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no row for parameter '%s', expected at least one", row->name);
    *t = (fl_table){.cell = l.cell,
                    .key = l.keyed ? (const char *const *)l.key : NULL,
                    .row_count = (uint32_t)l.rows,
                    .column_count = (uint32_t)(l.columns - l.keyed)};
    if (!l.keyed)
        free(l.key);
    free(l.names);
    if (s)
        fl_table_file_free(t);
    return s;
}

void fl_table_file_free(fl_table *t) {
    for (uint32_t i = 0; t->key && i < t->row_count; i++)
        free((char *)(uintptr_t)t->key[i]);
    free((char **)(uintptr_t)t->key);
    free((double *)(uintptr_t)t->cell);
    *t = (fl_table){0};
}
