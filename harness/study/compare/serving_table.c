#include "harness/study/compare/serving_table.h"

#include "harness/study/trial/row_columns.h"

#include <math.h>
#include <string.h>

typedef struct column {
    const char *head, *name;
    int digits;
    bool percent; /* with so many decimals, else significant digits */
} column;

static const column columns[] = {{"saving %", "energy_saving_pct", 2, true},
                                 {"vs static %", "saving_static_pct", 2, true},
                                 {"at most %", "saving_most_pct", 1, true},
                                 {"J/token", "energy_per_token_j", 4, false},
                                 {"J/request", "energy_per_request_j", 4, false},
                                 {"TTFT p50 s", "ttft_p50_s", 3, false},
                                 {"p99 s", "ttft_p99_s", 3, false},
                                 {"TBT p50 s", "tbt_p50_s", 3, false},
                                 {"p99 s", "tbt_p99_s", 3, false},
                                 {"end to end p99 s", "latency_p99_s", 3, false},
                                 {"TTFT missed %", "ttft_missed_pct", 2, true},
                                 {"TBT missed %", "tbt_missed_pct", 2, true},
                                 {"goodput/s", "goodput_rps", 3, false},
                                 {"preemptions", "preemptions", 4, false},
                                 {"worst minute %", "worst_minute_missed_pct", 1, true},
                                 {"sets", "sets", 4, false}};

bool fl_serving_table_is_for(const fl_comparison *c) {
    for (size_t i = 0; i < c->mean_first; i++)
        if (isfinite(c->row[i].energy_per_token_j))
            return true;
    return false;
}

void fl_serving_table_heads(fl_grid *g) {
    fl_grid_add(g, "energy J");
    for (size_t k = 0; k < FL_COUNT(columns); k++)
        fl_grid_add(g, "%s", columns[k].head);
    fl_grid_add(g, "violated");
}

void fl_serving_table_row(fl_grid *g, const fl_row_result *r, bool each) {
    fl_grid_add(g, "%.6g", r->score.energy_j);
    for (size_t k = 0; k < FL_COUNT(columns); k++) {
        const column *c = &columns[k];
        double value = NAN;
        fl_row_value(r, c->name, &value, NULL); /* there is such a column */
        if (!isfinite(value))
            fl_grid_add(g, "n/a");
        else if (c->percent)
            fl_grid_add(g, "%.*f%s", c->digits, value, fl_row_partial(r, c->name) ? "*" : "");
        else
            fl_grid_add(g, "%.*g%s", c->digits, value, fl_row_partial(r, c->name) ? "*" : "");
    }
    if (each)
        fl_grid_add(g, "%s", r->violated > 0 ? "yes" : "no");
    else
        fl_grid_add(g, "%.0f/%llu", r->violated, (unsigned long long)r->rows);
}

void fl_serving_table_note(const fl_comparison *c, const fl_comparison_options *o, FILE *out) {
    size_t chosen = 0, all = 0;
    for (size_t i = 0; i < c->mean_first; i++) {
        chosen += !strcmp(c->row[i].policy, "baseline:static");
        all += !strcmp(c->row[i].policy, "baseline:default");
    }
    fputs("\nsaving % is against the driver's default clock, which is the top clock unless the platform says "
          "otherwise;\n",
          out);
    if (o->oracles)
        fputs("at most %: no clocks save more, whatever the latency: a lower bound on what these requests cost\n", out);
    if (!o->oracles)
        fputs("vs static % has no value, for no references were asked for\n", out);
    else if (o->promises && o->promises->count)
        fputs("vs static % is the saving against baseline:static, the best static clock of the same servers that holds "
              "the bounds above\n",
              out);
    else
        fputs(
            "vs static % is the saving against baseline:static, the best static clock of the same servers; no latency "
            "was bounded (--ttft, --tbt)\n",
            out);
    if (o->oracles && chosen < all)
        fprintf(out, "no static clock holds the bounds in %zu of %zu workloads\n", all - chosen, all);
}
