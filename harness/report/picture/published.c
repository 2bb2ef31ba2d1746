/* Numbers of a paper beside those of its experiment: a row for each, as a share of the published one. */
#include "harness/report/picture/inside.h"

#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ROW = 22, PREDICTED = 1, CALIBRATED = 2, POINT_FULL = 7, POINT_HOLLOW = 6 };
#define MOST_PCT 250.0 /* a mark further out stands there, and its text has the number */

typedef struct pair { /* a line that has both numbers */
    const char *quantity, *unit;
    double published, here;
    bool calibrated, comes_out;
} pair;

static double number(const cJSON *line, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(line, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static const char *text_of(const cJSON *line, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, key));
    return text ? text : "";
}

/* Inputs are not compared, nor are numbers near 0 and ranges around it, of which no share can be taken. */
static bool take(const cJSON *line, pair *p) {
    const double low = number(line, "published_low"), high = number(line, "published_high");
    const char *kind = text_of(line, "kind"), *verdict = text_of(line, "verdict");
    *p = (pair){.quantity = text_of(line, "quantity"),
                .unit = text_of(line, "unit"),
                .published = (low + high) / 2,
                .here = number(line, "simulated"),
                .calibrated = !strcmp(kind, "calibrated"),
                .comes_out = !strcmp(verdict, "reproduced") || !strncmp(verdict, "within", 6)};
    return strcmp(kind, "input") != 0 && isfinite(p->here) && low * high > 1e-12;
}

/* The claims of the system first, then the details. */
static size_t collect(const cJSON *lines, pair *row) {
    static const char *const block[] = {"claim", "detail"};
    size_t n = 0;
    for (size_t b = 0; b < 2; b++) {
        const cJSON *line;
        cJSON_ArrayForEach(line, lines) if (!strcmp(text_of(line, "block"), block[b]) && n < FL_ROWS_MAX) n +=
            take(line, &row[n]);
    }
    return n;
}

size_t fl_picture_published(fl_picture *p, const fl_summary *s) {
    pair row[FL_ROWS_MAX + 1];
    const cJSON *all = s->scope->data->published;
    const size_t n = collect(cJSON_GetObjectItemCaseSensitive(all, "published"), row);
    double longest = 60;
    for (size_t i = 0; i < n; i++)
        longest = fmax(longest, fl_text_width(row[i].quantity));
    fl_picture_plot(p, fmin(longest, 0.5 * p->width) + 24, 176, ROW * (double)n + 6);
    fl_picture_text(p, "x_label", "simulated, in % of the published number");
    fl_picture_title(
        p, "Published and simulated numbers",
        "At 100 both are the same. Orange: calibrated, the others are predictions; hollow: not reproduced. "
        "At the right: published / simulated");
    fl_picture_number(p, "middle", 100);
    fputs("policy,mean,low,high,point,colour,tip,beside\n", p->table);
    for (size_t i = 0; i < n; i++) {
        const double share = 100 * row[i].here / row[i].published, x = fmax(-MOST_PCT, fmin(MOST_PCT, share));
        char text[256], tip[512], beside[96];
        snprintf(beside, sizeof beside, "%.4g / %.4g %s", row[i].published, row[i].here, row[i].unit);
        snprintf(tip, sizeof tip, "%s: %s", row[i].quantity, beside);
        fl_picture_field(p->table, fl_text_fit(row[i].quantity, p->left - 24, text));
        fprintf(p->table, ",%.17g,%.17g,%.17g,%d,%d,", x, fmin(x, 100), fmax(x, 100),
                row[i].comes_out ? POINT_FULL : POINT_HOLLOW, row[i].calibrated ? CALIBRATED : PREDICTED);
        fl_picture_field(p->table, tip);
        fputc(',', p->table);
        fl_picture_field(p->table, fl_text_fit(beside, 160, text));
        fputc('\n', p->table);
    }
    fl_picture_number(p, "rows", (double)n);
    return n;
}
