#include "harness/study/trial/static_promise.h"

fl_status fl_static_promised(fl_scene *s, const fl_run_result *standard, const fl_promised_under *under,
                             const fl_choice *at, fl_static_point *point, fl_row_result *row, fl_diag *d) {
    const fl_reference ref = {.w = s->w, .standard = standard, .bound = under->bound};
    fl_run_options run = {.w = s->w, .rates = s->rates, .spec = &s->platform.node, .facts = &s->facts};
    fl_run_result r;
    *row = (fl_row_result){.seed = s->facts.seed};
    fl_status status = fl_kept_watch(&row->kept, under->watch_ns, &run, d);
    if (!status)
        status = fl_static_result(&run, at, &r, d);
    if (status)
        return status;
    *point = fl_static_point_of(&r, at);
    status = fl_score_run(&r, &ref, &row->score, d);
    fl_row_fill(row, s, &r, "baseline:static", standard->energy_j);
    fl_row_finish(row, under->objective,
                  fl_objective_value(under->objective, standard->energy_j, standard->makespan_s));
    if (row->kept) {
        const fl_status taken = fl_kept_take(row->kept, &r, d);
        status = status ? status : taken;
    } else {
        fl_run_result_free(&r);
    }
    fl_promises_judge(under->promises, under->bound, row);
    return status;
}

size_t fl_static_keep(const fl_row_result *row, fl_static_point *point, size_t count) {
    size_t kept = 0;
    for (size_t k = 0; k < count; k++)
        if (!(row[k].broken >> 1) && !row[k].unknown)
            point[kept++] = point[k];
    return kept;
}
