#include "harness/base/json_out.h"
#include "harness/study/published.h"
#include "harness/study/published_inside.h"

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

void fl_published_print(const fl_published *p, FILE *out) {
    static const char *const head[] = {"quantity", "unit", "published", "simulated", "difference", "gate or report"};
    fl_grid g = FL_GRID_HEADED(head);
    char text[160];
    for (size_t i = 0; i < p->count; i++) {
        const line *l = &p->line[i];
        fl_grid_add(&g, "%s", l->quantity);
        fl_grid_add(&g, "%s", l->unit);
        if (l->low < l->high)
            fl_grid_add(&g, "%.5g..%.5g", l->low, l->high);
        else
            add_number(&g, l->low);
        add_number(&g, l->value);
        if (isnan(fl_published_difference(l)))
            fl_grid_add(&g, "-");
        else
            fl_grid_add(&g, "%+.3g", fl_published_difference(l));
        fl_grid_add(&g, "%s", gate_text(l, text, sizeof text));
    }
    fl_grid_print(&g, 2, out);
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
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "quantity", l->quantity);
        cJSON_AddStringToObject(o, "unit", l->unit);
        fl_json_add_real(o, "published_low", l->low);
        fl_json_add_real(o, "published_high", l->high);
        fl_json_add_real(o, "simulated", l->value);
        fl_json_add_real(o, "difference", fl_published_difference(l));
        cJSON_AddStringToObject(o, "gate", gate_text(l, text, sizeof text));
        if (fl_published_gated(l))
            cJSON_AddBoolToObject(o, "holds", l->holds);
        if (l->fails)
            cJSON_AddStringToObject(o, "fails", l->fails);
        cJSON_AddItemToArray(all, o);
    }
    return all;
}
