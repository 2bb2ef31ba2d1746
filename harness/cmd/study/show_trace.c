/* What `foldline show` prints of a trace: duration, kernels, streams, gaps, utilisation, power and energy. */
#include "harness/cmd/study/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "traces/import/import.h"
#include "traces/io/io.h"
#include "traces/open/open.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_NAMES = 10 };

static const char *const GAP_CLASS[FL_STATS_GAPS] = {"below 10 us", "10 to 100 us", "0.1 to 1 ms", "1 to 10 ms",
                                                     "10 ms and more"};

static void add_count(cJSON *o, const char *key, size_t n) { cJSON_AddNumberToObject(o, key, (double)n); }

static void add_device(cJSON *list, const fl_device_stats *v, bool kernels) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddItemToArray(list, o);
    cJSON_AddNumberToObject(o, "device", v->device);
    fl_json_add_real(o, "span_s", v->span_s);
    if (kernels) {
        add_count(o, "kernels", v->kernels);
        add_count(o, "copies", v->copies);
        add_count(o, "streams", v->streams);
        fl_json_add_real(o, "busy_s", v->busy_s);
        fl_json_add_real(o, "busy_pct", v->span_s > 0 ? 100 * v->busy_s / v->span_s : NAN);
        fl_json_add_real(o, "copy_s", v->copy_s);
        fl_json_add_real(o, "kernels_at_once", v->busy_s > 0 ? v->kernel_s / v->busy_s : NAN);
        cJSON *gaps = cJSON_AddObjectToObject(o, "gaps");
        add_count(gaps, "count", v->gaps);
        fl_json_add_real(gaps, "total_s", v->gap_s);
        fl_json_add_real(gaps, "longest_s", v->longest_gap_s);
        cJSON *class = cJSON_AddArrayToObject(gaps, "classes");
        for (int c = 0; c < FL_STATS_GAPS; c++) {
            cJSON *of = fl_json_add_row(class);
            cJSON_AddStringToObject(of, "length", GAP_CLASS[c]);
            add_count(of, "count", v->gap_count[c]);
            fl_json_add_real(of, "total_s", v->gap_class_s[c]);
        }
    }
    if (!v->readings)
        return;
    add_count(o, "readings", v->readings);
    fl_json_add_real(o, "interval_s", v->interval_s);
    fl_json_add_real(o, "power_w", v->power_w);
    fl_json_add_real(o, "energy_j", v->energy_j);
    fl_json_add_real(o, "covered_s", v->covered_s);
    fl_json_add_real(o, "sm_mhz", v->sm_mhz);
    fl_json_add_real(o, "sm_mhz_min", v->sm_mhz_min);
    fl_json_add_real(o, "sm_mhz_max", v->sm_mhz_max);
    fl_json_add_real(o, "util_gpu_pct", v->util_pct);
}

static void put_json(const fl_stats *s, const fl_imported *run, cJSON *root) {
    fl_json_add_real(root, "duration_s", s->duration_s);
    if (run->has_kernels) {
        add_count(root, "kernels", s->kernels);
        add_count(root, "copies", s->copies);
        add_count(root, "syncs", s->syncs);
        add_count(root, "iterations", s->iterations);
        add_count(root, "kinds", s->kinds);
        add_count(root, "names", s->names);
        add_count(root, "streams", s->streams);
        add_count(root, "processes", s->processes);
        cJSON_AddBoolToObject(root, "launches", s->has_launches);
        cJSON_AddBoolToObject(root, "clocks", s->has_clocks);
    }
    cJSON *devices = cJSON_AddArrayToObject(root, "devices");
    for (size_t i = 0; i < s->device_count; i++)
        add_device(devices, &s->device[i], run->has_kernels);
    cJSON *top = run->has_kernels ? cJSON_AddArrayToObject(root, "top") : NULL;
    double total = 0;
    for (size_t i = 0; i < s->name_count; i++)
        total += s->name[i].total_s;
    for (size_t i = 0; i < s->name_count && i < FIRST_NAMES; i++) {
        cJSON *o = fl_json_add_row(top);
        cJSON_AddStringToObject(o, "name", s->name[i].name);
        add_count(o, "count", s->name[i].count);
        add_count(o, "kinds", s->name[i].kinds);
        fl_json_add_real(o, "total_s", s->name[i].total_s);
        fl_json_add_real(o, "share_pct", total > 0 ? 100 * s->name[i].total_s / total : NAN);
    }
    fl_json_add_texts(root, "notes", run->note, run->note_count);
}

static void print_device(const fl_device_stats *v, bool kernels) {
    printf("device %d\n", v->device);
    if (kernels) {
        printf("  activity  %zu kernels and %zu copies on %zu streams in %.6g s; a kernel runs %.1f %% of the time, "
               "%.2f at once\n",
               v->kernels, v->copies, v->streams, v->span_s, v->span_s > 0 ? 100 * v->busy_s / v->span_s : 0,
               v->busy_s > 0 ? v->kernel_s / v->busy_s : 0);
        printf("  gaps      %zu, %.4g s together, the longest %.4g s:", v->gaps, v->gap_s, v->longest_gap_s);
        bool any = false;
        for (int c = 0; c < FL_STATS_GAPS; c++)
            if (v->gap_count[c]) {
                printf("%s %zu %s (%.3g s)", any ? "," : "", v->gap_count[c], GAP_CLASS[c], v->gap_class_s[c]);
                any = true;
            }
        printf("%s\n", any ? "" : " none");
    }
    if (!v->readings)
        return;
    printf("  telemetry %zu readings over %.6g s", v->readings, v->covered_s);
    if (!isnan(v->interval_s))
        printf(", one every %.4g s", v->interval_s);
    if (!isnan(v->util_pct))
        printf(", utilisation %.1f %%", v->util_pct);
    fputc('\n', stdout);
    if (!isnan(v->power_w))
        printf("  power     %.5g W mean\n", v->power_w);
    if (!isnan(v->energy_j))
        printf("  energy    %.6g J%s%s\n", v->energy_j, v->counted ? " by the counter" : "",
               kernels ? " from the first kernel to the last" : "");
    if (!isnan(v->sm_mhz))
        printf("  clock     %.5g MHz mean, %.5g to %.5g MHz\n", v->sm_mhz, v->sm_mhz_min, v->sm_mhz_max);
}

static void print_top(const fl_stats *s) {
    static const char *const head[] = {"kernel", "count", "kinds", "total s", "% of kernel time", "mean us"};
    fl_grid g = FL_GRID_HEADED(head);
    double total = 0;
    for (size_t i = 0; i < s->name_count; i++)
        total += s->name[i].total_s;
    for (size_t i = 0; i < s->name_count && i < FIRST_NAMES; i++) {
        const fl_name_stats *n = &s->name[i];
        size_t size = strlen(n->name), cut = size < 60 ? size : 57;
        while (size >= 60 && cut && ((unsigned char)n->name[cut] & 0xc0) == 0x80)
            cut--;
        fl_grid_add(&g, "%.*s%s\t%zu\t%zu\t%.4g\t%.1f\t%.4g", (int)cut, n->name, size < 60 ? "" : "...", n->count,
                    n->kinds, n->total_s, total > 0 ? 100 * n->total_s / total : 0,
                    n->total_s / (double)n->count * 1e6);
    }
    fputc('\n', stdout);
    fl_grid_print(&g, 1, stdout);
    if (s->name_count > FIRST_NAMES)
        printf("... and %zu more\n", s->name_count - FIRST_NAMES);
}

static void print_text(const fl_stats *s, const fl_imported *run) {
    for (size_t i = 0; i < run->doubt_count; i++)
        printf("note: %s\n", run->note[i]);
    printf("duration    %.6g s\n", s->duration_s);
    if (run->has_kernels)
        printf("kernels     %zu of %zu kernel classes and %zu names, %zu copies, %zu syncs, %zu iterations; %zu "
               "streams of %zu "
               "processes\nrecorded    %s, %s\n",
               s->kernels, s->kinds, s->names, s->copies, s->syncs, s->iterations, s->streams, s->processes,
               s->has_launches ? "launches" : "no launches", s->has_clocks ? "clocks" : "no clocks");
    const char *kinds = fl_head_get(&run->kernels.head, "kinds");
    if (run->has_kernels && kinds)
        printf("kinds file  %s\n", kinds);
    for (size_t i = 0; i < s->device_count; i++)
        print_device(&s->device[i], run->has_kernels);
    if (s->name_count)
        print_top(s);
    if (run->note_count > run->doubt_count)
        fputc('\n', stdout);
    for (size_t i = run->doubt_count; i < run->note_count; i++)
        printf("note: %s\n", run->note[i]);
}

fl_status fl_show_trace(const fl_imported *run, cJSON *json, fl_diag *d) {
    fl_stats stats = {0};
    const fl_status s = fl_stats_make(&stats, run, d);
    if (!s && json)
        put_json(&stats, run, json);
    else if (!s)
        print_text(&stats, run);
    fl_stats_free(&stats);
    return s;
}
