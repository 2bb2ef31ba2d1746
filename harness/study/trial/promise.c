/* Bounds on columns of a result. */
#include "harness/study/trial/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/scene/scene.h"
#include "harness/study/trial/trial.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECTED "expected a share such as 5%% or 0.05, or COLUMN<NUMBER such as latency_p99_s<0.17"

/* ---- from text ---- */

/* Told under the bounds, or of a baseline only: a promise about them would be about itself. */
static bool about_itself(const char *column) {
    static const char *const none[] = {"violated",
                                       "seed",
                                       "bound_break_chance",
                                       "expected_regret",
                                       "regret_static_j",
                                       "regret_static_pct",
                                       "regret_clairvoyant_pct",
                                       "oracle_j",
                                       "oracle_bound_j",
                                       "oracle_gap_pct",
                                       "oracle_objective",
                                       "oracle_objective_bound",
                                       "regret_at_own_slowdown_j",
                                       "rows",
                                       "saving_static_pct",
                                       "saving_most_pct",
                                       "regret_static_rows",
                                       "regret_clairvoyant_rows"};
    for (size_t i = 0; i < FL_COUNT(none); i++)
        if (!strcmp(column, none[i]))
            return true;
    return false;
}

static fl_status set_slowdown(const char *text, double share, double *slowdown, fl_diag *d) {
    if (!isinf(*slowdown))
        return fl_refuse(d, "bound '%s': a second bound on the slowdown, expected one", text);
    *slowdown = share;
    return FL_OK;
}

static fl_status parse_share(const char *text, double *slowdown, fl_diag *d) {
    bool percent;
    double x;
    if (!fl_share_parse(text, &x, &percent) || !isfinite(x))
        return fl_refuse(d, "--bound '%s', " EXPECTED, text);
    if (!percent && x > 1)
        return fl_share_refuse("--bound ", x, d);
    if (x < 0 || x > 100)
        return fl_refuse(d, "--bound '%s', expected a number from 0 to 1, or from 0%% to 10000%%", text);
    return set_slowdown(text, x, slowdown, d);
}

static fl_status parse_column(const char *text, size_t size, fl_promise *p, fl_diag *d) {
    const fl_row_result none = {0};
    const char *from = text;
    double ignored;
    while (size && isspace((unsigned char)*from))
        from++, size--;
    while (size && isspace((unsigned char)from[size - 1]))
        size--;
    if (!size || size >= sizeof p->column)
        return fl_refuse(d, "--bound '%s', " EXPECTED, text);
    memcpy(p->column, from, size);
    p->column[size] = 0;
    fl_status s = fl_row_value(&none, p->column, &ignored, d);
    if (!s && about_itself(p->column))
        s = fl_refuse(d, "--bound '%s': %s depends on the bounds, expected a column that does not", text, p->column);
    p->watched = !s && !fl_row_is_column(p->column);
    return s;
}

fl_status fl_promise_parse(const char *text, fl_promises *p, double *slowdown, fl_diag *d) {
    const size_t size = strcspn(text, "<>");
    fl_promise one = {.below = text[size] == '<'};
    bool percent;
    char above[FL_SHARE_TEXT];
    if (!text[size])
        return parse_share(text, slowdown, d);
    fl_status s = parse_column(text, size, &one, d);
    if (s)
        return s;
    one.equal = text[size + 1] == '=';
    const char *limit = text + size + 1 + one.equal;
    const bool share = !strcmp(one.column, "slowdown") || !strcmp(one.column, "worst_window_slowdown");
    if (!fl_share_parse(limit, &one.limit, &percent) || !isfinite(one.limit) || (percent && !share))
        return fl_refuse(d, "--bound '%s': '%s', expected a number%s", text, limit,
                         share ? " or one with %, of a share" : "");
    if (share && !percent && one.limit > 1)
        return fl_refuse(d, "--bound '%s': %s", text, fl_share_text(one.limit, above));
    if (one.below && one.equal && !strcmp(one.column, "slowdown") && one.limit >= 0)
        return set_slowdown(text, one.limit, slowdown, d);
    if (p->count == FL_PROMISES_MAX)
        return fl_refuse(d, "--bound '%s': more than %d bounds", text, FL_PROMISES_MAX);
    p->item[p->count++] = one;
    return FL_OK;
}

fl_status fl_promises_parse(const fl_texts *texts, fl_promises *p, double *slowdown, fl_diag *d) {
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < texts->count; i++)
        s = fl_promise_parse(texts->item[i], p, slowdown, d);
    return s;
}

/* ---- from an experiment ---- */

/* A number is a share, as it always was; a text is what --bound takes. */
static fl_status read_one(const fl_json *at, fl_promises *p, double *slowdown, fl_diag *d) {
    const char *text = cJSON_GetStringValue(at->node);
    fl_diag wrong = {0};
    double share;
    if (!text) { /* above 1 the keys have refused it */
        const fl_status s = fl_json_real(at, 0, 1, &share, d);
        return s                  ? s
               : isinf(*slowdown) ? set_slowdown("", share, slowdown, d)
                                  : fl_json_fail(at, d, "a second bound on the slowdown, expected one");
    }
    const fl_status s = fl_promise_parse(text, p, slowdown, &wrong);
    const size_t option = strncmp(wrong.message, "--bound ", 8) ? 0 : 8; /* it is a key here, which is named */
    return s == FL_BAD_INPUT ? fl_json_fail(at, d, "%s", wrong.message + option) : s;
}

static bool has_column(const fl_promises *p, const char *column) {
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->item[i].column, column))
            return true;
    return false;
}

fl_status fl_promises_add(const fl_promises *own, double share, fl_promises *p, double *slowdown, fl_diag *d) {
    const fl_promises given = *p;
    const bool about_time = !isinf(*slowdown) || has_column(&given, "slowdown");
    if (!about_time)
        *slowdown = share;
    for (size_t i = 0; i < own->count; i++) {
        const char *column = own->item[i].column;
        if (strcmp(column, "slowdown") != 0 ? has_column(&given, column) : about_time)
            continue;
        if (p->count == FL_PROMISES_MAX)
            return fl_refuse(d, "more than %d bounds", FL_PROMISES_MAX);
        p->item[p->count++] = own->item[i];
    }
    return FL_OK;
}

fl_status fl_promises_read(const fl_experiment *e, fl_promises *p, double *slowdown, fl_diag *d) {
    const fl_json root = fl_json_root(e->tree, e->path);
    fl_promises own = {0};
    double share = INFINITY;
    fl_json at;
    fl_status s = FL_OK;
    if (fl_json_has(&root, "bound") && !(s = fl_json_get(&root, "bound", &at, d)))
        s = read_one(&at, &own, &share, d);
    if (!s && fl_json_has(&root, "bounds"))
        s = fl_json_get_array(&root, "bounds", &at, d);
    else
        at.node = NULL;
    const fl_json all = at;
    for (fl_json one = !s && all.node ? fl_json_first(&all) : (fl_json){0}; !s && one.node;
         one = fl_json_next(&all, &one))
        s = read_one(&one, &own, &share, d);
    return s ? s : fl_promises_add(&own, share, p, slowdown, d);
}

fl_status fl_promises_check(const fl_promises *p, const fl_scenes *scenes, fl_diag *d) {
    bool served = false, batched = false;
    for (size_t i = 0; i < scenes->count; i++)
        served |= scenes->item[i]->w->request_count > 0, batched |= scenes->item[i]->serving != NULL;
    for (size_t i = 0; !batched && i < p->count; i++)
        if (fl_row_is_served(p->item[i].column))
            return fl_refuse(d, "a bound on %s, but no server answers requests, expected a server", p->item[i].column);
    for (size_t i = 0; !served && !batched && i < p->count; i++) {
        const char *column = p->item[i].column;
        if (!strncmp(column, "latency_", 8) || !strcmp(column, "energy_per_request_j") ||
            !strcmp(column, "offered_load"))
            return fl_refuse(d, "a bound on %s, but no requests arrive, expected --arrivals", column);
    }
    return FL_OK;
}

bool fl_promises_watched(const fl_promises *p) {
    bool watched = false;
    for (size_t i = 0; p && i < p->count; i++)
        watched |= p->item[i].watched;
    return watched;
}

/* ---- as text ---- */

char *fl_promise_text(const fl_promise *p, char buf[FL_PROMISE_TEXT]) {
    char real[FL_REAL_TEXT];
    snprintf(buf, FL_PROMISE_TEXT, "%s%c%s%s", p->column, p->below ? '<' : '>', p->equal ? "=" : "",
             fl_real_text(p->limit, real));
    return buf;
}

char *fl_promises_name(const fl_promises *p, double slowdown, size_t bit, char buf[FL_PROMISE_TEXT]) {
    const fl_promise share = {.column = "slowdown", .below = true, .equal = true, .limit = slowdown};
    return fl_promise_text(bit ? &p->item[bit - 1] : &share, buf);
}

void fl_promises_put(const fl_promises *p, double slowdown, fl_objective objective, FILE *out) {
    char text[FL_PROMISE_TEXT];
    if (isfinite(slowdown))
        fprintf(out, ", bound on the slowdown %g %%", 100 * slowdown);
    for (size_t i = 0; p && i < p->count; i++)
        fprintf(out, ", %s", fl_promise_text(&p->item[i], text));
    fprintf(out, ", objective %s", fl_objective_names[objective]);
}

cJSON *fl_promises_json(const fl_promises *p) {
    char text[FL_PROMISE_TEXT];
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; p && i < p->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(fl_promise_text(&p->item[i], text)));
    return list;
}

/* ---- judging a row ---- */

fl_promise_word fl_promise_test(const fl_promise *p, double value) {
    if (isnan(value))
        return FL_PROMISE_UNKNOWN;
    const bool held = (p->equal && value == p->limit) || (p->below ? value < p->limit : value > p->limit);
    return held ? FL_PROMISE_HELD : FL_PROMISE_BROKEN;
}

static void tell(const fl_promises *p, double slowdown, fl_row_result *row) {
    size_t at = 0;
    char text[FL_PROMISE_TEXT];
    row->breaks[0] = 0;
    for (size_t bit = 0; bit <= (p ? p->count : 0); bit++) {
        const bool broken = row->broken >> bit & 1, unknown = row->unknown >> bit & 1;
        if (!broken && !unknown)
            continue;
        const int n = snprintf(row->breaks + at, sizeof row->breaks - at, "%s%s%s", at ? "; " : "",
                               fl_promises_name(p, slowdown, bit, text), unknown ? " (n/a)" : "");
        if (n < 0 || (size_t)n >= sizeof row->breaks - at) {
            memcpy(row->breaks + sizeof row->breaks - 4, "...", 4);
            return;
        }
        at += (size_t)n;
    }
}

void fl_promises_judge(const fl_promises *p, double slowdown, fl_row_result *row) {
    row->broken = row->score.violated;
    row->unknown = 0;
    for (size_t i = 0; p && i < p->count; i++) {
        double value = NAN;
        fl_diag ignored = {0}; /* there is such a column: it was parsed */
        fl_row_value(row, p->item[i].column, &value, &ignored);
        const fl_promise_word word = fl_promise_test(&p->item[i], value);
        row->broken |= (uint32_t)(word == FL_PROMISE_BROKEN) << (i + 1);
        row->unknown |= (uint32_t)(word == FL_PROMISE_UNKNOWN) << (i + 1);
    }
    tell(p, slowdown, row);
    row->violated = row->broken || row->unknown;
    if (row->violated > 0)
        row->score.regret_static_j = row->score.regret_static_pct = row->score.regret_clairvoyant_j =
            row->score.regret_clairvoyant_pct = NAN;
    fl_row_count_regrets(row);
}

/* ---- latency targets as bounds ---- */

fl_status fl_promises_targets(const fl_serving_choice *c, fl_promises *p, fl_diag *d) {
    const double share = c->target_share > 0 ? c->target_share : FL_TARGET_SHARE;
    /* As decimal as it was written: 1 for 0.99. */
    const fl_promise base = {.below = true, .equal = true, .limit = nearbyint((1 - share) * 1e11) / 1e9};
    fl_promises own = {0};
    double ignored = INFINITY;
    if (c->ttft) {
        own.item[own.count] = base;
        snprintf(own.item[own.count++].column, sizeof base.column, "ttft_missed_pct");
    }
    if (c->tbt) {
        own.item[own.count] = base;
        snprintf(own.item[own.count++].column, sizeof base.column, "tbt_missed_pct");
    }
    return own.count ? fl_promises_add(&own, INFINITY, p, &ignored, d) : FL_OK;
}
