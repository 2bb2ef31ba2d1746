/* Texts about scenes, the column map of --map, and telemetry beside a trace. */
#include "harness/input/scene/scene.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "models/laws/device.h"
#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/workload/workload.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- --map ---- */

static fl_status read_file(const char *path, fl_sweep_map *m, fl_diag *d) {
    cJSON *tree = NULL;
    fl_status s = fl_json_read(path, &tree, d);
    const fl_json root = fl_json_root(tree, path);
    for (fl_json at = s ? (fl_json){0} : fl_json_first(&root); !s && at.node; at = fl_json_next(&root, &at)) {
        char *source = NULL;
        s = fl_json_param_text(&at, &source, d);
        if (!s)
            s = fl_sweep_map_add(m, at.node->string, source, d);
        free(source);
    }
    if (!s && !m->count)
        s = fl_json_fail(&root, d, "no pair, expected such as \"sm_mhz\": \"COLUMN\"");
    cJSON_Delete(tree);
    if (s)
        fl_sweep_map_free(m);
    return s;
}

fl_status fl_sweep_map_open(const char *spec, fl_sweep_map *m, fl_diag *d) {
    *m = (fl_sweep_map){0};
    return fl_name_ends(spec, ".json") ? read_file(spec, m, d) : fl_sweep_map_parse(spec, m, d);
}

/* ---- telemetry beside a trace ---- */

static fl_status join_telemetry(const char *beside, fl_imported *run, fl_diag *d) {
    const char *offset = fl_head_get(&run->kernels.head, "clock_offset_ns");
    if (!offset)
        return fl_import_note(
            run, d, "%s lies beside, but no clock_offset_ns says that both are on one clock: left out", beside);
    fl_imported one = {0};
    fl_status s = fl_trace_open(beside, NULL, NULL, &one, d);
    const char *same = fl_head_get(&one.telemetry.head, "clock_offset_ns");
    if (!s)
        s = fl_import_take_notes(run, &one, NULL, d);
    if (!s && one.has_telemetry && same && !strcmp(same, offset)) {
        run->telemetry = one.telemetry;
        run->has_telemetry = true;
        one.telemetry = (fl_telemetry){0};
    } else if (!s) {
        s = fl_import_note(run, d, "%s is of another import: left out", beside);
    }
    fl_imported_free(&one);
    return s;
}

fl_status fl_trace_beside(const char *path, fl_imported *run, fl_diag *d) {
    static const char *const ending[] = {"", ".gz"};
    fl_status s = FL_OK;
    if (!run->has_kernels || run->has_telemetry || !fl_name_ends(path, ".csv"))
        return FL_OK;
    for (size_t i = 0; !s && !run->has_telemetry && i < 2; i++) {
        char *beside = NULL;
        if (asprintf(&beside, "%.*s.telemetry.csv%s", (int)fl_stem_length(path, ".csv"), path, ending[i]) < 0)
            return fl_no_memory(d, NULL);
        s = access(beside, R_OK) ? FL_OK : join_telemetry(beside, run, d);
        free(beside);
    }
    return s;
}

/* ---- texts about scenes ---- */

char *fl_clocks_text(const fl_device *dev, double sm_mhz, double mem_mhz, char *buf, size_t size) {
    if (dev->mem_count > 1)
        snprintf(buf, size, "%g MHz, memory %g MHz", sm_mhz, mem_mhz);
    else
        snprintf(buf, size, "%g MHz", sm_mhz);
    return buf;
}

/* A note on several scenes of one file is printed once. */
static bool was_told(const fl_scenes *scenes, size_t until, const char *note) {
    for (size_t i = 0; i < until; i++)
        for (size_t k = 0; k < scenes->item[i]->note_count; k++)
            if (!strcmp(scenes->item[i]->source, scenes->item[until]->source) &&
                !strcmp(scenes->item[i]->note[k], note))
                return true;
    return false;
}

void fl_scene_warnings(const fl_scenes *scenes) {
    fl_ticker_clear();
    for (size_t i = 0; i < scenes->count; i++) {
        const fl_scene *s = scenes->item[i];
        for (size_t k = 0; k < s->note_count; k++)
            if (!was_told(scenes, i, s->note[k]))
                fl_terminal_say(stderr, "note: %s: %s", basename(s->source), s->note[k]);
    }
}

bool fl_scene_power_assumed(const fl_scene *s) {
    return !s->w->measured && !s->w->predicted && fl_platform_assumed(&s->platform, "gpu.power.a_w");
}

bool fl_scene_interpolated(const fl_scene *s, double sm_mhz, double mem_mhz) {
    if (!s->w->measured || s->w->predicted || !s->w->class_count)
        return false;
    const fl_load *of = &s->w->class[0].load;
    const fl_measured *m = fl_measured_find(of->measured, of->ref_mem_mhz, mem_mhz);
    return m && !fl_curve_has(m->time_ratio, sm_mhz);
}

/* Prints the note on the workload that was measured at the fewest clocks of its ladder. */
static void put_interpolated(const fl_scenes *scenes, FILE *out) {
    size_t most = 0, of = 0;
    for (size_t i = 0; i < scenes->count; i++) {
        const fl_device *dev = &scenes->item[i]->platform.node.device[scenes->item[i]->platform.node.gpu[0]];
        size_t n = 0;
        for (size_t k = 0; k < dev->sm_count * dev->mem_count; k++)
            n +=
                fl_scene_interpolated(scenes->item[i], dev->sm_mhz[k % dev->sm_count], dev->mem_mhz[k / dev->sm_count]);
        if (n > most) {
            most = n;
            of = dev->sm_count * dev->mem_count;
        }
    }
    if (most)
        fprintf(out,
                "note: %zu of %zu clocks were not measured: time and power there are interpolated, also those of "
                "static clocks\n",
                most, of);
}

/* A platform is spoken of once. */
static bool told_before(const fl_scenes *scenes, size_t until) {
    for (size_t i = 0; i < until; i++)
        if (fl_scene_power_assumed(scenes->item[i]) && !strcmp(scenes->item[i]->asked, scenes->item[until]->asked))
            return true;
    return false;
}

/* Of each serving file once. */
static void put_servers(const fl_scenes *scenes, FILE *out) {
    char text[FL_SERVING_CLOCKS_TEXT];
    for (size_t i = 0; i < scenes->count; i++) {
        const fl_serving_scene *s = scenes->item[i]->serving;
        size_t before = 0;
        while (s && before < i &&
               (!scenes->item[before]->serving || strcmp(scenes->item[before]->serving->path, s->path) != 0))
            before++;
        if (s && before == i)
            fprintf(out, "note: %s: %s\n", basename(s->path), fl_serving_scene_clocks(s, text, sizeof text));
    }
}

char *fl_scene_assumed_text(const fl_scene *s, char *buf, size_t size) {
    *buf = '\0';
    if (!s->serving)
        return buf;
    const fl_batching_rules *rules = &s->serving->setup.server[0].rules;
    const fl_node_spec *node = &s->platform.node;
    return fl_serving_assumed_text(&s->serving->law, &node->device[node->gpu[0]], rules->token_budget, rules->max_seqs,
                                   buf, size);
}

void fl_scene_assumed(const fl_scenes *scenes, FILE *out) {
    char text[FL_SERVING_CLOCKS_TEXT];
    if (scenes->count && *fl_scene_assumed_text(scenes->item[0], text, sizeof text))
        fprintf(out, "%s\n", text);
}

void fl_scene_notes(const fl_scenes *scenes, FILE *out) {
    size_t assumed = 0, host = 0, untangled = 0, fitted = 0, powers = 0;
    double time_pct = 0, power_pct = 0;
    for (size_t i = 0; i < scenes->count; i++) {
        const fl_workload *w = scenes->item[i]->w;
        assumed += w->assumed && !scenes->item[i]->serving; /* of whose steps the line above tells */
        host += w->gaps_are_host && !w->measured && isnan(w->model_time_mape_pct);
        untangled += w->untangled;
        if (isfinite(w->model_time_mape_pct)) {
            fitted++;
            time_pct += w->model_time_mape_pct;
        }
        if (isfinite(w->model_power_mape_pct)) {
            powers++;
            power_pct += w->model_power_mape_pct;
        }
    }
    put_servers(scenes, out);
    if (scenes->clipped) {
        const fl_device *dev = &scenes->item[0]->platform.node.device[0];
        fprintf(out, "note: the ladder of %s is cut to the clocks that were measured (%d to %d MHz",
                scenes->item[0]->platform.name, dev->sm_mhz[0], dev->sm_mhz[dev->sm_count - 1]);
        for (uint32_t i = 0; i < dev->mem_count; i++)
            fprintf(out, "%s%d", i ? ", " : "; memory at ", dev->mem_mhz[i]);
        fputs(dev->mem_count ? " MHz)\n" : ")\n", out);
    }
    put_interpolated(scenes, out);
    if (fitted || powers) {
        char time[32] = "not known", power[32] = "not known";
        if (fitted)
            snprintf(time, sizeof time, "%.2f %%", time_pct / (double)fitted);
        if (powers)
            snprintf(power, sizeof power, "%.2f %%", power_pct / (double)powers);
        fprintf(out,
                "note: models fitted to the rows of %zu workloads; expected mean error at settings without a "
                "measurement: %s in time, %s in power\n",
                fitted > powers ? fitted : powers, time, power);
    }
    for (size_t i = 0; i < scenes->count; i++)
        if (fl_scene_power_assumed(scenes->item[i]) && !told_before(scenes, i))
            fprintf(out,
                    "note: the power model of %s is assumed, not measured: foldline list platforms %s says from what\n",
                    scenes->item[i]->platform.name, scenes->item[i]->asked);
    if (assumed)
        fprintf(out, "note: for %zu of %zu workloads, how kernels depend on clocks is unknown and was assumed\n",
                assumed, scenes->count);
    if (host)
        fprintf(out, "note: no launches recorded in %zu of %zu workloads: gaps before kernels count as host time\n",
                host, scenes->count);
    if (untangled)
        fprintf(out,
                "note: kernels overlapped in %zu of %zu recordings: the slowdown from sharing the GPU was taken out of "
                "their work\n",
                untangled, scenes->count);
}
