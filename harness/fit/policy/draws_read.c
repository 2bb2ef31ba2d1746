#include "harness/fit/policy/draws_read.h"

#include "harness/base/json/json.h"
#include "sim/draws/draws.h"

#include <math.h>
#include <string.h>

static fl_status read_clocks(const fl_json *root, fl_draws_fit *f, fl_diag *d) {
    fl_json list;
    fl_status s = fl_json_get_array(root, "sm_mhz", &list, d);
    for (fl_json e = fl_json_first(&list); !s && e.node; e = fl_json_next(&list, &e)) {
        int64_t mhz;
        if (f->clock_count == FL_DRAWS_CLOCKS_MAX)
            return fl_json_fail(&list, d, "too many clocks, expected %d at most", FL_DRAWS_CLOCKS_MAX);
        if ((s = fl_json_int(&e, 1, 100000, &mhz, d)))
            return s;
        if (f->clock_count && mhz >= f->mhz[f->clock_count - 1])
            return fl_json_fail(&e, d, "%lld, expected descending clocks", (long long)mhz);
        f->mhz[f->clock_count++] = (int32_t)mhz;
    }
    if (!s && f->clock_count < 2)
        return fl_json_fail(&list, d, "expected two clocks or more");
    for (uint32_t i = 0; !s && i < f->clock_count / 2; i++) { /* the clocks of the struct ascend */
        const int32_t swap = f->mhz[i];
        f->mhz[i] = f->mhz[f->clock_count - 1 - i];
        f->mhz[f->clock_count - 1 - i] = swap;
    }
    return s;
}

static fl_status read_row(const fl_json *at, const fl_draws_fit *f, double top_w, fl_draws_row *w, fl_diag *d) {
    static const char *const known[] = {"energy_kj", "round_robin_kj", "epsilon_greedy_kj", "top_time_s", "core_share"};
    fl_json list;
    fl_status s = fl_json_known(at, known, sizeof known / sizeof *known, d);
    if (!s)
        s = fl_json_get_array(at, "energy_kj", &list, d);
    if (!s && fl_json_count(&list) != f->clock_count)
        return fl_json_fail(&list, d, "expected one energy for each of %u clocks", f->clock_count);
    fl_json e = s ? (fl_json){0} : fl_json_first(&list);
    for (uint32_t i = f->clock_count; !s && i-- > 0; e = fl_json_next(&list, &e)) {
        s = fl_json_real(&e, 1e-9, 1e12, &w->energy_j[i], d);
        w->energy_j[i] *= 1e3;
    }
    if (!s)
        s = fl_json_get_real(at, "round_robin_kj", 1e-9, 1e12, &w->round_robin_j, d);
    if (!s)
        s = fl_json_get_real(at, "epsilon_greedy_kj", 1e-9, 1e12, &w->epsilon_greedy_j, d);
    w->round_robin_j *= 1e3;
    w->epsilon_greedy_j *= 1e3;
    w->core_share = NAN;
    w->top_time_s = round(100 * w->energy_j[f->clock_count - 1] / top_w) / 100;
    if (!s && fl_json_has(at, "top_time_s"))
        s = fl_json_get_real(at, "top_time_s", 1e-3, 1e9, &w->top_time_s, d);
    if (!s && fl_json_has(at, "core_share"))
        s = fl_json_get_real(at, "core_share", 0, 1, &w->core_share, d);
    return s;
}

static fl_status read_rows(const fl_json *root, fl_draws_fit *f, fl_diag *d) {
    fl_json all;
    double top_w = 0;
    fl_status s = fl_json_get_real(root, "top_power_w", 1e-3, 1e9, &top_w, d);
    if (!s)
        s = fl_json_get_object(root, "workloads", &all, d);
    for (fl_json e = s ? (fl_json){0} : fl_json_first(&all); !s && e.node; e = fl_json_next(&all, &e)) {
        if (f->row_count == FL_DRAWS_WORKLOADS_MAX)
            return fl_json_fail(&all, d, "too many workloads, expected %d at most", FL_DRAWS_WORKLOADS_MAX);
        if ((s = fl_json_object(&e, d)))
            return s;
        f->row[f->row_count].name = e.node->string;
        s = read_row(&e, f, top_w, &f->row[f->row_count++], d);
    }
    return s;
}

static fl_status read_regret(const fl_json *root, fl_draws_fit *f, fl_diag *d) {
    fl_json at;
    const char *name;
    int64_t steps;
    fl_status s = fl_json_get_object(root, "regret", &at, d);
    if (!s)
        s = fl_json_get_text(&at, "workload", &name, d);
    if (!s)
        s = fl_json_get_int(&at, "steps", FL_DRAWS_MARK, 1000000, &steps, d);
    if (!s)
        s = fl_json_get_real(&at, "round_robin", 1e-9, 1e15, &f->round_robin_regret, d);
    if (!s)
        s = fl_json_get_real(&at, "energyucb", 1e-9, 1e15, &f->energyucb_regret, d);
    if (s)
        return s;
    if (steps % FL_DRAWS_MARK)
        return fl_json_fail(&at, d, "steps: %lld, expected thousands", (long long)steps);
    f->regret_steps = (uint64_t)steps;
    for (f->regret_row = 0; f->regret_row < f->row_count; f->regret_row++)
        if (!strcmp(f->row[f->regret_row].name, name))
            return FL_OK;
    return fl_json_fail(&at, d, "no workload '%s'", name);
}

fl_status fl_draws_read(const char *path, cJSON **tree, fl_draws_fit *f, fl_diag *d) {
    static const char *const known[] = {"foldline_published_draws",
                                        "source",
                                        "assumed",
                                        "step_ms",
                                        "sharpness",
                                        "top_power_w",
                                        "sm_mhz",
                                        "regret",
                                        "workloads"};
    int64_t version;
    fl_status s = fl_json_read(path, tree, d);
    if (s)
        return s;
    const fl_json root = fl_json_root(*tree, path);
    if ((s = fl_json_known(&root, known, sizeof known / sizeof *known, d)) ||
        (s = fl_json_get_int(&root, "foldline_published_draws", 1, 1, &version, d)) ||
        (s = fl_json_get_real(&root, "step_ms", 0.01, 1e5, &f->step_ms, d)) ||
        (s = fl_json_get_real(&root, "sharpness", 1, 100, &f->sharpness, d)) || (s = read_clocks(&root, f, d)) ||
        (s = read_rows(&root, f, d)))
        return s;
    return read_regret(&root, f, d);
}
