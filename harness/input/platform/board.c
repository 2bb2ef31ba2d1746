/* Board files, and boards as nvidia-smi prints them. */
#include "harness/input/platform/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "traces/io/io.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT_VERSION 1

#define BOARD_ROW(key, unit, what) {#key, unit, what},
const fl_board_row fl_board_rows[FL_BOARD_FACT_COUNT] = {FL_BOARD_FACTS(BOARD_ROW)};

static const char *const others[] = {"foldline_board", "title", "name", "sm_mhz", "mem_mhz", "notes"};
enum { OTHERS = sizeof others / sizeof *others };

static bool is_path(const char *name) {
    const size_t n = strlen(name);
    return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json")) || fl_is_smi(name);
}

static char *path_of(const char *name) {
    char folder[PATH_MAX], *path = NULL;
    return asprintf(&path, "%s/%s.json", fl_place(FL_PLACE_BOARDS, folder, sizeof folder), name) < 0 ? NULL : path;
}

/* The next character that counts in the name of a platform or board. */
static int next_of(const char **at) {
    *at += strspn(*at, " -_");
    return **at ? tolower((unsigned char)*(*at)++) : 0;
}

static bool alike(const char *a, const char *b) {
    for (int c = next_of(&a);; c = next_of(&a)) {
        if (c != next_of(&b))
            return false;
        if (!c)
            return true;
    }
}

const char *fl_bundled_find(const char *name, char *const *names, size_t count) {
    const char *found = NULL;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(names[i], name))
            return names[i];
        if (alike(names[i], name)) {
            found = names[i];
            n++;
        }
    }
    return n == 1 ? found : NULL;
}

/* The bundled board of this name, or NULL. The caller frees it. */
static char *find_board(const char *name) {
    char **names = NULL;
    size_t count = 0;
    fl_diag ignored = {0};
    if (is_path(name) || fl_board_list(&names, &count, &ignored))
        return NULL;
    const char *found = fl_bundled_find(name, names, count);
    char *copy = found ? strdup(found) : NULL;
    fl_place_list_free(names, count);
    return copy;
}

bool fl_board_exists(const char *name) {
    char *found = find_board(name);
    free(found);
    return found != NULL;
}

fl_status fl_board_list(char ***names, size_t *count, fl_diag *d) {
    char folder[PATH_MAX];
    *names = NULL;
    *count = 0;
    if (access(fl_place(FL_PLACE_BOARDS, folder, sizeof folder), F_OK))
        return FL_OK;
    return fl_place_list(FL_PLACE_BOARDS, names, count, d);
}

const char *fl_board_source(const fl_board *b, const char *key) {
    for (size_t i = 0; i < b->note_count; i++)
        if (!strcmp(b->note[i].key, key))
            return b->note[i].text;
    return NULL;
}

const char *fl_board_lacks(const fl_board *b, char *buf, size_t size) {
    const double *f = b->fact;
    const bool low = !isnan(f[FL_BOARD_sm_min_mhz]) || !isnan(f[FL_BOARD_sm_idle_mhz]);
    const struct {
        bool is;
        const char *what;
    } row[] = {{b->sm_count < 2 && !low, "the lowest SM clock"},
               {b->sm_count < 2 && isnan(f[FL_BOARD_sm_max_mhz]), "the highest SM clock"},
               {!b->mem_count, "memory clocks"},
               {isnan(f[FL_BOARD_limit_default_w]), "the default power limit"}};
    size_t used = 0;
    for (size_t i = 0; i < sizeof row / sizeof *row && used < size; i++)
        if (row[i].is)
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "", row[i].what);
    return used ? buf : NULL;
}

/* A whole number of steps must lead from the lowest to the highest clock, to within half a MHz: steps may alternate
 * between 7 and 8. */
fl_status fl_board_ladder(const fl_board *b, int32_t **mhz, uint32_t *count, fl_diag *d) {
    const double *f = b->fact;
    const bool assumed = isnan(f[FL_BOARD_sm_step_mhz]);
    const double low = isnan(f[FL_BOARD_sm_min_mhz]) ? f[FL_BOARD_sm_idle_mhz] : f[FL_BOARD_sm_min_mhz];
    const double top = f[FL_BOARD_sm_max_mhz], step = assumed ? FL_BOARD_STEP_MHZ : f[FL_BOARD_sm_step_mhz];
    const double steps = (top - low) / step;
    if (b->sm_count < 2 && (!(steps >= 1) || steps > 10000 || fabs(steps - round(steps)) > 1e-9))
        return fl_refuse(d, "board %s: no ladder from %g to %g MHz by %g%s, expected a file of facts with sm_mhz",
                         b->name, low, top, step, assumed ? " (assumed: sm_step_mhz is unknown)" : "");
    *count = b->sm_count < 2 ? (uint32_t)round(steps) + 1 : b->sm_count;
    if (!(*mhz = calloc(*count, sizeof **mhz)))
        return fl_no_memory(d, NULL);
    for (uint32_t i = 0; i < *count; i++)
        (*mhz)[i] = b->sm_count < 2 ? (int32_t)floor(low + i * step) : b->sm_mhz[i];
    return FL_OK;
}

/* Every value has its source, and every source its value. */
static fl_status read_notes(const fl_json *root, fl_board *b, fl_diag *d) {
    fl_json notes, value;
    fl_status s = fl_json_get_object(root, "notes", &notes, d);
    if (s)
        return s;
    if (!(b->note = calloc(fl_json_count(&notes) + 1, sizeof *b->note)))
        return fl_no_memory(d, NULL);
    for (fl_json e = fl_json_first(&notes); e.node; e = fl_json_next(&notes, &e)) {
        const char *text = NULL;
        if ((s = fl_json_get_text(&notes, e.node->string, &text, d)))
            return s;
        if (!fl_json_has(root, e.node->string))
            return fl_json_fail(&e, d, "names no value of this file, expected a key such as sm_max_mhz");
        fl_board_note *n = &b->note[b->note_count++];
        n->key = strdup(e.node->string);
        n->text = strdup(text);
        if (!n->key || !n->text)
            return fl_no_memory(d, NULL);
    }
    for (fl_json e = fl_json_first(root); e.node; e = fl_json_next(root, &e)) {
        bool plain = !strcmp(e.node->string, "sm_mhz") || !strcmp(e.node->string, "mem_mhz");
        for (size_t i = 0; i < FL_BOARD_FACT_COUNT; i++)
            plain |= !strcmp(e.node->string, fl_board_rows[i].key);
        if (plain && !fl_board_source(b, e.node->string)) {
            s = fl_json_get(root, e.node->string, &value, d);
            return s ? s : fl_json_fail(&value, d, "no source, expected a line in notes");
        }
    }
    return FL_OK;
}

static fl_status read_root(const fl_json *root, fl_board *b, fl_diag *d) {
    const char *known[OTHERS + FL_BOARD_FACT_COUNT], *title = NULL;
    int64_t version = 0;
    memcpy(known, others, sizeof others);
    for (size_t i = 0; i < FL_BOARD_FACT_COUNT; i++)
        known[OTHERS + i] = fl_board_rows[i].key;
    fl_status s = fl_json_get_int(root, "foldline_board", FORMAT_VERSION, FORMAT_VERSION, &version, d);
    if (!s)
        s = fl_json_known(root, known, OTHERS + FL_BOARD_FACT_COUNT, d);
    if (!s)
        s = fl_json_get_text(root, "title", &title, d);
    if (!s)
        s = fl_platform_name(root, b->gpu, sizeof b->gpu, d);
    if (!s && !(b->title = strdup(title)))
        s = fl_no_memory(d, NULL);
    for (size_t i = 0; !s && i < FL_BOARD_FACT_COUNT; i++) {
        b->fact[i] = NAN;
        if (fl_json_has(root, fl_board_rows[i].key))
            s = fl_json_get_real(root, fl_board_rows[i].key, 1e-3, 1e6, &b->fact[i], d);
    }
    if (!s && fl_json_has(root, "sm_mhz"))
        s = fl_platform_ladder(root, "sm_mhz", &b->sm_mhz, &b->sm_count, d);
    if (!s && fl_json_has(root, "mem_mhz"))
        s = fl_platform_ladder(root, "mem_mhz", &b->mem_mhz, &b->mem_count, d);
    return s ? s : read_notes(root, b, d);
}

/* ---- a board from nvidia-smi's output ---- */

static fl_status add_note(fl_board *b, const char *key, fl_diag *d) {
    fl_board_note *n = &b->note[b->note_count++];
    n->key = strdup(key);
    n->text = strdup("nvidia-smi -q -x");
    return n->key && n->text ? FL_OK : fl_no_memory(d, NULL);
}

static fl_status take_ladder(const int32_t *mhz, size_t count, int32_t **to, uint32_t *to_count, fl_diag *d) {
    if (!(*to = calloc(count, sizeof **to)))
        return fl_no_memory(d, NULL);
    memcpy(*to, mhz, count * sizeof **to);
    *to_count = (uint32_t)count;
    return FL_OK;
}

/* Fills a board from the first GPU of the file. If the file lists no clocks, only the highest memory clock is known. */
static fl_status of_smi(const fl_smi *smi, fl_board *b, fl_diag *d) {
    const fl_smi_gpu *g = &smi->gpu[0];
    const int32_t mem_max = isnan(g->mem_max_mhz) ? 0 : (int32_t)lround(g->mem_max_mhz);
    const size_t mem_count = g->mem_count ? g->mem_count : mem_max > 0;
    const struct {
        fl_board_fact fact;
        double value;
    } row[] = {{FL_BOARD_sm_max_mhz, g->sm_max_mhz},
               {FL_BOARD_sm_default_mhz, g->sm_default_mhz},
               {FL_BOARD_limit_min_w, g->limit_min_w},
               {FL_BOARD_limit_default_w, g->limit_default_w},
               {FL_BOARD_limit_max_w, g->limit_max_w}};
    fl_status s = FL_OK;
    snprintf(b->gpu, sizeof b->gpu, "%s", g->name);
    for (size_t i = 0; i < FL_BOARD_FACT_COUNT; i++)
        b->fact[i] = NAN;
    b->title = strdup(g->name);
    b->note = calloc(sizeof row / sizeof *row + 2, sizeof *b->note);
    if (!b->title || !b->note)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; !s && i < sizeof row / sizeof *row; i++) {
        b->fact[row[i].fact] = row[i].value;
        if (!isnan(row[i].value))
            s = add_note(b, fl_board_rows[row[i].fact].key, d);
    }
    if (!s && g->sm_count && !(s = take_ladder(g->sm_mhz, g->sm_count, &b->sm_mhz, &b->sm_count, d)))
        s = add_note(b, "sm_mhz", d);
    if (!s && mem_count &&
        !(s = take_ladder(g->mem_count ? g->mem_mhz : &mem_max, mem_count, &b->mem_mhz, &b->mem_count, d)))
        s = add_note(b, "mem_mhz", d);
    return s;
}

static fl_status unknown_board(const char *name, fl_diag *d) {
    char **names = NULL, **platform = NULL;
    size_t count = 0, platforms = 0;
    fl_status s = fl_board_list(&names, &count, d);
    if (!s)
        s = fl_place_list(FL_PLACE_PLATFORMS, &platform, &platforms, d);
    const char *found = s ? NULL : fl_bundled_find(name, platform, platforms);
    if (!s)
        s = found ? fl_refuse(d, "no board '%s'; there is a platform of that name: --platform %s", name, found)
                  : fl_fail_unknown(d, NULL, "board", name, (const char *const *)names, count);
    fl_place_list_free(names, count);
    fl_place_list_free(platform, platforms);
    return s;
}

fl_status fl_board_open(const char *name, fl_board *b, fl_diag *d) {
    cJSON *tree = NULL;
    *b = (fl_board){.name = is_path(name) ? strdup(name) : find_board(name)};
    fl_status s = FL_OK;
    if (!b->name && !is_path(name))
        s = unknown_board(name, d);
    else if (!b->name || !(b->path = is_path(name) ? strdup(name) : path_of(b->name)))
        s = fl_no_memory(d, NULL);
    if (!s && fl_is_smi(name)) {
        fl_smi smi = {0};
        if (!(s = fl_smi_read(b->path, &smi, d)))
            s = of_smi(&smi, b, d);
        fl_smi_free(&smi);
    } else if (!s && !(s = fl_json_read(b->path, &tree, d))) {
        const fl_json root = fl_json_root(tree, b->path);
        s = read_root(&root, b, d);
    }
    cJSON_Delete(tree);
    if (s)
        fl_board_free(b);
    return s;
}

void fl_board_free(fl_board *b) {
    for (size_t i = 0; i < b->note_count; i++) {
        free(b->note[i].key);
        free(b->note[i].text);
    }
    free(b->note);
    free(b->name);
    free(b->path);
    free(b->title);
    free(b->sm_mhz);
    free(b->mem_mhz);
    *b = (fl_board){0};
}
