/* Reads files by the program's own readers, for tests/formats.sh: each must take the same files as the pages of
 * harness/manual/formats do. A line of standard input is "FORMAT PATH" or "FORMAT PATH OUT"; the answer is a line "ok",
 * or why the file is refused. With OUT, what was read is written there, as a file of that format where it has a writer,
 * else as its values. No row is left out. */
#include "harness/input/experiment/experiment.h"
#include "harness/input/platform/platform.h"
#include "harness/study/grid/grid.h"
#include "tests/support/arrivals_write.h"
#include "tests/support/target_write.h"
#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"
#include "traces/serving/serving.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One function for each format: type, reader with its arguments, writer or nothing, and what frees the struct. */
#define FORMAT(name, type, read, write, release)                                                                       \
    static fl_status name(const char *path, const char *out, fl_diag *d) {                                             \
        type x = {0};                                                                                                  \
        fl_status s = read;                                                                                            \
        (void)out;                                                                                                     \
        if (!s && out)                                                                                                 \
            s = write;                                                                                                 \
        release(&x);                                                                                                   \
        return s;                                                                                                      \
    }

/* ---- what has no writer: its values ---- */

static fl_status values_end(FILE *f, fl_diag *d) {
    return f && !fclose(f) ? FL_OK : fl_error(d, FL_IO, "cannot write the values");
}

static fl_status put_layers(const char *out, const fl_layers *l, fl_diag *d) {
    FILE *f = fopen(out, "w");
    for (size_t i = 0; f && i < l->count; i++)
        fprintf(f, "%s %.17g %.17g\n", l->names[l->row[i].layer], l->row[i].at, l->row[i].time_s);
    return values_end(f, d);
}

static fl_status put_attention(const char *out, const fl_attention *a, fl_diag *d) {
    FILE *f = fopen(out, "w");
    for (size_t i = 0; f && i < a->count; i++)
        fprintf(f, "%.17g %.17g %.17g %.17g %.17g\n", a->row[i].chunk, a->row[i].kv_chunk, a->row[i].decodes,
                a->row[i].kv_decode, a->row[i].time_s);
    return values_end(f, d);
}

static fl_status put_experts(const char *out, const fl_expert_rows *e, fl_diag *d) {
    FILE *f = fopen(out, "w");
    for (size_t i = 0; f && i < e->count; i++)
        fprintf(f, "%.17g %.17g %.17g\n", e->row[i].tokens, e->row[i].experts, e->row[i].time_s);
    return values_end(f, d);
}

static fl_status put_steps(const char *out, const fl_step_rows *r, fl_diag *d) {
    FILE *f = fopen(out, "w");
    for (size_t i = 0; f && i < r->count; i++)
        fprintf(f, "%d %.17g %.17g %.17g %.17g %.17g %.17g\n", r->row[i].prefill, r->row[i].sm_mhz, r->row[i].batch,
                r->row[i].tokens, r->row[i].context, r->row[i].time_s, r->row[i].power_w);
    return values_end(f, d);
}

static fl_status put_order(const char *out, const fl_pipeline_order *o, fl_diag *d) {
    FILE *f = fopen(out, "w");
    for (uint32_t k = 0; f && k < o->stages; k++)
        for (size_t i = 0; i < o->stage[k].count; i++)
            fprintf(f, "%u %s %d %d\n", k, fl_instruction_name[o->stage[k].item[i].type],
                    o->stage[k].item[i].microbatch, o->stage[k].item[i].microbatch2);
    return values_end(f, d);
}

static fl_status put_platform(const char *out, const fl_platform *p, fl_diag *d) {
    FILE *f = fopen(out, "w");
    const fl_device *g = p->node.device;
    const fl_host_spec *h = &p->node.host;
    if (f) {
        fprintf(f, "%s\n%u %s %u %u %.17g %.17g %.17g\n", p->title, p->node.gpu_count, g->name, g->sm_count,
                g->mem_count, g->a_w, g->sharpness, g->power_default_w);
        fprintf(f, "%s %.17g %u %u %.17g\n%zu notes, %zu policies\n", h->name, h->static_w, h->cores, h->cpu.count,
                h->cpu.default_mhz, p->note_count, p->policy_count);
    }
    return values_end(f, d);
}

static fl_status put_board(const char *out, const fl_board *b, fl_diag *d) {
    FILE *f = fopen(out, "w");
    if (f)
        fprintf(f, "%s\n%s %u %u\n", b->title, b->gpu, b->sm_count, b->mem_count);
    for (size_t i = 0; f && i < FL_BOARD_FACT_COUNT; i++)
        fprintf(f, "%s %.17g\n", fl_board_rows[i].key, b->fact[i]);
    return values_end(f, d);
}

static fl_status put_experiment(const char *out, const fl_experiment *e, fl_diag *d) {
    FILE *f = fopen(out, "w");
    char *text = cJSON_PrintUnformatted(e->tree);
    if (f && text)
        fprintf(f, "%s\n", text);
    cJSON_free(text);
    return values_end(f, d);
}

/* ---- the formats ---- */

/* The pipeline that names a list says how many stages and microbatches there are. Here the list itself does. */
static fl_status read_any_order(const char *path, fl_pipeline_order *o, fl_diag *d) {
    uint32_t stages = 0;
    const fl_status s = fl_pipeline_order_stages(path, &stages, d);
    return s ? s : fl_pipeline_order_read(path, stages, FL_PIPELINE_MICROBATCHES_MAX, o, d);
}

/* The reader drops a last step that is torn and says so; a file that is written once has none. */
static fl_status read_whole_log(const char *path, fl_decisions *r, fl_diag *d) {
    const fl_status s = fl_decisions_read(path, r, d);
    return s || !r->torn_line ? s : fl_refuse(d, "the step at line %lld is not whole", (long long)r->torn_line);
}

FORMAT(kernels, fl_kernel_trace, fl_kernels_read(path, &x, NULL, d), fl_kernels_write(out, &x, d), fl_kernel_trace_free)
FORMAT(kinds, fl_kinds, fl_kinds_read(path, &x, d), fl_kinds_write(out, &x, d), fl_kinds_free)
FORMAT(programs, fl_programs, fl_programs_read(path, &x, d), fl_programs_write(out, &x, d), fl_programs_free)
FORMAT(telemetry, fl_telemetry, fl_telemetry_read(path, &x, NULL, d), fl_telemetry_write(out, &x, d), fl_telemetry_free)
FORMAT(sweep, fl_sweep, fl_sweep_read(path, &x, NULL, d), fl_sweep_write(out, &x, d), fl_sweep_free)
FORMAT(target, fl_target, fl_target_read(path, &x, d), target_write(out, &x, d), fl_target_free)
FORMAT(requests, fl_requests, fl_requests_read(path, &x, NULL, d), fl_requests_write(out, &x, d), fl_requests_free)
FORMAT(arrivals, fl_arrivals, fl_arrivals_read(path, &x, d), arrivals_write(out, &x, d), fl_arrivals_free)
FORMAT(serving, fl_serving, fl_serving_read(path, &x, d), fl_serving_write(out, &x, d), fl_serving_free)
FORMAT(layers, fl_layers, fl_layers_read(path, "tokens", &x, NULL, d), put_layers(out, &x, d), fl_layers_free)
FORMAT(sequences, fl_layers, fl_layers_read(path, "sequences", &x, NULL, d), put_layers(out, &x, d), fl_layers_free)
FORMAT(attention, fl_attention, fl_attention_read(path, &x, NULL, d), put_attention(out, &x, d), fl_attention_free)
FORMAT(experts, fl_expert_rows, fl_expert_rows_read(path, &x, NULL, d), put_experts(out, &x, d), fl_expert_rows_free)
FORMAT(steps, fl_step_rows, fl_step_rows_read(path, &x, NULL, d), put_steps(out, &x, d), fl_step_rows_free)
FORMAT(pipeline, fl_pipeline, fl_pipeline_read(path, &x, d), fl_pipeline_write(out, &x, d), fl_pipeline_free)
FORMAT(order, fl_pipeline_order, read_any_order(path, &x, d), put_order(out, &x, d), fl_pipeline_order_free)
FORMAT(plan, fl_plans, fl_plans_read(path, &x, d), fl_plans_write(out, &x, d), fl_plans_free)
FORMAT(decisions, fl_decisions, read_whole_log(path, &x, d), fl_decisions_write(out, &x, d), fl_decisions_free)
FORMAT(trajectory, fl_decisions, fl_trajectory_read(path, &x, d), fl_decisions_write(out, &x, d), fl_decisions_free)
FORMAT(platform, fl_platform, fl_platform_open(path, 0, &x, d), put_platform(out, &x, d), fl_platform_free)
FORMAT(board, fl_board, fl_board_open(path, &x, d), put_board(out, &x, d), fl_board_free)
FORMAT(experiment, fl_experiment, fl_experiment_open(path, &x, d), put_experiment(out, &x, d), fl_experiment_free)

static fl_status journal(const char *path, const char *out, fl_diag *d) {
    fl_journal *j = NULL;
    FILE *f = NULL;
    fl_status s = fl_journal_merge(&j, &path, 1, d);
    if (!s && out && (f = fopen(out, "w")))
        fl_journal_write(j, f);
    if (!s && out)
        s = values_end(f, d);
    fl_journal_close(j);
    return s;
}

/* path: BASE, of the files BASE.plans.csv and so on. */
static fl_status measured(const char *path, const char *out, fl_diag *d) {
    fl_pipeline_runs r = {0};
    fl_status s = fl_pipeline_runs_read(path, &r, d);
    FILE *f = !s && out ? fopen(out, "w") : NULL;
    for (size_t i = 0; f && i < r.plan_count; i++) {
        fprintf(f, "%lld %.17g %.17g", (long long)r.plan[i], r.time_s[i], r.energy_j[i]);
        for (size_t k = i * r.ranks; k < (i + 1) * r.ranks; k++)
            fprintf(f, " %.17g %.17g", r.run[k].time_s, r.run[k].energy_j);
        fputc('\n', f);
    }
    for (size_t i = 0; f && i < r.part_count; i++)
        fprintf(f, "%u %u %.17g %.17g\n", r.part[i].plan, r.part[i].rank, r.part[i].sm_mhz, r.part[i].mean_s);
    for (size_t i = 0; f && i < r.cap_count * r.ranks; i++)
        fprintf(f, "%s %.17g\n", r.cap[i / r.ranks].family, r.limit_w[i]);
    if (!s && out)
        s = values_end(f, d);
    fl_pipeline_runs_free(&r);
    return s;
}

#define ROW(name)                                                                                                      \
    { #name, name }
static const struct {
    const char *name;
    fl_status (*read)(const char *path, const char *out, fl_diag *d);
} formats[] = {ROW(kernels),    ROW(kinds),    ROW(programs), ROW(telemetry),  ROW(sweep),     ROW(target),
               ROW(requests),   ROW(arrivals), ROW(serving),  ROW(layers),     ROW(sequences), ROW(attention),
               ROW(experts),    ROW(steps),    ROW(pipeline), ROW(order),      ROW(plan),      ROW(decisions),
               ROW(trajectory), ROW(platform), ROW(board),    ROW(experiment), ROW(journal),   ROW(measured)};

int main(void) {
    char line[4096], name[32], path[1024], out[1024], text[2048];
    while (fgets(line, sizeof line, stdin)) {
        const int n = sscanf(line, "%31s %1023s %1023s", name, path, out);
        fl_diag d = {0};
        fl_status s = fl_refuse(&d, "no such format");
        for (size_t i = 0; n >= 2 && i < sizeof formats / sizeof *formats; i++)
            if (!strcmp(formats[i].name, name)) {
                d = (fl_diag){0};
                s = formats[i].read(path, n > 2 ? out : NULL, &d);
            }
        puts(s ? fl_diag_text(&d, text, sizeof text) : "ok");
        fflush(stdout);
    }
    return 0;
}
