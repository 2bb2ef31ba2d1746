/* Telemetry from a table of any origin, by a map from its columns. */
#include "traces/import/inside.h"

#include "traces/files/files.h"
#include "traces/import/import.h"
#include "traces/io/io.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const SIGNAL[] = {"power_w",
                                     "power_instant_w",
                                     "power_limit_w",
                                     "energy_j",
                                     "sm_mhz",
                                     "mem_mhz",
                                     "util_gpu_pct",
                                     "util_mem_pct",
                                     "temp_c",
                                     "sm_active_pct",
                                     "sm_occupancy_pct",
                                     "dram_active_pct",
                                     "gpu_clock_busy_pct",
                                     "power_violation_ns",
                                     "thermal_violation_ns",
                                     "throttle",
                                     "cpu_mhz",
                                     "cpu_energy_j",
                                     "node_power_w",
                                     "node_energy_j"};
enum { SIGNALS = sizeof SIGNAL / sizeof *SIGNAL };

bool fl_map_is_telemetry(const fl_sweep_map *map) {
    bool time = false, sweep = false;
    for (size_t i = 0; i < map->count; i++) {
        const char *t = map->term[i].target;
        time |= !strcmp(t, "t") || !strncmp(t, "t_", 2) || !strcmp(t, "gpu") || !strcmp(t, "device");
        sweep |= !strcmp(t, "time_s") || !strcmp(t, "workload") || !strcmp(t, "kernel");
    }
    return time || !sweep;
}

typedef struct loader {
    fl_readings r;
    const fl_import_options *o;
    fl_stamps stamps;
    fl_rounds rounds;
    fl_boards boards;
    size_t width, time, gpu, workload; /* SIZE_MAX: no such column */
    const char *what;                  /* the time column's name */
    size_t *signal;                    /* width; SIZE_MAX: none */
} loader;

static size_t find(const fl_csv_row *row, const char *one, const char *other) {
    for (size_t i = 0; i < row->count; i++)
        if (!strcmp(row->field[i].text, one) || !strcmp(row->field[i].text, other))
            return i;
    return SIZE_MAX;
}

static fl_status take_target(loader *l, const fl_csv_row *row, size_t i, fl_diag *d) {
    static const char *const time[] = {"t_ns", "t_us", "t_ms", "t_s"};
    const char *name = row->field[i].text;
    l->signal[i] = SIZE_MAX;
    for (int k = 0; k < 4; k++)
        if (!strcmp(name, time[k])) {
            l->time = i;
            fl_stamps_begin(&l->stamps, 3 * k);
            return FL_OK;
        }
    if (i == l->time || i == l->gpu || i == l->workload)
        return FL_OK;
    for (size_t k = 0; k < SIGNALS; k++)
        if (!strcmp(name, SIGNAL[k]))
            return fl_readings_signal(&l->r, name, &l->signal[i], d);
    const char *near = fl_nearest(name, SIGNAL, SIGNALS);
    return fl_refuse(d, "no signal '%s' in telemetry, %s%s%s", name,
                     near ? "did you mean '"
                          : "expected t, gpu, power_w, "
                            "energy_j, sm_mhz, mem_mhz, util_gpu_pct, util_mem_pct, temp_c, power_limit_w",
                     near ? near : "", near ? "'?" : "");
}

static fl_status read_header(loader *l, const fl_csv_row *row, fl_diag *d) {
    l->width = row->count;
    l->signal = calloc(row->count, sizeof *l->signal);
    l->time = find(row, "t", "t");
    l->gpu = find(row, "gpu", "device");
    l->workload = find(row, "workload", "workload");
    fl_status s = l->signal ? FL_OK : fl_no_memory(d, row->file);
    for (size_t i = 0; i < row->count && !s; i++)
        s = take_target(l, row, i, d);
    if (!s && l->time == SIZE_MAX && !(l->o->interval_s > 0))
        return fl_refuse(d, "the map names no time, expected t=COLUMN, or the interval of the rows (--interval S)");
    if (!s && !l->r.out->telemetry.signal_count)
        return fl_refuse(d, "the map names no signal, expected such as power_w=COLUMN");
    return s;
}

/* "0", "GPU 0", "cuda:1", "card2"; other names are numbered as they come. */
static fl_status read_board(loader *l, const fl_csv_row *row, size_t *board, fl_diag *d) {
    const char *text = row->field[l->gpu].text, *at = text;
    while (*at && !isdigit((unsigned char)*at))
        at++;
    const size_t digits = strspn(at, "0123456789");
    static const char *const prefix[] = {
        "", "gpu", "gpu ", "gpu-", "gpu:", "gpu_", "cuda:", "card", "device ", "nvidia"};
    for (size_t i = 0; digits && !at[digits] && i < sizeof prefix / sizeof *prefix; i++)
        if ((size_t)(at - text) == strlen(prefix[i]) && !strncasecmp(text, prefix[i], (size_t)(at - text))) {
            *board = strtoul(at, NULL, 10);
            return *board < FL_BOARDS_MAX ? FL_OK
                                          : FL_FIELD_FAIL(d, row, l->gpu, "gpu is '%.40s', expected a number below %d",
                                                          text, FL_BOARDS_MAX);
        }
    return fl_board_of(&l->boards, row, l->gpu, -1, text, board, d);
}

static fl_status read_row(loader *l, const fl_csv_row *row, fl_diag *d) {
    size_t board = 0;
    int64_t ns = 0;
    const size_t place[] = {l->time, l->gpu};
    for (size_t k = 0; k < 2; k++)
        if (place[k] != SIZE_MAX && fl_no_value(row->field[place[k]].text))
            return fl_left_empty(&l->r.left, row->file, row->line, row->field[place[k]].column, d, "%s is '%.40s'",
                                 k ? "gpu" : "the time", row->field[place[k]].text);
    fl_status s = l->gpu == SIZE_MAX ? FL_OK : read_board(l, row, &board, d);
    if (!s && l->time == SIZE_MAX)
        ns = fl_round_of(&l->rounds, board) * (int64_t)llround(l->o->interval_s * 1e9);
    else if (!s)
        s = fl_stamp_read(&l->stamps, row, l->time, "the time", board, &ns, d);
    if (s || (l->o->device >= 0 && (size_t)l->o->device != board))
        return s;
    double *value = fl_telemetry_row(&l->r.rows);
    s = value ? FL_OK : fl_no_memory(d, row->file);
    for (size_t i = 0; i < l->width && !s; i++) {
        if (l->signal[i] == SIZE_MAX)
            continue;
        const char *name = l->r.out->telemetry.signal[l->signal[i]];
        double *to = &value[l->signal[i]];
        s = fl_cell_read(row, i, row->field[i].text, name, name, 1, to, d);
        if (!s)
            s = fl_signal_check(row, i, name, fl_signal_range_of(name), *to, d);
    }
    return s ? s : fl_readings_take(&l->r, row, ns, (int32_t)board, d);
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    if (!l->width)
        return read_header(l, row, d);
    if (l->workload != SIZE_MAX && !l->r.out->telemetry.row_count && *row->field[l->workload].text) {
        const fl_status s = fl_foreign_head(&l->r.out->telemetry.head, "workload", row->field[l->workload].text, d);
        if (s)
            return s;
    }
    return fl_left_row(&l->r.left, read_row(l, row, &l->r.left.own), d);
}

static fl_status add_notes(const loader *l, const fl_map_seen *seen, fl_diag *d) {
    fl_imported *out = l->r.out;
    if (l->time == SIZE_MAX)
        fl_import_say(out, "no time stamps: rows are taken %g s apart, as given", l->o->interval_s);
    fl_stamps_say(&l->stamps, out);
    if (l->boards.name[0])
        fl_import_say(out, "boards are numbered as they come, by their name");
    if (seen->headers)
        fl_import_say(out, "the header is repeated %zu times: left out", seen->headers);
    if (seen->comments)
        fl_import_say(out, "%zu lines below the header begin with '#': left out as comments", seen->comments);
    fl_import_torn(out, seen->torn);
    fl_import_say(out, "no kernels: readings only");
    return fl_import_said(out, d);
}

fl_status fl_telemetry_read_mapped(const char *path, const fl_sweep_map *map, const fl_import_options *o,
                                   fl_imported *out, fl_diag *d) {
    fl_map_seen seen = {.drop_torn = true};
    loader *l = calloc(1, sizeof *l);
    *out = (fl_imported){0};
    if (!l)
        return fl_no_memory(d, path);
    l->o = o;
    fl_readings_begin(&l->r, out);
    fl_stamps_begin(&l->stamps, -1);
    fl_status s = fl_map_read(path, map, on_row, l, &seen, d);
    if (!s)
        s = fl_readings_end(&l->r, path, d);
    if (!s)
        s = add_notes(l, &seen, d);
    fl_boards_free(&l->boards);
    free(l->signal);
    fl_readings_free(&l->r);
    free(l);
    if (s)
        fl_imported_free(out);
    return s;
}
