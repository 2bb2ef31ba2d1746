#include "harness/base/cli/grid.h"
#include "harness/study/compare/draws_compare.h"

#include "harness/base/work/bootstrap.h"
#include "sim/draws/draws.h"
#include "traces/io/writing.h"

#include <stdlib.h>
#include <string.h>

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool together(const fl_row_result *a, const fl_row_result *b) {
    return same_text(a->workload, b->workload) && same_text(a->policy, b->policy) &&
           same_text(a->variant, b->variant) && same_text(a->platform, b->platform);
}

static void write_mark(FILE *f, const fl_row_result *r, size_t mark, const fl_interval *x) {
    char text[3][32];
    fl_csv_put(f, r->workload);
    fputc(',', f);
    fl_csv_put(f, r->policy);
    fputc(',', f);
    fl_csv_put(f, r->platform ? r->platform : "");
    fputc(',', f);
    fl_csv_put(f, r->variant ? r->variant : "");
    fprintf(f, ",%zu,%zu,%s,%s,%s\n", (mark + 1) * FL_DRAWS_MARK, x->runs, fl_cell_text(x->mean, text[0]),
            fl_cell_text(x->low, text[1]), fl_cell_text(x->high, text[2]));
}

fl_status fl_draws_write_regret(const fl_comparison *c, const char *path, uint64_t seed, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    double *value = malloc((c->count + 1) * sizeof *value);
    fl_status s = !o ? d->status : value ? FL_OK : fl_no_memory(d, "the regret");
    const fl_bootstrap b = {.seed = seed, .draws = FL_DRAWS_STANDARD};
    if (!s)
        fputs("workload,policy,platform,variant,step,runs,reward_regret,low,high\n", fl_output_file(o));
    for (size_t i = 0, end; !s && i < c->mean_first; i = end) {
        size_t marks = SIZE_MAX;
        for (end = i; end < c->mean_first && together(&c->row[i], &c->row[end]); end++) {
            const fl_kept *kept = c->row[end].kept;
            marks = kept && kept->watch.regret_count < marks ? kept->watch.regret_count : kept ? marks : 0;
        }
        for (size_t m = 0; !s && m < marks; m++) { /* as far as all of its runs went */
            fl_interval x;
            for (size_t k = i; k < end; k++)
                value[k - i] = c->row[k].kept->watch.regret_mark[m];
            s = fl_bootstrap_mean(value, 1, end - i, &b, &x, d);
            if (!s)
                write_mark(fl_output_file(o), &c->row[i], m, &x);
        }
    }
    free(value);
    if (s) {
        if (o)
            fl_output_abort(o);
        return s;
    }
    return fl_output_commit(o, d);
}
