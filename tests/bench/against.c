#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include "tests/bench/result.h"

#include <math.h>
#include <string.h>

typedef struct earlier {
    double relative, noise; /* noise is 0 if there was only one round */
} earlier;

static fl_status read_row(const fl_json *at, const char **key, earlier *e, fl_diag *d) {
    fl_json noise, relative;
    *e = (earlier){.relative = NAN};
    fl_status s = fl_json_object(at, d);
    if (!s && !(s = fl_json_get_text(at, "key", key, d)) && !(s = fl_json_get(at, "relative", &relative, d)) &&
        !cJSON_IsNull(relative.node))
        s = fl_json_real(&relative, -HUGE_VAL, HUGE_VAL, &e->relative, d);
    if (!s && !(s = fl_json_get(at, "noise", &noise, d)) && !cJSON_IsNull(noise.node))
        s = fl_json_real(&noise, 0, HUGE_VAL, &e->noise, d);
    return s;
}

fl_status fl_bench_earlier(const char *path, cJSON **tree, fl_diag *d) {
    fl_status s = fl_json_read_any(path, tree, d);
    if (!s && !cJSON_IsArray(*tree))
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "holds no figures of tests/bench --json, expected an array");
    const fl_json root = fl_json_root(*tree, path);
    for (fl_json at = fl_json_first(&root); !s && at.node; at = fl_json_next(&root, &at)) {
        const char *key;
        earlier e;
        s = read_row(&at, &key, &e, d);
    }
    return s;
}

/* All of the tree has been read once. */
static bool find(const fl_json *root, const char *key, earlier *e) {
    for (fl_json at = fl_json_first(root); at.node; at = fl_json_next(root, &at)) {
        const char *name;
        if (!read_row(&at, &name, e, NULL) && !strcmp(name, key))
            return isfinite(e->relative) && e->relative != 0;
    }
    return false;
}

static void tell(fl_grid *g, const fl_bench_figure *f, double moved, double noise) {
    fl_grid_add(g, "%s\t%s\t%+.0f %%\tbeyond the noise of %.0f %%:\t%s", f->row->key, f->row->what, 100 * moved,
                100 * noise, (moved > 0) == fl_bench_less_is_better(f->row) ? "worse" : "better");
}

fl_status fl_bench_against(const fl_bench_figure *f, size_t count, const cJSON *tree, const char *path, size_t *worse,
                           FILE *out, fl_diag *d) {
    fl_grid g = {.columns = 5};
    size_t moved_count = 0, compared = 0;
    const fl_json root = fl_json_root(tree, path);
    *worse = 0;
    for (size_t i = 0; i < count; i++) {
        earlier e;
        if (!find(&root, f[i].row->key, &e) || !isfinite(f[i].relative))
            continue;
        compared++;
        const double moved = (f[i].relative - e.relative) / fabs(e.relative);
        const double noise = fmax((isnan(f[i].noise) ? 0 : f[i].noise) + e.noise,
                                  0.01 * (f[i].brief ? FL_BENCH_LEAST_BRIEF_PCT : FL_BENCH_LEAST_PCT));
        if (!strcmp(f[i].row->key, "bare") || fabs(moved) <= noise) /* the bare loop is what the others are held to */
            continue;
        moved_count++;
        *worse += (moved > 0) == fl_bench_less_is_better(f[i].row);
        tell(&g, &f[i], moved, noise);
    }
    if (!compared)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "has no row that was measured now");
    fprintf(out, "\n%zu rows compared with %s, %zu moved beyond their noise, %zu of them for the worse\n", compared,
            path, moved_count, *worse);
    if (moved_count)
        fl_grid_print(&g, 2, out);
    fl_grid_free(&g);
    return FL_OK;
}
