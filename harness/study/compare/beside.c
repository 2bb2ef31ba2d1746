/* Writes the files beside a result, and evaluates tables of selections. */
#include "harness/study/compare/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/input/experiment/experiment.h"
#include "harness/study/compare/compare.h"
#include "harness/study/trial/trial.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the files beside a result ---- */

static const char *experiment_text(const fl_setup *u, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItem(u->experiment.tree, key));
}

cJSON *fl_report_record(const fl_setup *u) { return fl_provenance(&u->scenes, u->spec, u->o.spec_count, u->o.seed); }

void fl_report_about(const fl_setup *u, cJSON *record) {
    if (u->experiment.tree) {
        const char *path = fl_input_name(u->experiment.path), *slash = strrchr(path, '/'),
                   *about = experiment_text(u, "about");
        cJSON_AddStringToObject(record, "experiment", slash ? slash + 1 : path);
        if (about && !u->own)
            cJSON_AddStringToObject(record, "about", about);
    }
    if (cJSON_HasObjectItem(record, "options"))
        return;
    cJSON *o = cJSON_AddObjectToObject(record, "options");
    fl_json_add_real(o, "bound", u->o.bound);
    cJSON_AddItemToObject(o, "bounds", fl_promises_json(&u->promises));
    cJSON_AddStringToObject(o, "objective", fl_objective_names[u->o.objective]);
    cJSON_AddNumberToObject(o, "seeds", (double)fl_setup_seeds(u));
    cJSON_AddBoolToObject(o, "oracles", u->o.oracles);
}

/* The lines as they were solved, with the notes of the experiment, and what it assumes. */
static cJSON *published_tree(const fl_setup *u, const fl_published *published) {
    cJSON *root = cJSON_CreateObject(), *lines = fl_published_json(published), *line;
    const cJSON *assumed = cJSON_GetObjectItem(u->experiment.tree, "assumed"),
                *calibrated = cJSON_GetObjectItem(u->experiment.tree, "calibrated"),
                *given = cJSON_GetObjectItem(u->experiment.tree, "published");
    int i = 0;
    cJSON_ArrayForEach(line, lines) {
        const char *note = cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(given, i++), "note"));
        if (note)
            cJSON_AddStringToObject(line, "note", note);
    }
    if (experiment_text(u, "about"))
        cJSON_AddStringToObject(root, "about", experiment_text(u, "about"));
    cJSON_AddItemToObject(root, "published", lines);
    cJSON_AddItemToObject(root, "score", fl_published_score_json(published));
    if (calibrated)
        cJSON_AddItemToObject(root, "calibrated", cJSON_Duplicate(calibrated, true));
    if (assumed)
        cJSON_AddItemToObject(root, "assumed", cJSON_Duplicate(assumed, true));
    return root;
}

static char *beside(const char *csv, const char *ending) {
    char *provenance = fl_provenance_path(csv);
    char *path = fl_must_print("%.*s%s", (int)(strlen(provenance) - strlen(".provenance.json")), provenance, ending);
    free(provenance);
    return path;
}

fl_status fl_report_beside_write(const fl_setup *u, const fl_comparison *c, const fl_published *published,
                                 const char *csv, fl_diag *d) {
    if (fl_is_standard(csv))
        return FL_OK;
    char *json = beside(csv, ".published.json"), *regret = beside(csv, ".regret.csv");
    cJSON *tree = published ? published_tree(u, published) : NULL;
    fl_status s = FL_OK;
    if (published)
        s = fl_json_write(json, tree, d);
    else
        unlink(json);
    if (!s && fl_experiment_draws(&u->experiment))
        s = fl_draws_write_regret(c, regret, u->o.seed, d);
    else if (!s)
        unlink(regret);
    cJSON_Delete(tree);
    free(json);
    free(regret);
    return s;
}

/* ---- tables of selections ---- */

typedef struct table { /* selections side by side */
    const char *title;
    fl_json columns, rows; /* objects by name */
    selection *cell;       /* count: row by row */
    double *value;
    size_t count;
    cJSON *merged; /* what the cells borrow from */
} table;

struct fl_result_tables {
    table *table;
    size_t count;
};

/* The cell's selection: what the table says of each, with the column's and then the row's keys over it, and at last
 * those with a '+'. Kept in t->merged, which the selection borrows from. */
static fl_status read_cell(table *t, const fl_json *each, const fl_json *column, const fl_json *row,
                           const fl_texts *policies, selection *cell, fl_diag *d) {
    const fl_json *const part[] = {each, column, row};
    return fl_published_merge(part, 3, row, t->merged, policies, cell, d);
}

static fl_status read_table(const fl_json *at, const fl_texts *policies, table *t, fl_diag *d) {
    fl_json each = {0};
    size_t n = 0;
    fl_status s = fl_json_object(at, d);
    if (s || (s = fl_json_get_text(at, "title", &t->title, d)) ||
        (s = fl_json_get_object(at, "columns", &t->columns, d)) || (s = fl_json_get_object(at, "rows", &t->rows, d)) ||
        (fl_json_has(at, "each") && (s = fl_json_get_object(at, "each", &each, d))))
        return s;
    const size_t cells = fl_json_count(&t->columns) * fl_json_count(&t->rows);
    if (!cells)
        return fl_json_fail(at, d, "a table without rows or columns, expected both");
    t->cell = fl_must(calloc(cells, sizeof *t->cell));
    t->value = fl_must(malloc(cells * sizeof *t->value));
    t->merged = fl_must(cJSON_CreateArray());
    for (fl_json r = fl_json_first(&t->rows); r.node; r = fl_json_next(&t->rows, &r))
        for (fl_json c = fl_json_first(&t->columns); c.node; c = fl_json_next(&t->columns, &c)) {
            t->value[n] = NAN;
            if ((s = fl_json_object(&r, d)) || (s = fl_json_object(&c, d)) ||
                (s = read_cell(t, &each, &c, &r, policies, &t->cell[n], d)))
                return s;
            n++;
        }
    t->count = n;
    return FL_OK;
}

fl_status fl_result_tables_open(const fl_experiment *e, const fl_texts *policies, fl_result_tables **out, fl_diag *d) {
    fl_json list;
    *out = NULL;
    if (!e->tree)
        return FL_OK;
    const fl_json root = fl_json_root(e->tree, e->path);
    if (!fl_json_has(&root, "tables"))
        return FL_OK;
    fl_status s = fl_json_get_array(&root, "tables", &list, d);
    if (s)
        return s;
    fl_result_tables *t = fl_must(calloc(1, sizeof *t));
    t->table = fl_must(calloc(fl_json_count(&list) + 1, sizeof *t->table));
    for (fl_json at = fl_json_first(&list); !s && at.node; at = fl_json_next(&list, &at))
        s = read_table(&at, policies, &t->table[t->count++], d);
    if (s)
        fl_result_tables_free(t);
    else
        *out = t;
    return s;
}

void fl_result_tables_free(fl_result_tables *t) {
    for (size_t i = 0; t && i < t->count; i++) {
        free(t->table[i].cell);
        free(t->table[i].value);
        cJSON_Delete(t->table[i].merged);
    }
    if (t)
        free(t->table);
    free(t);
}

fl_status fl_result_tables_solve(fl_result_tables *all, const fl_comparison *c, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; !s && k < all->table[i].count; k++)
            s = fl_published_value(&all->table[i].cell[k], c, &all->table[i].value[k], d);
    return s;
}

void fl_result_tables_print(const fl_result_tables *all, FILE *out) {
    for (size_t i = 0; i < all->count; i++) {
        const table *t = &all->table[i];
        fl_grid g = fl_grid_headed(&t->title, 1);
        size_t n = 0;
        g.columns = 1 + fl_json_count(&t->columns);
        for (fl_json c = fl_json_first(&t->columns); c.node; c = fl_json_next(&t->columns, &c))
            fl_grid_add(&g, "%s", c.node->string);
        for (fl_json r = fl_json_first(&t->rows); r.node; r = fl_json_next(&t->rows, &r)) {
            fl_grid_add(&g, "%s", r.node->string);
            for (size_t k = 1; k < g.columns; k++, n++)
                if (isnan(t->value[n]))
                    fl_grid_add(&g, "-");
                else
                    fl_grid_add(&g, "%.5g", t->value[n]);
        }
        fl_grid_print(&g, 1, out);
        fputc('\n', out);
    }
}

cJSON *fl_result_tables_json(const fl_result_tables *all) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < all->count; i++) {
        const table *t = &all->table[i];
        cJSON *o = fl_json_add_row(list);
        size_t n = 0;
        cJSON_AddStringToObject(o, "title", t->title);
        cJSON *rows = cJSON_AddObjectToObject(o, "rows");
        for (fl_json r = fl_json_first(&t->rows); r.node; r = fl_json_next(&t->rows, &r)) {
            cJSON *row = cJSON_AddObjectToObject(rows, r.node->string);
            for (fl_json c = fl_json_first(&t->columns); c.node; c = fl_json_next(&t->columns, &c))
                fl_json_add_real(row, c.node->string, t->value[n++]);
        }
    }
    return list;
}
