/* What a fit to tables over clocks says, and the platform that it makes. */
#include "harness/serving/inside.h"

#include "harness/base/json/json.h"
#include "harness/input/platform/platform.h"
#include "models/laws/device.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void fl_serving_spread_json(cJSON *json, const char *name, const fl_serving_spread *e) {
    cJSON *o = cJSON_AddObjectToObject(json, name);
    fl_json_add_real(o, "mean_pct", e->mean);
    fl_json_add_real(o, "median_pct", e->median);
    fl_json_add_real(o, "p95_pct", e->p95);
    fl_json_add_real(o, "worst_pct", e->worst);
    fl_json_add_real(o, "bias_pct", e->bias);
}

static void print_row(const char *what, const fl_serving_spread *time, const fl_serving_spread *power) {
    printf("%-26s %8.2f %8.2f %8.2f", what, time->mean, time->p95, time->bias);
    if (!isnan(power->mean))
        printf(" %12.2f %8.2f %8.2f", power->mean, power->p95, power->bias);
    putchar('\n');
}

void fl_serving_steps_print(const fl_serving_steps_fit *f) {
    char what[64];
    printf("%-26s %26s%s\n%-26s %8s %8s %8s%s\n", "", "time %", f->has_power ? "                        power %" : "",
           "", "mean", "p95", "bias", f->has_power ? "         mean      p95     bias" : "");
    print_row("seen", &f->seen_time, &f->seen_power);
    for (uint32_t i = 0; i < f->clocks; i++) {
        snprintf(what, sizeof what, "%g MHz left out%s", f->clock[i].sm_mhz, f->clock[i].end ? ", an end" : "");
        print_row(what, &f->clock[i].time, &f->clock[i].power);
    }
    if (f->has_power)
        printf(
            "power: %.1f W + f v^2 (%.1f + compute %.1f) W/GHz + memory %.1f W; v flat to %.0f MHz, %.3f at %.0f MHz "
            "(its form is expected of any chip, not measured)\n",
            f->power.p0_w, f->power.idle_w, f->power.compute_w, f->power.memory_w, f->power.knee * f->power.top_mhz,
            fl_serving_power_v(&f->power, f->power.top_mhz), f->power.top_mhz);
}

void fl_serving_steps_json(cJSON *json, const fl_serving_steps_fit *f) {
    fl_serving_spread_json(json, "seen_time", &f->seen_time);
    fl_serving_spread_json(json, "seen_power", &f->seen_power);
    cJSON *list = cJSON_AddArrayToObject(json, "left_out_clocks");
    for (uint32_t i = 0; i < f->clocks; i++) {
        cJSON *one = fl_json_add_row(list);
        fl_json_add_real(one, "sm_mhz", f->clock[i].sm_mhz);
        cJSON_AddBoolToObject(one, "end", f->clock[i].end);
        fl_serving_spread_json(one, "time", &f->clock[i].time);
        fl_serving_spread_json(one, "power", &f->clock[i].power);
    }
}

/* ---- the platform of the fitted powers ---- */

static void set_item(cJSON *object, const char *key, cJSON *value) {
    if (cJSON_HasObjectItem(object, key))
        cJSON_ReplaceItemInObjectCaseSensitive(object, key, value);
    else
        cJSON_AddItemToObject(object, key, value);
}

static void set_note(cJSON *notes, const char *key, const char *text) {
    set_item(notes, key, cJSON_CreateString(text));
}

/* Notes of what is no longer there. */
static void drop_notes(cJSON *notes, const char *of) {
    for (cJSON *e = notes->child, *next; e; e = next) {
        next = e->next;
        if (!strncmp(e->string, of, strlen(of)))
            cJSON_Delete(cJSON_DetachItemViaPointer(notes, e));
    }
}

static void set_voltage(cJSON *power, const fl_serving_power *p, double lowest_mhz) {
    const double knee = p->knee * p->top_mhz, top = fl_serving_power_v(p, p->top_mhz);
    cJSON *list = cJSON_CreateArray();
    cJSON_AddItemToArray(list, cJSON_CreateDoubleArray((double[]){lowest_mhz, 1}, 2));
    if (knee > lowest_mhz && knee < p->top_mhz)
        cJSON_AddItemToArray(list, cJSON_CreateDoubleArray((double[]){knee, 1}, 2));
    cJSON_AddItemToArray(list, cJSON_CreateDoubleArray((double[]){p->top_mhz, top}, 2));
    set_item(power, "voltage", list);
}

/* The clocks of the table, with the base's own between them so that a policy has steps to take. */
static void set_ladder(cJSON *gpu, const fl_device *base, const fl_serving_steps_fit *f) {
    cJSON *list = cJSON_CreateArray();
    double last = 0;
    while (last < f->highest_mhz) {
        double next = f->highest_mhz;
        for (uint32_t i = 0; i < f->law.sm_count; i++)
            next = f->law.sm_mhz[i] > last ? fmin(next, f->law.sm_mhz[i]) : next;
        for (uint32_t i = 0; i < base->sm_count; i++)
            if (base->sm_mhz[i] > f->lowest_mhz && base->sm_mhz[i] > last)
                next = fmin(next, base->sm_mhz[i]);
        last = next;
        cJSON_AddItemToArray(list, cJSON_CreateNumber(round(next)));
    }
    set_item(gpu, "sm_mhz", list);
    set_item(gpu, "default_sm_mhz", cJSON_CreateNumber(round(f->highest_mhz)));
}

static void fill(cJSON *root, cJSON *gpu, cJSON *power, const fl_platform *base, const fl_serving_steps_fit *f) {
    const fl_device *dev = &base->node.device[0];
    cJSON *notes = cJSON_GetObjectItemCaseSensitive(root, "notes");
    if (!notes)
        notes = cJSON_AddObjectToObject(root, "notes");
    set_item(root, "title", cJSON_CreateString("fitted from a step table of a serving engine"));
    cJSON_DeleteItemFromObjectCaseSensitive(root, "policies"); /* their clocks are another chip's */
    cJSON_DeleteItemFromObjectCaseSensitive(root, "calibration");
    drop_notes(notes, "policies");
    drop_notes(notes, "calibration");
    set_ladder(gpu, dev, f);
    set_item(gpu, "mem_mhz", cJSON_CreateDoubleArray((double[]){dev->default_mem_mhz}, 1));
    set_item(power, "a_w", cJSON_CreateNumber(f->power.compute_w));
    set_item(power, "a0_w", cJSON_CreateNumber(f->power.idle_w));
    set_item(power, "b_w", cJSON_CreateNumber(f->power.memory_w));
    set_item(power, "b0_w", cJSON_CreateDoubleArray((double[]){f->power.p0_w}, 1));
    set_item(power, "c_w", cJSON_CreateNumber(0));
    set_voltage(power, &f->power, fmin(f->lowest_mhz, dev->sm_mhz[0]));
    set_note(notes, "gpu", "assumed: as the base has it, where nothing else is said");
    set_note(notes, "gpu.sm_mhz", "the clocks of the step table, and those of the base between them");
    set_note(notes, "gpu.default_sm_mhz", "the highest clock of the step table");
    set_note(notes, "gpu.mem_mhz", "one, the base's default: the step table has no memory clocks");
    set_note(notes, "gpu.power", "fitted from a step table by `fit serving`");
    set_note(notes, "gpu.power.b0_w", "static power too: steps of one memory clock do not tell it from C V");
    set_note(notes, "gpu.power.c_w", "in b0_w, see there");
    set_note(notes, "gpu.power.voltage",
             "its form is what is expected of any chip: flat up to a clock, and from there a line that rises");
}

fl_status fl_serving_steps_platform(const fl_serving_steps_fit *f, const char *name, const char *path, fl_diag *d) {
    fl_platform base = {0};
    cJSON *root = NULL;
    if (!f->has_power)
        return fl_refuse(d, "the tables have too few powers for a platform, expected power_w in 8 rows or more");
    fl_status s = fl_platform_open(name, 1, &base, d);
    if (!s)
        s = fl_json_read(base.path, &root, d);
    cJSON *gpu = s ? NULL : cJSON_GetObjectItemCaseSensitive(root, "gpu");
    cJSON *power = gpu ? cJSON_GetObjectItemCaseSensitive(gpu, "power") : NULL;
    if (!s && !power)
        s = fl_fail(d, FL_BAD_INPUT, base.path, 0, 0, "the base has several kinds of GPU, expected one");
    if (!s) {
        fill(root, gpu, power, &base, f);
        s = fl_json_write(path, root, d);
    }
    cJSON_Delete(root);
    fl_platform_free(&base);
    return s;
}
