/* GPU-DVFS-Dataset: dataset_performance.csv and dataset_power.csv, a row per program and a column per clock.
 * Performance is relative to the program's own at one clock, so its times are too; power lies in a file of its own
 * beside it. */
#include "traces/import/import.h"

#include "traces/import/foreign.h"
#include "traces/io/numbers.h"
#include "traces/import/sweep_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST "frequency(MHz)"
#define PERFORMANCE "performance"
#define POWER "power"

static bool is_header(const fl_cells *line) {
    double mhz = 0;
    char text[64];
    if (line->count < 2 || !fl_cell_is(line->cell[0], FIRST) || line->cell[1].size >= sizeof text)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)line->cell[1].size, line->cell[1].text);
    return fl_real_parse(text, &mhz) == FL_NUMBER_OK;
}

static bool wide_detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, is_header) == 0;
}

static fl_status read_table(const char *path, const char *text, fl_sweep *s, fl_diag *d) {
    fl_sweep_map map;
    fl_status status = fl_sweep_map_parse(text, &map, d);
    if (!status)
        status = fl_sweep_read_mapped_times(path, &map, s, d);
    fl_sweep_map_free(&map);
    return status;
}

/* The path with `from` in its file's name replaced by `to`; NULL where it is not in it (or without memory). */
static char *companion(const char *path, const char *from, const char *to) {
    const char *slash = strrchr(path, '/'), *at = strstr(slash ? slash : path, from);
    char *other = NULL;
    if (!at || asprintf(&other, "%.*s%s%s", (int)(at - path), path, to, at + strlen(from)) < 0)
        return NULL;
    return other;
}

/* Powers of the same programs and clocks; *missing: settings without one. */
static void join_power(fl_sweep *s, const fl_sweep *power, size_t *missing) {
    for (size_t i = 0; i < s->row_count; i++) {
        fl_sweep_row *r = &s->rows[i];
        for (size_t k = 0; k < power->row_count && isnan(r->power_w); k++) {
            const fl_sweep_row *p = &power->rows[k];
            if (p->sm_mhz == r->sm_mhz && !strcmp(power->names[p->workload], s->names[r->workload]))
                r->power_w = p->power_w;
        }
        r->energy_j = r->power_w * r->time_s;
        *missing += isnan(r->power_w) ? 1 : 0;
    }
}

static fl_status wide_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    char *power_path = companion(path, PERFORMANCE, POWER), *table = companion(path, POWER, PERFORMANCE);
    if (!power_path && table) {
        const fl_status wrong =
            fl_fail(d, FL_BAD_INPUT, path, 0, 0, "a table of power without its table of times, expected %s", table);
        free(table);
        return wrong;
    }
    free(table);
    fl_sweep power = {0};
    size_t missing = 0;
    fl_status s = read_table(path, "workload=" FIRST ",sm_mhz=header,time_s=1/cells", &out->sweep, d);
    out->has_sweep = !s;
    if (!s && power_path && access(power_path, R_OK) == 0) {
        s = read_table(power_path, "workload=" FIRST ",sm_mhz=header,time_s=1,power_w=cells", &power, d);
        if (!s)
            join_power(&out->sweep, &power, &missing);
        if (!s)
            s = fl_import_note(out, d, "power is from %s", power_path);
    } else if (!s) {
        s = power_path ? fl_import_note(out, d, "no %s: times alone", power_path)
                       : fl_import_note(out, d, "the table does not say of what: taken as performance, without power");
    }
    if (!s && missing)
        s = fl_import_note(out, d, "%zu settings have no power there", missing);
    if (!s)
        s = fl_import_note(out, d, "times are relative: 1 s where a program's performance is 1");
    fl_sweep_free(&power);
    free(power_path);
    return s;
}

const fl_reader fl_reader_wide = {"gpu-dvfs-wide",
                                  "table of GPU-DVFS-Dataset (a column per clock; performance, and power beside it)",
                                  wide_detect, wide_read};
