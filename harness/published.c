#include "harness/published.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum form { PLAIN, SAVING_PCT, CHANGE_PCT, RATIO, DIFFERENCE, ABS_DIFFERENCE } form;
typedef enum over { MEAN, GEOMEAN, MEDIAN, MIN, MAX, SUM, COUNT_BELOW, COUNT_ABOVE } over;

typedef struct selection {
    fl_json at;
    const char *policy, *workload, *variant, *column, *against, *against_column;
    form form;
    over over;
    double limit; /* of the counts */
} selection;

typedef struct bound { /* one side of a gate */
    bool given;
    bool selected; /* by what, else value */
    selection what;
    double value;
} bound;

typedef struct line {
    const char *quantity, *unit, *note;
    double low, high; /* published; NAN = nothing */
    selection simulated;
    bound above, below, within, within_pct;
    double value;
    bool holds;
} line;

struct fl_published {
    line *line;
    size_t count;
    fl_json assumed;
    const fl_texts *policies;
};

/* ---- reading ---- */

static fl_status choose(const fl_json *at, const char *key, const char *const *name, size_t count, size_t *index,
                        fl_diag *d) {
    const char *text;
    fl_json value;
    fl_status s = fl_json_get(at, key, &value, d);
    if (!s)
        s = fl_json_get_text(at, key, &text, d);
    for (size_t i = 0; !s && i < count; i++)
        if (!strcmp(text, name[i])) {
            *index = i;
            return FL_OK;
        }
    const char *near = s ? NULL : fl_nearest(text, name, count);
    if (s)
        return s;
    return near ? fl_json_fail(&value, d, "'%s', did you mean '%s'?", text, near)
                : fl_json_fail(&value, d, "'%s', expected one of %s, %s, ...", text, name[0], name[1]);
}

static fl_status read_over(selection *s, fl_diag *d) {
    static const char *const names[] = {"mean", "geomean", "median", "min", "max", "sum", "count_below", "count_above"};
    const char *text;
    fl_json value;
    if (!fl_json_has(&s->at, "over"))
        return FL_OK;
    fl_status status = fl_json_get_text(&s->at, "over", &text, d);
    if (!status)
        status = fl_json_get(&s->at, "over", &value, d);
    const char *colon = status ? NULL : strchr(text, ':');
    const size_t size = status ? 0 : colon ? (size_t)(colon - text) : strlen(text);
    for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) != size || strncmp(text, names[i], size) != 0)
            continue;
        char *end = NULL;
        s->over = (over)i;
        s->limit = colon ? strtod(colon + 1, &end) : 0;
        if ((i >= COUNT_BELOW) != (colon != NULL) || (colon && (end == colon + 1 || *end)))
            break;
        return FL_OK;
    }
    return status ? status
                  : fl_json_fail(&value, d,
                                 "'%s', expected mean, geomean, median, min, max, sum, count_below:X or count_above:X",
                                 text);
}

static fl_status check_policy(const selection *s, const char *key, const char *pattern, const fl_texts *policies,
                              fl_diag *d) {
    static const char *const baseline[] = {"baseline:default", "baseline:static", "baseline:per-kernel",
                                           "baseline:clairvoyant"};
    fl_json value;
    for (size_t i = 0; i < policies->count; i++)
        if (!fnmatch(pattern, policies->item[i], 0))
            return FL_OK;
    for (size_t i = 0; i < sizeof baseline / sizeof *baseline; i++)
        if (!fnmatch(pattern, baseline[i], 0))
            return FL_OK;
    fl_status status = fl_json_get(&s->at, key, &value, d);
    const char *near = fl_nearest(pattern, (const char *const *)policies->item, policies->count);
    if (status)
        return status;
    return near ? fl_json_fail(&value, d, "'%s' is no policy of this experiment, did you mean '%s'?", pattern, near)
                : fl_json_fail(&value, d, "'%s' is no policy of this experiment", pattern);
}

static fl_status read_text(const fl_json *at, const char *key, const char **text, fl_diag *d) {
    return fl_json_has(at, key) ? fl_json_get_text(at, key, text, d) : FL_OK;
}

static fl_status check_column(const fl_json *at, const char *key, const char *name, fl_diag *d) {
    const fl_row_result none = {0};
    double ignored;
    fl_diag why = {0};
    fl_json value;
    if (fl_comparison_value(&none, name, &ignored, &why) == FL_OK)
        return FL_OK;
    fl_status status = fl_json_get(at, key, &value, d);
    return status ? status : fl_json_fail(&value, d, "%s", why.message);
}

static fl_status read_selection(const fl_json *at, const fl_texts *policies, selection *s, fl_diag *d) {
    static const char *const known[] = {"policy", "workload", "variant",        "column",
                                        "over",   "against",  "against_column", "as"};
    static const char *const forms[] = {"saving_pct", "change_pct", "ratio", "difference", "abs_difference"};
    *s = (selection){.at = *at, .workload = "*"};
    fl_status status = fl_json_object(at, d);
    if (!status)
        status = fl_json_known(at, known, sizeof known / sizeof *known, d);
    if (!status)
        status = fl_json_get_text(at, "policy", &s->policy, d);
    if (!status)
        status = fl_json_get_text(at, "column", &s->column, d);
    if (!status)
        status = read_text(at, "workload", &s->workload, d);
    if (!status)
        status = read_text(at, "variant", &s->variant, d);
    if (!status)
        status = read_text(at, "against", &s->against, d);
    if (!status)
        status = read_text(at, "against_column", &s->against_column, d);
    if (!status)
        status = read_over(s, d);
    size_t index = 0;
    if (!status && fl_json_has(at, "as"))
        status = choose(at, "as", forms, sizeof forms / sizeof *forms, &index, d);
    if (!status && fl_json_has(at, "as") != (s->against != NULL))
        status = fl_json_fail(at, d, "'against' and 'as' belong together, expected both or none");
    if (!status && s->against)
        s->form = (form)(index + 1);
    if (!status)
        status = check_policy(s, "policy", s->policy, policies, d);
    if (!status && s->against)
        status = check_policy(s, "against", s->against, policies, d);
    if (!status)
        status = check_column(at, "column", s->column, d);
    if (!status && s->against_column)
        status = check_column(at, "against_column", s->against_column, d);
    else
        s->against_column = s->column;
    return status;
}

static fl_status read_bound(const fl_json *gate, const char *key, bool selectable, const fl_texts *policies, bound *b,
                            fl_diag *d) {
    fl_json value;
    if (!fl_json_has(gate, key))
        return FL_OK;
    b->given = true;
    fl_status s = fl_json_get(gate, key, &value, d);
    if (!s && selectable && cJSON_IsObject(value.node)) {
        b->selected = true;
        return read_selection(&value, policies, &b->what, d);
    }
    return s ? s : fl_json_real(&value, selectable ? -HUGE_VAL : 0, HUGE_VAL, &b->value, d);
}

static fl_status read_value(const fl_json *at, line *l, fl_diag *d) {
    fl_json value;
    l->low = l->high = NAN;
    fl_status s = fl_json_get(at, "published", &value, d);
    if (s || cJSON_IsNull(value.node))
        return s;
    if (!cJSON_IsArray(value.node)) {
        s = fl_json_real(&value, -HUGE_VAL, HUGE_VAL, &l->low, d);
        l->high = l->low;
        return s;
    }
    if (fl_json_count(&value) != 2)
        return fl_json_fail(&value, d, "a range of %zu numbers, expected [low, high]", fl_json_count(&value));
    fl_json low = fl_json_first(&value), high = fl_json_next(&value, &low);
    s = fl_json_real(&low, -HUGE_VAL, HUGE_VAL, &l->low, d);
    return s ? s : fl_json_real(&high, l->low, HUGE_VAL, &l->high, d);
}

static fl_status read_line(const fl_json *at, const fl_texts *policies, line *l, fl_diag *d) {
    static const char *const known[] = {"quantity", "unit", "published", "simulated", "gate", "note"};
    static const char *const sides[] = {"above", "below", "within", "within_pct"};
    fl_json simulated, gate;
    l->value = NAN;
    l->unit = l->note = "";
    fl_status s = fl_json_object(at, d);
    if (!s)
        s = fl_json_known(at, known, sizeof known / sizeof *known, d);
    if (!s)
        s = fl_json_get_text(at, "quantity", &l->quantity, d);
    if (!s)
        s = read_text(at, "unit", &l->unit, d);
    if (!s)
        s = read_text(at, "note", &l->note, d);
    if (!s)
        s = read_value(at, l, d);
    if (!s && fl_json_has(at, "simulated") && !(s = fl_json_get_object(at, "simulated", &simulated, d)))
        s = read_selection(&simulated, policies, &l->simulated, d);
    if (s || !fl_json_has(at, "gate"))
        return s;
    s = fl_json_get_object(at, "gate", &gate, d);
    if (!s)
        s = fl_json_known(&gate, sides, 4, d);
    if (!s && !l->simulated.policy)
        s = fl_json_fail(&gate, d, "a gate on nothing, expected 'simulated' beside it");
    if (!s)
        s = read_bound(&gate, "above", true, policies, &l->above, d);
    if (!s)
        s = read_bound(&gate, "below", true, policies, &l->below, d);
    if (!s)
        s = read_bound(&gate, "within", false, policies, &l->within, d);
    if (!s)
        s = read_bound(&gate, "within_pct", false, policies, &l->within_pct, d);
    if (!s && isnan(l->low) && (l->within.given || l->within_pct.given))
        s = fl_json_fail(&gate, d, "within of nothing, expected a published number beside it");
    return s;
}

fl_status fl_published_open(const fl_experiment *e, const fl_texts *policies, fl_published **out, fl_diag *d) {
    *out = NULL;
    if (!e->tree)
        return FL_OK;
    const fl_json root = fl_json_root(e->tree, e->path);
    fl_json list = {0};
    if (!fl_json_has(&root, "published"))
        return FL_OK;
    fl_status s = fl_json_get_array(&root, "published", &list, d);
    fl_published *p = s ? NULL : calloc(1, sizeof *p);
    if (p)
        p->line = calloc(fl_json_count(&list) + 1, sizeof *p->line);
    if (!s && (!p || !p->line))
        s = fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the published results");
    for (fl_json at = s ? (fl_json){0} : fl_json_first(&list); !s && at.node; at = fl_json_next(&list, &at))
        s = read_line(&at, policies, &p->line[p->count++], d);
    if (!s && fl_json_has(&root, "assumed"))
        s = fl_json_get_array(&root, "assumed", &p->assumed, d);
    if (s) {
        fl_published_free(p);
        return s;
    }
    *out = p;
    return FL_OK;
}

void fl_published_free(fl_published *p) {
    if (!p)
        return;
    free(p->line);
    free(p);
}

/* ---- evaluating ---- */

static bool same_variant(const fl_row_result *row, const char *variant) {
    return row->variant && variant ? !strcmp(row->variant, variant) : row->variant == variant;
}

static const fl_row_result *counterpart(const fl_comparison *c, const fl_row_result *row, const char *against) {
    const fl_row_result *any = NULL;
    for (size_t i = 0; i < c->mean_first; i++) {
        const fl_row_result *r = &c->row[i];
        const bool here = !r->platform || !row->platform || !strcmp(r->platform, row->platform);
        if (!here || strcmp(r->workload, row->workload) != 0 || !same_variant(r, row->variant) ||
            fnmatch(against, r->policy, 0))
            continue;
        if (r->seed == row->seed)
            return r;
        any = any ? any : r;
    }
    return any;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One number of many; savings and changes come as ratios and are turned here, so that a geometric mean is one. */
static double combine(const selection *s, double *v, size_t n) {
    double sum = 0, product = 0;
    size_t below = 0, above = 0;
    const bool late = s->over == GEOMEAN; /* the form is applied to the mean */
    for (size_t i = 0; i < n; i++) {
        if (!late && s->form == SAVING_PCT)
            v[i] = 100 * (1 - v[i]);
        else if (!late && s->form == CHANGE_PCT)
            v[i] = 100 * (v[i] - 1);
        sum += v[i];
        product += log(v[i]);
        below += v[i] < s->limit;
        above += v[i] > s->limit;
    }
    qsort(v, n, sizeof *v, by_value);
    switch (s->over) {
    case MEAN:
        return sum / (double)n;
    case GEOMEAN: {
        const double mean = exp(product / (double)n);
        return s->form == SAVING_PCT ? 100 * (1 - mean) : s->form == CHANGE_PCT ? 100 * (mean - 1) : mean;
    }
    case MEDIAN:
        return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    case MIN:
        return v[0];
    case MAX:
        return v[n - 1];
    case SUM:
        return sum;
    case COUNT_BELOW:
        return (double)below;
    case COUNT_ABOVE:
        return (double)above;
    }
    return NAN;
}

static fl_status one_value(const selection *s, const fl_comparison *c, const fl_row_result *row, double *value,
                           fl_diag *d) {
    double other;
    fl_status status = fl_comparison_value(row, s->column, value, d);
    if (status || !s->against)
        return status;
    const fl_row_result *against = counterpart(c, row, s->against);
    if (!against)
        return fl_json_fail(&s->at, d, "no row of %s under '%s' to hold it against", row->workload, s->against);
    status = fl_comparison_value(against, s->against_column, &other, d);
    if (s->form == DIFFERENCE || s->form == ABS_DIFFERENCE)
        *value -= other;
    else
        *value /= other;
    if (s->form == ABS_DIFFERENCE)
        *value = fabs(*value);
    return status;
}

static fl_status evaluate(const selection *s, const fl_comparison *c, double *value, fl_diag *d) {
    double *v = malloc((c->mean_first + 1) * sizeof *v);
    size_t n = 0, rows = 0;
    fl_status status = v ? FL_OK : fl_fail(d, FL_NO_MEMORY, NULL, 0, 0, "out of memory for the published results");
    for (size_t i = 0; !status && i < c->mean_first; i++) {
        const fl_row_result *r = &c->row[i];
        if (fnmatch(s->policy, r->policy, 0) || !same_variant(r, s->variant) ||
            !fl_workload_matches(r->workload, r->variant, s->workload))
            continue;
        rows++;
        status = one_value(s, c, r, &v[n], d);
        n += !status && !isnan(v[n]); /* cells that are n/a are left out, as in the means */
    }
    if (!status && !rows)
        status = fl_json_fail(&s->at, d, "no row of the comparison matches, expected at least one");
    if (!status)
        *value = n ? combine(s, v, n) : (double)NAN;
    free(v);
    return status;
}

static fl_status solve_bound(bound *b, const fl_comparison *c, fl_diag *d) {
    return b->given && b->selected ? evaluate(&b->what, c, &b->value, d) : FL_OK;
}

/* Signed distance from the published number or range; 0 inside it, NAN where there is none. */
static double difference(const line *l) {
    if (l->value < l->low)
        return l->value - l->low;
    if (l->value > l->high)
        return l->value - l->high;
    return isnan(l->low) || isnan(l->value) ? (double)NAN : 0;
}

static bool holds(const line *l) { /* written so that n/a never holds */
    const double off = fabs(difference(l));
    return (!l->above.given || l->value > l->above.value) && (!l->below.given || l->value < l->below.value) &&
           (!l->within.given || off <= l->within.value) &&
           (!l->within_pct.given ||
            off <= l->within_pct.value / 100 * fabs(off > 0 && l->value > l->high ? l->high : l->low));
}

fl_status fl_published_solve(fl_published *p, const fl_comparison *c, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < p->count; i++) {
        line *l = &p->line[i];
        if (l->simulated.policy)
            s = evaluate(&l->simulated, c, &l->value, d);
        if (!s)
            s = solve_bound(&l->above, c, d);
        if (!s)
            s = solve_bound(&l->below, c, d);
        l->holds = holds(l);
    }
    return s;
}

static bool gated(const line *l) { return l->above.given || l->below.given || l->within.given || l->within_pct.given; }

size_t fl_published_failed(const fl_published *p) {
    size_t failed = 0;
    for (size_t i = 0; i < p->count; i++)
        failed += gated(&p->line[i]) && !p->line[i].holds;
    return failed;
}

/* ---- telling ---- */

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
        snprintf(text + used, size - used, ": %s", l->holds ? "holds" : "FAILS");
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

void fl_published_print(const fl_published *p, FILE *out) {
    static const char *const head[] = {"quantity", "unit", "published", "simulated", "difference", "gate or report"};
    fl_grid g = {.columns = 6};
    char text[160];
    for (size_t k = 0; k < 6; k++)
        fl_grid_add(&g, "%s", head[k]);
    for (size_t i = 0; i < p->count; i++) {
        const line *l = &p->line[i];
        fl_grid_add(&g, "%s", l->quantity);
        fl_grid_add(&g, "%s", l->unit);
        if (l->low < l->high)
            fl_grid_add(&g, "%.5g..%.5g", l->low, l->high);
        else
            add_number(&g, l->low);
        add_number(&g, l->value);
        if (isnan(difference(l)))
            fl_grid_add(&g, "-");
        else
            fl_grid_add(&g, "%+.3g", difference(l));
        fl_grid_add(&g, "%s", gate_text(l, text, sizeof text));
    }
    fl_grid_print(&g, 2, out);
    fl_grid_free(&g);
    for (size_t i = 0; i < p->count; i++)
        print_note(p, i, out);
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
        fl_json_add_real(o, "difference", difference(l));
        cJSON_AddStringToObject(o, "gate", gate_text(l, text, sizeof text));
        if (gated(l))
            cJSON_AddBoolToObject(o, "holds", l->holds);
        cJSON_AddItemToArray(all, o);
    }
    return all;
}
