/* Reads a result and the files beside it. */
#include "harness/report/data/inside.h"

#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/study/compare/compare.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUE_MAX 1e40 /* energy x time^2 of a year of a data centre is below; sums of squares stay finite */

enum { FL_SHARE_CLASSES_MAX = 24 }; /* more distinct clocks than this are grouped into classes */

/* ---- names and columns ---- */

/* clang-format off */
static const char *const column_name[FL_REPORT_COLUMNS] = {
    "energy_j", "makespan_s", "mean_power_w", "slowdown", "worst_window_slowdown", "regret_static_pct",
    "regret_clairvoyant_pct", "violated", "switches", "energy_saving_pct", "edp", "ed2p", "reward_regret",
    "latency_mean_s", "latency_p99_s", "energy_per_request_j"};
/* clang-format on */

size_t fl_names_index(fl_names *n, const char *text) {
    const uint32_t at = fl_intern_text(&n->found, &n->item, &n->count, &n->room, text, strlen(text));
    fl_must_have(at != UINT32_MAX);
    return at;
}

void fl_names_free(fl_names *n) {
    for (size_t i = 0; i < n->count; i++)
        free(n->item[i]);
    free(n->item);
    fl_intern_free(&n->found);
    *n = (fl_names){0};
}

/* ---- rows ---- */

enum { WORKLOAD, POLICY, SEED, PLATFORM, VARIANT, CLOCK, TEXTS };

typedef struct loaded { /* what tells one row from all others */
    size_t workload, policy, platform, variant;
    uint64_t seed;
    int64_t draw, line;
} loaded;

typedef struct loader {
    fl_report_data *r;
    loaded *row;
    size_t row_count, row_room, draw_at;
    size_t text_at[TEXTS], value_at[FL_REPORT_COLUMNS], load_at, width; /* SIZE_MAX: no such column */
    bool headed;
} loader;

static fl_status header(loader *l, const fl_csv_row *r, fl_diag *d) {
    static const char *const text[TEXTS] = {"workload", "policy", "seed", "platform", "variant", "clock"};
    for (size_t i = 0; i < TEXTS; i++)
        l->text_at[i] = fl_report_find(r, text[i]);
    for (size_t i = 0; i < FL_REPORT_COLUMNS; i++)
        l->value_at[i] = fl_report_find(r, column_name[i]);
    l->load_at = fl_report_find(r, "offered_rps");
    l->draw_at = fl_report_find(r, "draw");
    l->width = r->count;
    l->headed = true;
    if (l->text_at[WORKLOAD] == SIZE_MAX || l->text_at[POLICY] == SIZE_MAX ||
        l->value_at[FL_REPORT_ENERGY_J] == SIZE_MAX || l->value_at[FL_REPORT_SLOWDOWN] == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, r->file, r->line, 1,
                       "no columns workload, policy, energy_j and slowdown, expected the CSV of compare or grid");
    return FL_OK;
}

static fl_status number(const fl_csv_row *r, size_t at, const char *name, double *value, fl_diag *d) {
    *value = NAN;
    if (at == SIZE_MAX || !strcmp(r->field[at].text, "n/a"))
        return FL_OK;
    return fl_field_real_or_nan(r, at, name, -VALUE_MAX, VALUE_MAX, value, d);
}

/* Times, energies, powers and counts are not negative. Savings, slowdowns and regrets may be. */
static bool may_be_negative(size_t column) {
    return column == FL_REPORT_SLOWDOWN || strstr(column_name[column], "slowdown") ||
           strstr(column_name[column], "regret") || strstr(column_name[column], "saving");
}

static int by_row(const void *pa, const void *pb) {
    const loaded *a = pa, *b = pb;
    const int o[] = {(a->workload > b->workload) - (a->workload < b->workload),
                     (a->policy > b->policy) - (a->policy < b->policy),
                     (a->platform > b->platform) - (a->platform < b->platform),
                     (a->variant > b->variant) - (a->variant < b->variant),
                     (a->seed > b->seed) - (a->seed < b->seed),
                     (a->draw > b->draw) - (a->draw < b->draw)};
    for (size_t i = 0; i < sizeof o / sizeof *o; i++)
        if (o[i])
            return o[i];
    return 0;
}

/* A doubled row would count twice in every mean. */
static fl_status check_twice(loader *l, fl_diag *d) {
    if (l->row_count)
        qsort(l->row, l->row_count, sizeof *l->row, by_row);
    for (size_t i = 1; i < l->row_count; i++) {
        const loaded *a = &l->row[i - 1], *b = &l->row[i];
        if (!by_row(a, b))
            return fl_fail(d, FL_BAD_INPUT, l->r->path, a->line > b->line ? a->line : b->line, 1,
                           "workload '%.80s' and policy '%.80s' with this platform, variant and seed stand in line "
                           "%lld too, expected each row once",
                           l->r->workload.item[a->workload], l->r->policy.item[a->policy],
                           (long long)(a->line < b->line ? a->line : b->line));
    }
    return FL_OK;
}

static bool same_seed(const void *owner, uint32_t index, const void *key) {
    return ((const fl_report_data *)owner)->seed[index] == *(const uint64_t *)key;
}

static size_t add_seed(fl_report_data *r, uint64_t seed) {
    fl_intern_slot *slot = fl_must(fl_intern_find(&r->by_seed, fl_hash(&seed, sizeof seed), same_seed, r, &seed));
    if (slot->index == UINT32_MAX) {
        fl_must_grow(&r->seed, &r->seed_room, r->seed_count + 1, sizeof *r->seed);
        slot->index = (uint32_t)r->seed_count;
        r->seed[r->seed_count++] = seed;
    }
    return slot->index;
}

/* The workload of a variant is "name [variant]"; this is the name alone, because the variant has a column of its own.
 */
static void plain_name(const char *workload, const char *variant, char *text, size_t size) {
    const size_t all = strlen(workload), end = *variant ? strlen(variant) + 3 : 0;
    const bool tagged = end && all > end && !strncmp(workload + all - end, " [", 2) && workload[all - 1] == ']' &&
                        !strncmp(workload + all - end + 2, variant, end - 3);
    snprintf(text, size, "%.*s", (int)(tagged ? all - end : all), workload);
}

static fl_status read_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_report_data *r = l->r;
    if (!l->headed)
        return header(l, row, d);
    if (row->count != l->width || row->torn)
        return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "row has %zu fields%s, expected %zu", row->count,
                       row->torn ? " and no end" : "", l->width);
    if (!strcmp(row->field[l->text_at[WORKLOAD]].text, "mean"))
        return FL_OK;
    fl_report_row x = {0};
    fl_names *names[TEXTS] = {&r->workload, &r->policy, NULL, &r->platform, &r->variant, &r->clock};
    size_t *index[TEXTS] = {&x.workload, &x.policy, NULL, &x.platform, &x.variant, &x.clock};
    fl_status s = FL_OK;
    const char *text[TEXTS];
    char workload[512];
    for (size_t i = 0; i < TEXTS; i++)
        text[i] = l->text_at[i] == SIZE_MAX ? "" : row->field[l->text_at[i]].text;
    plain_name(text[WORKLOAD], text[VARIANT], workload, sizeof workload);
    text[WORKLOAD] = workload;
    for (size_t i = 0; i < TEXTS; i++)
        if (names[i])
            *index[i] = fl_names_index(names[i], text[i]);
    int64_t seed = 0;
    if (l->text_at[SEED] != SIZE_MAX)
        s = fl_field_int(row, l->text_at[SEED], "seed", 0, INT64_MAX, &seed, d);
    x.seed = (uint64_t)seed;
    for (size_t i = 0; !s && i < FL_REPORT_COLUMNS; i++)
        if (!(s = number(row, l->value_at[i], column_name[i], &x.value[i], d)) && x.value[i] < 0 && !may_be_negative(i))
            s = fl_fail(d, FL_BAD_INPUT, row->file, row->line, row->field[l->value_at[i]].column,
                        "%s is %g, expected a number of at least 0", column_name[i], x.value[i]);
    double load = NAN;
    if (!s)
        s = number(row, l->load_at, "offered_rps", &load, d);
    r->serves |= isfinite(load);
    if (s)
        return s;
    int64_t draw = 0;
    if (l->draw_at != SIZE_MAX && fl_int_parse(row->field[l->draw_at].text, &draw) != FL_NUMBER_OK)
        draw = 0; /* none */
    fl_must_grow(&l->row, &l->row_room, l->row_count + 1, sizeof *l->row);
    l->row[l->row_count++] = (loaded){x.workload, x.policy, x.platform, x.variant, x.seed, draw, row->line};
    x.seed_at = add_seed(r, x.seed);
    fl_must_grow(&r->row, &r->row_room, r->row_count + 1, sizeof *r->row);
    r->row[r->row_count++] = x;
    return FL_OK;
}

/* ---- files beside the result ---- */

/* NULL: there is no such file. */
static char *beside(const char *csv, const char *ending) {
    if (fl_is_standard(csv))
        return NULL;
    char *provenance = fl_provenance_path(csv);
    char *path = fl_must_print("%.*s%s", (int)(strlen(provenance) - strlen(".provenance.json")), provenance, ending);
    free(provenance);
    if (!access(path, F_OK))
        return path;
    free(path);
    return NULL;
}

static fl_status read_beside(const char *csv, const char *ending, cJSON **tree, fl_diag *d) {
    char *path = beside(csv, ending);
    const fl_status s = path ? fl_json_read(path, tree, d) : FL_OK;
    free(path);
    return s;
}

/* Results are copied and renamed, so a file beside one may belong to another. A record that names no result (of a
 * shard) proves nothing. */
static fl_status check_record(const fl_report_data *r, fl_diag *d) {
    const char *of = fl_report_text(r, "result_sha256");
    char *path = of && strcmp(of, r->sha256) ? fl_provenance_path(r->path) : NULL;
    if (!path)
        return FL_OK;
    fl_status s = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                          "the record of another result (SHA-256 %.12s..., but %s has %.12s...), expected the record "
                          "that was written with it, or none",
                          of, r->path, r->sha256);
    free(path);
    return s;
}

fl_status fl_report_read(const char *csv, fl_report_data *r, fl_diag *d) {
    loader l = {.r = r};
    fl_csv_options options = {.trim = true};
    *r = (fl_report_data){.path = fl_must(strdup(csv)), .bound = INFINITY};
    fl_status s = fl_csv_read(csv, &options, NULL, read_row, &l, d);
    if (!s)
        s = check_twice(&l, d);
    free(l.row);
    if (!s && !r->row_count)
        s = fl_fail(d, FL_BAD_INPUT, csv, 0, 0, "no row of a workload, expected the CSV of compare or grid");
    if (!s && !fl_result_sha256(csv, r->sha256))
        s = fl_fail(d, FL_IO, csv, 0, 0, "cannot be read again");
    if (!s)
        s = read_beside(csv, ".provenance.json", &r->provenance, d);
    if (!s)
        s = check_record(r, d);
    if (!s)
        s = read_beside(csv, ".published.json", &r->published, d);
    if (!s)
        r->regret_path = beside(csv, ".regret.csv");
    else
        fl_report_free(r);
    return s;
}

void fl_report_free(fl_report_data *r) {
    fl_names_free(&r->policy);
    fl_names_free(&r->workload);
    fl_names_free(&r->platform);
    fl_names_free(&r->variant);
    fl_names_free(&r->clock);
    free(r->row);
    free(r->seed);
    fl_intern_free(&r->by_seed);
    free(r->path);
    free(r->regret_path);
    cJSON_Delete(r->provenance);
    cJSON_Delete(r->published);
    *r = (fl_report_data){0};
}

/* ---- reading the result ---- */

bool fl_report_is_baseline(const char *policy) { return !strncmp(policy, "baseline:", 9); }

const char *fl_report_text(const fl_report_data *r, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItem(r->provenance, key));
}

const char *fl_report_objective(const fl_report_data *r) {
    const char *o =
        cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(r->provenance, "options"), "objective"));
    return o && (!strcmp(o, "edp") || !strcmp(o, "ed2p")) ? o : "energy";
}

static const char *settings_of(const char *label) {
    const char *colon = strchr(label, ':');
    return colon && strchr(colon, '=') && !fl_report_is_baseline(label) ? colon + 1 : NULL;
}

char *fl_label_family(const char *label, char buf[128]) {
    const char *settings = settings_of(label);
    snprintf(buf, 128, "%.*s", settings ? (int)(settings - label - 1) : (int)strlen(label), label);
    return buf;
}

bool fl_label_setting(const char *label, size_t index, char name[64], char value[64]) {
    const char *at = settings_of(label);
    for (; at && index; index--) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    const char *equals = at ? strchr(at, '=') : NULL;
    if (!equals)
        return false;
    const char *end = strchr(equals, ',');
    snprintf(name, 64, "%.*s", (int)(equals - at), at);
    snprintf(value, 64, "%.*s", end ? (int)(end - equals - 1) : (int)strlen(equals + 1), equals + 1);
    return true;
}

/* ---- regret over steps ---- */

typedef struct reading {
    const fl_report_data *r;
    size_t at[8];
    bool headed;
    fl_curves *to;
} reading;

static const char *const column[8] = {"workload", "policy", "platform",      "variant",
                                      "step",     "low",    "reward_regret", "high"};

static fl_status curves_read_row(void *user, const fl_csv_row *row, fl_diag *d) {
    reading *c = user;
    if (!c->headed) {
        for (size_t k = 0; k < 8; k++) {
            c->at[k] = fl_report_find(row, column[k]);
            if (c->at[k] == SIZE_MAX)
                return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "no column '%s' of a regret file", column[k]);
        }
        c->headed = true;
        return FL_OK;
    }
    for (size_t k = 0; k < 8; k++)
        if (c->at[k] >= row->count)
            return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1, "row has %zu fields", row->count);
    const char *workload = row->field[c->at[0]].text, *platform = row->field[c->at[2]].text,
               *variant = row->field[c->at[3]].text;
    char group[512];
    fl_curve_mark m = {.policy = SIZE_MAX};
    for (size_t p = 0; c->r && p < c->r->policy.count; p++)
        if (!strcmp(c->r->policy.item[p], row->field[c->at[1]].text))
            m.policy = p;
    if (c->r && m.policy == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, row->file, row->line, 1,
                       "policy '%s' is not in the result that this file belongs to", row->field[c->at[1]].text);
    const bool on = c->r ? c->r->platform.count > 1 : *platform != 0; /* else the page names it */
    const bool tagged = strchr(workload, '[') != NULL;                /* the name may contain the variant already */
    snprintf(group, sizeof group, "%s%s%s%s%s%s", workload, *variant && !tagged ? " [" : "", tagged ? "" : variant,
             *variant && !tagged ? "]" : "", on ? " on " : "", on ? platform : "");
    if (!c->r)
        m.policy = fl_names_index(&c->to->own, row->field[c->at[1]].text);
    m.group = fl_names_index(&c->to->group, group);
    fl_status s = FL_OK;
    double *into[4] = {&m.step, &m.low, &m.mean, &m.high};
    for (size_t k = 0; !s && k < 4; k++) {
        *into[k] = NAN;
        if (strcmp(row->field[c->at[4 + k]].text, "n/a") != 0)
            s = fl_field_real_or_nan(row, c->at[4 + k], column[4 + k], -HUGE_VAL, HUGE_VAL, into[k], d);
    }
    if (s)
        return s;
    fl_must_grow(&c->to->mark, &c->to->room, c->to->count + 1, sizeof *c->to->mark);
    c->to->mark[c->to->count++] = m;
    return FL_OK;
}

fl_status fl_curves_read(const char *path, const fl_report_data *r, fl_curves *c, fl_diag *d) {
    reading in = {.r = r, .to = c};
    const fl_csv_options options = {.trim = true};
    *c = (fl_curves){.policy = r ? &r->policy : &c->own};
    fl_status s = fl_csv_read(path, &options, NULL, curves_read_row, &in, d);
    if (!s && !r && !c->count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no row below the header, expected at least one to draw");
    if (s)
        fl_curves_free(c);
    return s;
}

void fl_curves_free(fl_curves *c) {
    fl_names_free(&c->group);
    fl_names_free(&c->own);
    free(c->mark);
    *c = (fl_curves){0};
}

/* ---- telemetry over time ---- */

enum { DEVICES_MAX = 16 };

size_t fl_signal_index(const fl_telemetry *t, const char *name) {
    for (size_t i = 0; i < t->signal_count; i++)
        if (!strcmp(t->signal[i], name))
            return i;
    return SIZE_MAX;
}

static int by_clock(const void *a, const void *b) {
    const fl_share *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* Groups equal clocks, and uses classes of equal width where there are many. */
static size_t gather(fl_share *x, size_t n) {
    qsort(x, n, sizeof *x, by_clock);
    size_t distinct = 0;
    for (size_t i = 0; i < n; i++)
        distinct += !i || x[i].low != x[i - 1].low;
    if (!n)
        return 0;
    enum { CLASSES = 16 };
    const double from = x[0].low, width = (x[n - 1].low - from) / CLASSES;
    size_t out = 0;
    double last = -1;
    for (size_t i = 0; i < n; i++) {
        const double class =
            distinct <= FL_SHARE_CLASSES_MAX ? x[i].low : fmin(CLASSES - 1, floor((x[i].low - from) / width));
        if (out && class == last) {
            x[out - 1].share += x[i].share;
            continue;
        }
        const double share = x[i].share;
        x[out] = distinct <= FL_SHARE_CLASSES_MAX ? (fl_share){x[i].low, x[i].low, share}
                                                  : (fl_share){from + class * width, from + (class + 1) * width, share};
        out++;
        last = class;
    }
    return out;
}

fl_status fl_residency(const fl_telemetry *t, const char *path, fl_share **list, size_t *count, fl_diag *d) {
    const size_t clock = fl_signal_index(t, "sm_mhz");
    int64_t last[DEVICES_MAX];
    bool seen[DEVICES_MAX] = {0};
    double all = 0, longest_ns[DEVICES_MAX];
    size_t n = 0;
    *count = 0;
    *list = NULL;
    if (clock == SIZE_MAX)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no column sm_mhz, expected the file of foldline run --timeline");
    fl_share *x = fl_must(malloc((t->row_count + 1) * sizeof *x));
    for (int32_t k = 0; k < DEVICES_MAX; k++)
        fl_must_have(!fl_telemetry_longest(t, SIZE_MAX, k, &longest_ns[k], NULL));
    for (size_t i = 0; i < t->row_count; i++) {
        const int32_t device = t->device[i];
        const double mhz = t->value[i * t->signal_count + clock];
        if (device < 0 || device >= DEVICES_MAX)
            continue;
        const double span = seen[device] ? (double)(t->t_ns[i] - last[device]) : 0;
        seen[device] = true;
        last[device] = t->t_ns[i];
        if (span <= 0 || span > longest_ns[device] || isnan(mhz)) /* nothing is known of a pause */
            continue;
        x[n++] = (fl_share){mhz, mhz, span};
        all += span;
    }
    for (size_t i = 0; i < n; i++)
        x[i].share /= all;
    *count = gather(x, n);
    *list = x;
    return FL_OK;
}
