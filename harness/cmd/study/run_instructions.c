#include "harness/cmd/study/run_instructions.h"

#include "traces/io/writing.h"

#include <math.h>
#include <stdlib.h>

enum { GRID_MAX = 20000000 }; /* points of one GPU: 160 MB */

typedef struct truth { /* of each GPU at the points of a grid */
    uint32_t gpus;
    size_t points, room;
    double *joules, *mhz_s; /* [point][gpu]: energy, and the clock's integral over time */
    double last_s;
} truth;

static fl_status on_truth(void *user, const fl_node *node, int64_t t_ps, fl_diag *d) {
    truth *t = user;
    size_t room = t->room;
    if (t->points == GRID_MAX)
        return fl_refuse(d, "the run is too long for a chart of its instructions, expected fewer iterations");
    if (fl_grow(&t->joules, &room, (t->points + 1) * t->gpus, sizeof *t->joules) ||
        fl_grow(&t->mhz_s, &t->room, (t->points + 1) * t->gpus, sizeof *t->mhz_s))
        return fl_no_memory(d, "the instructions");
    const double now = fl_seconds(t_ps);
    for (uint32_t g = 0; g < t->gpus; g++) {
        const fl_gpu *gpu = fl_node_gpu(node, g);
        const size_t at = t->points * t->gpus + g;
        const double before = t->points ? t->mhz_s[at - t->gpus] : 0;
        t->joules[at] = fl_joules(gpu->sums.energy_fj);
        t->mhz_s[at] = before + (now - t->last_s) * gpu->dev->sm_mhz[gpu->sm];
    }
    t->points++;
    t->last_s = now;
    return FL_OK;
}

/* An integral at an instant, between the points of the grid. */
static double at(const truth *t, const double *of, uint32_t gpu, double seconds) {
    const double place = seconds / ((double)FL_INSTRUCTIONS_EVERY_NS * 1e-9);
    size_t k = place > 0 ? (size_t)place : 0;
    if (t->points < 2)
        return 0;
    k = k + 2 > t->points ? t->points - 2 : k;
    const double from = of[k * t->gpus + gpu], to = of[(k + 1) * t->gpus + gpu];
    return from + (place - (double)k) * (to - from);
}

static void put_row(FILE *file, const truth *t, uint32_t rank, const char *what, const fl_pipeline_op *op, double start,
                    double end) {
    if (!(end - start > 0.5e-9)) /* times are in whole nanoseconds */
        return;
    fprintf(file, "%u,%s,", rank, what);
    if (op->chunk >= 0)
        fprintf(file, "%d", op->chunk);
    fputc(',', file);
    if (op->microbatch >= 0)
        fprintf(file, "%d", op->microbatch);
    fprintf(file, ",%.9f,%.9f,%.0f,%.1f\n", start, end,
            (at(t, t->mhz_s, rank, end) - at(t, t->mhz_s, rank, start)) / (end - start),
            (at(t, t->joules, rank, end) - at(t, t->joules, rank, start)) / (end - start));
}

static void put_all(FILE *file, const fl_scene *scene, const truth *t, const fl_run_result *r) {
    static const char *const NAME[] = {[FL_PART_OF_FORWARD] = "forward", [FL_PART_OF_BACKWARD] = "backward",
                                       [FL_PART_OF_LOAD] = "load",       [FL_PART_OF_LOAD_IN_RECV] = "load_in_recv",
                                       [FL_PART_OF_MEETING] = "meeting", [FL_PART_OF_TRANSFER] = "transfer",
                                       [FL_PART_OF_END] = "end",         [FL_PART_OF_MARKER] = ""};
    size_t op = 0;
    for (uint32_t rank = 0; rank < scene->w->stream_count; rank++) {
        const fl_stream *s = &scene->w->stream[rank];
        double start = 0;
        for (uint64_t i = 0; i < s->count; i++, op++) {
            const fl_pipeline_op *what = &scene->op[op];
            const double end = fl_seconds(r->mark_ps[op]);
            int64_t gap_ns, work_ns;
            uint32_t class_id;
            fl_workload_op(s, i, &gap_ns, &work_ns, &class_id);
            /* What spins takes as long at any clock: before that it waited. */
            const double own = scene->w->class[class_id].spins ? (double)work_ns * 1e-9 : end - start;
            const double began = fmax(start, end - own);
            if (what->part != FL_PART_OF_MARKER) {
                put_row(file, t, rank, "wait", what, start, began);
                put_row(file, t, rank, NAME[what->part], what, began, end);
            }
            start = end;
        }
    }
}

fl_status fl_run_instructions(const fl_scene *scene, const fl_run_options *run, const char *path, fl_diag *d) {
    fl_run_options again = *run;
    fl_run_result r = {0};
    truth t = {.gpus = scene->facts.gpu_count};
    fl_output *o = NULL;
    if (!scene->op)
        return fl_refuse(d, "--instructions needs a pipeline, expected --pipeline FILE as well");
    again.on_step = NULL;
    again.on_watch = NULL;
    again.on_truth = on_truth;
    again.truth_ns = FL_INSTRUCTIONS_EVERY_NS;
    again.user = &t;
    fl_status s = fl_workload_mark_ops(scene->w, d);
    if (!s)
        s = fl_run(&again, &r, d);
    if (!s && !(o = fl_output_open(path, d)))
        s = d ? d->status : FL_IO;
    if (!s) {
        fputs("rank,what,chunk,microbatch,start_s,end_s,sm_mhz,power_w\n", fl_output_file(o));
        put_all(fl_output_file(o), scene, &t, &r);
        s = fl_output_commit(o, d);
    }
    fl_run_result_free(&r);
    free(t.joules);
    free(t.mhz_s);
    return s;
}
