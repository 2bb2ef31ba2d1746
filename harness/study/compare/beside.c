/* Prints published results, writes the files beside a result, and evaluates tables of selections. */
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

/* ---- published results as text ---- */

static const char *verdict(const published_line *l) {
    if (l->fails)
        return l->holds ? "HOLDS, but is said to fail" : "FAILED, as stated";
    return l->holds ? "holds" : "FAILS";
}

static char *gate_text(const published_line *l, char *text, size_t size) {
    const struct {
        const bound *b;
        const char *name, *unit;
    } side[] = {{&l->above, "above", ""},
                {&l->below, "below", ""},
                {&l->within, "within", ""},
                {&l->within_pct, "within", " %"}};
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < sizeof side / sizeof *side; i++)
        if (side[i].b->given && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s %.5g%s", used ? ", " : "", side[i].name,
                                     side[i].b->value, side[i].unit);
    if (l->errors.given && used < size)
        used += (size_t)snprintf(text + used, size - used, " by %g x %.2g", l->errors.value, l->error);
    if (used && used < size && l->draws > 1)
        used += (size_t)snprintf(text + used, size - used, " on %zu of %zu draws%s", l->draws_held, l->draws,
                                 l->all_draws ? ", all asked for" : "");
    if (used && used < size)
        snprintf(text + used, size - used, ": %s", verdict(l));
    else if (!used)
        snprintf(text, size, "%s", l->simulated.policy ? "report" : "not simulated");
    return text;
}

static void add_number(fl_grid *g, double value) {
    if (isnan(value))
        fl_grid_add(g, "-");
    else
        fl_grid_add(g, "%.5g", value);
}

/* A note that stands at several quantities is told once, at the first. */
static void print_note(const fl_published *p, size_t i, FILE *out) {
    const char *note = p->line[i].note;
    size_t more = 0;
    for (size_t k = 0; k < p->count && *note; k++) {
        const bool same = k != i && !strcmp(p->line[k].note, note);
        if (same && k < i)
            return;
        more += same;
    }
    if (*note && more)
        fprintf(out, "note: %s, and %zu more: %s\n", p->line[i].quantity, more, note);
    else if (*note)
        fprintf(out, "note: %s: %s\n", p->line[i].quantity, note);
}

/* Which claims do not come out, and why; then how many do. */
static void print_claims(const fl_published *p, FILE *out) {
    size_t gates = 0, hold = 0, stated = 0;
    for (size_t i = 0; i < p->count; i++) {
        const published_line *l = &p->line[i];
        gates += fl_published_gated(l);
        hold += fl_published_gated(l) && l->holds;
        stated += fl_published_gated(l) && !l->holds && l->fails;
        if (l->fails)
            fprintf(out, "fails: %s: %s\n", l->quantity, l->fails);
    }
    if (gates)
        fprintf(out, "gates: %zu of %zu hold, %zu fail as stated\n", hold, gates, stated);
}

static bool same_column(const published_line *a, const published_line *b) {
    return a->by_draw && b->by_draw && !strcmp(a->by_draw, b->by_draw);
}

static bool same_rows(const published_line *a, const published_line *b) {
    return a->by_draw && b->by_draw && !strcmp(a->simulated.policy, b->simulated.policy);
}

/* The first line with the same column or rows in the table of draws. */
static bool is_first(const fl_published *p, size_t i, bool (*same)(const published_line *, const published_line *)) {
    for (size_t k = 0; k < i; k++)
        if (same(&p->line[k], &p->line[i]))
            return false;
    return p->line[i].by_draw && p->line[i].simulated.policy;
}

/* A row for each policy and draw, a column for each "by_draw" of the lines. */
static void print_draws(const fl_published *p, FILE *out) {
    fl_grid g = {.columns = 2};
    for (size_t i = 0; i < p->count; i++)
        g.columns += is_first(p, i, same_column);
    if (g.columns == 2 || !p->draw_count || !p->draw[0])
        return;
    fl_grid_add(&g, "policy\tdraw");
    for (size_t i = 0; i < p->count; i++)
        if (is_first(p, i, same_column))
            fl_grid_add(&g, "%s", p->line[i].by_draw);
    for (size_t i = 0; i < p->count; i++)
        for (size_t n = 0; n < p->draw_count && is_first(p, i, same_rows); n++) {
            fl_grid_add(&g, "%s\t%s", p->line[i].simulated.policy, p->draw[n]);
            for (size_t k = 0; k < p->count; k++) {
                size_t at = 0;
                if (!is_first(p, k, same_column))
                    continue;
                while (at < p->count &&
                       !(same_rows(&p->line[at], &p->line[i]) && same_column(&p->line[at], &p->line[k])))
                    at++;
                add_number(&g, at < p->count ? p->line[at].draw_value[n] : (double)NAN);
            }
        }
    fputc('\n', out);
    fl_grid_print(&g, 2, out);
    fputc('\n', out);
}

/* With kernel records that take no time: a column of its own where a policy needs them. */
static bool any_spared(const fl_published *p) {
    bool any = false;
    for (size_t i = 0; i < p->count; i++)
        any |= !isnan(p->line[i].value_free);
    return any;
}

void fl_published_print(const fl_published *p, FILE *out) {
    const bool spared = any_spared(p);
    fl_grid g = {0};
    char text[160];
    fl_grid_column(&g, "quantity", "what the paper states, or what belongs beside it");
    fl_grid_column(&g, "unit", "of the numbers");
    fl_grid_column(&g, "published", "the paper's number or range");
    fl_grid_column(&g, "simulated", "the number of this comparison");
    if (spared)
        fl_grid_column(&g, "records free", "the same where activity records take no time");
    fl_grid_column(&g, "difference", "simulated less published, 0 within the range");
    fl_grid_column(&g, "gate or report", "what must hold, and whether it does");
    for (size_t i = 0; i < p->count; i++) {
        const published_line *l = &p->line[i];
        fl_grid_add(&g, "%s\t%s", l->quantity, l->unit);
        if (l->low < l->high)
            fl_grid_add(&g, "%.5g..%.5g", l->low, l->high);
        else
            add_number(&g, l->low);
        add_number(&g, l->value);
        if (spared)
            add_number(&g, l->value_free);
        if (isnan(fl_published_difference(l)))
            fl_grid_add(&g, "-");
        else
            fl_grid_add(&g, "%+.3g", fl_published_difference(l));
        fl_grid_add(&g, "%s", gate_text(l, text, sizeof text));
    }
    fl_grid_print(&g, 2, out);
    print_draws(p, out);
    for (size_t i = 0; i < p->count; i++)
        print_note(p, i, out);
    print_claims(p, out);
    for (fl_json at = p->assumed.node ? fl_json_first(&p->assumed) : (fl_json){0}; at.node;
         at = fl_json_next(&p->assumed, &at))
        if (cJSON_GetStringValue(at.node))
            fprintf(out, "assumed: %s\n", cJSON_GetStringValue(at.node));
}

cJSON *fl_published_json(const fl_published *p) {
    cJSON *all = cJSON_CreateArray();
    for (size_t i = 0; i < p->count; i++) {
        const published_line *l = &p->line[i];
        char text[160];
        cJSON *o = fl_json_add_row(all);
        cJSON_AddStringToObject(o, "quantity", l->quantity);
        cJSON_AddStringToObject(o, "unit", l->unit);
        fl_json_add_real(o, "published_low", l->low);
        fl_json_add_real(o, "published_high", l->high);
        fl_json_add_real(o, "simulated", l->value);
        if (!isnan(l->value_free))
            fl_json_add_real(o, "simulated_records_free", l->value_free);
        if (l->errors.given)
            fl_json_add_real(o, "standard_error", l->error);
        fl_json_add_real(o, "difference", fl_published_difference(l));
        cJSON *draws = l->draw_value && p->draw[0] ? cJSON_AddObjectToObject(o, "by_draw") : NULL;
        for (size_t n = 0; draws && n < p->draw_count; n++)
            fl_json_add_real(draws, p->draw[n], l->draw_value[n]);
        cJSON_AddStringToObject(o, "gate", gate_text(l, text, sizeof text));
        if (fl_published_gated(l))
            cJSON_AddBoolToObject(o, "holds", l->holds);
        if (fl_published_gated(l) && l->draws > 1)
            cJSON_AddNumberToObject(o, "draws_held", (double)l->draws_held);
        if (l->fails)
            cJSON_AddStringToObject(o, "fails", l->fails);
    }
    return all;
}

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

/* Sets a key of the cell. "+KEY" puts its text behind the one that KEY has so far. */
static void set_key(cJSON *all, const cJSON *given) {
    const bool behind = given->string[0] == '+' && cJSON_IsString(given);
    const char *key = given->string + behind;
    const char *first = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(all, key));
    char *text = behind ? fl_must_print("%s%s", first ? first : "", given->valuestring) : NULL;
    cJSON *value = behind ? cJSON_CreateString(text) : cJSON_Duplicate(given, true);
    free(text);
    cJSON_DeleteItemFromObjectCaseSensitive(all, key);
    fl_must_have(cJSON_AddItemToObject(all, key, value));
}

/* The cell's selection: what the table says of each, with the column's and then the row's keys over it, and at last
 * those with a '+'. Kept in t->merged, which the selection borrows from. */
static fl_status read_cell(table *t, const fl_json *each, const fl_json *column, const fl_json *row,
                           const fl_texts *policies, selection *cell, fl_diag *d) {
    const fl_json *from[] = {each, column, row, each, column, row};
    cJSON *all = cJSON_CreateObject();
    fl_must_have(cJSON_AddItemToArray(t->merged, all));
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        for (fl_json e = from[i]->node ? fl_json_first(from[i]) : (fl_json){0}; e.node; e = fl_json_next(from[i], &e))
            if ((e.node->string[0] == '+') == (i >= 3))
                set_key(all, e.node);
    fl_json at = *row;
    at.node = all;
    return fl_published_selection(&at, policies, cell, d);
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
