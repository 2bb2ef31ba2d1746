#include "harness/base/json/json_out.h"
#include "harness/study/compare/published.h"
#include "harness/study/compare/published_inside.h"

#include <math.h>
#include <string.h>

static const char *verdict(const line *l) {
    if (l->fails)
        return l->holds ? "HOLDS, but is said to fail" : "FAILED, as stated";
    return l->holds ? "holds" : "FAILS";
}

static char *gate_text(const line *l, char *text, size_t size) {
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
        const line *l = &p->line[i];
        gates += fl_published_gated(l);
        hold += fl_published_gated(l) && l->holds;
        stated += fl_published_gated(l) && !l->holds && l->fails;
        if (l->fails)
            fprintf(out, "fails: %s: %s\n", l->quantity, l->fails);
    }
    if (gates)
        fprintf(out, "gates: %zu of %zu hold, %zu fail as stated\n", hold, gates, stated);
}

static bool same_column(const line *a, const line *b) {
    return a->by_draw && b->by_draw && !strcmp(a->by_draw, b->by_draw);
}

static bool same_rows(const line *a, const line *b) {
    return a->by_draw && b->by_draw && !strcmp(a->simulated.policy, b->simulated.policy);
}

/* The first line with the same column or rows in the table of draws. */
static bool is_first(const fl_published *p, size_t i, bool (*same)(const line *, const line *)) {
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

enum { SIMULATED = 3 }; /* of the columns below */

void fl_published_print(const fl_published *p, FILE *out) {
    static const char *const head[] = {"quantity", "unit", "published", "simulated", "difference", "gate or report"};
    const bool spared = any_spared(p);
    fl_grid g = {.columns = sizeof head / sizeof *head + spared};
    char text[160];
    for (size_t k = 0; k < sizeof head / sizeof *head; k++) {
        fl_grid_add(&g, "%s", head[k]);
        if (spared && k == SIMULATED)
            fl_grid_add(&g, "records free");
    }
    for (size_t i = 0; i < p->count; i++) {
        const line *l = &p->line[i];
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
        const line *l = &p->line[i];
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
