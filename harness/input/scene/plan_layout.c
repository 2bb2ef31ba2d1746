#include "harness/input/scene/plan_layout.h"

#include <stdlib.h>

enum { GPU, COUNT, SM_MHZ, COLUMNS };

typedef struct rows {
    double *cell;
    size_t count, room; /* of rows; of cells */
} rows;

static fl_status add(rows *to, uint32_t gpu, double mhz, fl_diag *d) {
    double *last = to->count ? to->cell + (to->count - 1) * COLUMNS : NULL;
    if (last && last[GPU] == gpu && last[SM_MHZ] == mhz) {
        last[COUNT]++;
        return FL_OK;
    }
    if (fl_grow(&to->cell, &to->room, (to->count + 1) * COLUMNS, sizeof *to->cell))
        return fl_no_memory(d, "the plan");
    last = to->cell + to->count++ * COLUMNS;
    last[GPU] = gpu;
    last[COUNT] = 1;
    last[SM_MHZ] = mhz;
    return FL_OK;
}

static fl_status lay_rank(const fl_scene *scene, const fl_pipeline_clocks *c, uint32_t rank, rows *to, fl_diag *d) {
    const fl_pipeline_list *list = &scene->instructions.stage[rank % scene->pipeline.stages];
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < list->count; i++) {
        const fl_instruction *in = &list->item[i];
        if (in->type != FL_DO_FORWARD && in->type != FL_DO_BACKWARD)
            continue;
        const double mhz =
            *fl_pipeline_clock(c, rank, in->type == FL_DO_BACKWARD, (uint32_t)in->chunk, (uint32_t)in->microbatch);
        s = mhz > 0 ? add(to, rank, mhz, d) : FL_OK;
    }
    return s;
}

fl_status fl_plan_lay(const fl_spec *spec, const fl_scene *scene, fl_laid *l, fl_diag *d) {
    *l = (fl_laid){0};
    if (!spec->plans)
        return FL_OK;
    if (!scene || !scene->pipeline.ranks)
        return fl_fail(d, FL_BAD_INPUT, spec->plans->file, 0, 0,
                       "is a plan by instruction, expected it for a scene of --pipeline FILE, whose order lays it out");
    rows laid = {0};
    fl_pipeline_clocks c;
    fl_status s = fl_plans_clocks(spec->plans, spec->plan_place, &scene->pipeline, &c, d);
    if (s)
        return s;
    for (uint32_t rank = 0; !s && rank < scene->pipeline.ranks; rank++) {
        const fl_ladder ladder = scene->facts.gpu[rank].sm;
        s = fl_plans_check_ladder(spec->plans, spec->plan_place, rank, ladder.mhz, ladder.count, d);
        if (!s)
            s = lay_rank(scene, &c, rank, &laid, d);
    }
    fl_pipeline_clocks_free(&c);
    if (s) {
        free(laid.cell);
        return s;
    }
    l->table = (fl_table){.cell = laid.cell, .row_count = (uint32_t)laid.count, .column_count = COLUMNS};
    l->setting = (fl_setting){.name = spec->plan_param, .table = &l->table};
    l->layer = (fl_layer){.origin = spec->plans->file, .setting = &l->setting, .count = 1};
    return FL_OK;
}

void fl_laid_free(fl_laid *l) {
    free((double *)(uintptr_t)l->table.cell);
    *l = (fl_laid){0};
}
