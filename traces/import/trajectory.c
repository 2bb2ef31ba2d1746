/* Trajectories of executed controllers: demand, measured power, command and clock, row by row. */
#include "traces/import/import.h"

#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { T_S, DEMAND_W, POWER_W, SET_W, REQUIRED, SM_MHZ = REQUIRED, COMMAND_W, CAP_W, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"t_s", "demand_w", "power_w", "set_w", "sm_mhz", "command_w", "cap_w"};

enum { TARGET, POWER, CLOCK, SIGNALS };
static const char *const SIGNAL[SIGNALS] = {"target_w", "power_w", "sm_mhz"};

#define LAST_S (26.0 * 86400)

typedef struct loader {
    fl_decisions r;
    fl_decisions_room room;
    size_t where[COLUMNS], width;
} loader;

static fl_status begin(loader *l, const fl_csv_row *row, fl_diag *d) {
    fl_decisions *r = &l->r;
    l->width = row->count;
    fl_status s = fl_columns_find(row, COLUMN, COLUMNS, REQUIRED, l->where, d);
    if (s)
        return s;
    r->gpu_count = 1;
    r->signal = calloc(SIGNALS, sizeof *r->signal);
    r->control = calloc(1, sizeof *r->control);
    if (!r->signal || !r->control || !(r->control[0] = strdup("power_limit_w")))
        return fl_no_memory(d, row->file);
    r->control_count = 1;
    for (; r->signal_count < SIGNALS; r->signal_count++)
        if (!(r->signal[r->signal_count] = strdup(SIGNAL[r->signal_count])))
            return fl_no_memory(d, row->file);
    return FL_OK;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_decisions *r = &l->r;
    double v[COLUMNS];
    if (!l->width)
        return begin(l, row, d);
    fl_status s = fl_columns_width(row, l->width, d);
    if (!s)
        s = fl_field_real(row, l->where[T_S], COLUMN[T_S], 0, LAST_S, &v[T_S], d);
    for (size_t i = DEMAND_W; !s && i < COLUMNS; i++)
        s = i >= REQUIRED && l->where[i] == SIZE_MAX
                ? FL_OK
                : fl_field_real_or_nan(row, l->where[i], COLUMN[i], 0, i == SM_MHZ ? FL_SM_MHZ_MOST : FL_WATTS_MOST,
                                       &v[i], d);
    if (s)
        return s;
    const size_t now = r->step_count, host = now * 2 * SIGNALS, gpu = host + SIGNALS;
    const int64_t t = (int64_t)(v[T_S] * 1e9 + 0.5);
    if (now && t < r->t_ns[now - 1])
        return FL_FIELD_FAIL(d, row, l->where[T_S], "t_s is %.9g after %.9g, expected ascending times", v[T_S],
                             (double)r->t_ns[now - 1] * 1e-9);
    if (fl_decisions_grow(r, &l->room, now + 1, 1))
        return fl_no_memory(d, row->file);
    for (size_t i = 0; i < SIGNALS; i++) {
        r->value[host + i] = r->value[gpu + i] = NAN;
        r->fresh[host + i] = r->fresh[gpu + i] = false;
    }
    r->value[host + TARGET] = v[DEMAND_W];
    r->fresh[host + TARGET] = true;
    r->value[gpu + POWER] = v[POWER_W];
    r->fresh[gpu + POWER] = !now || v[POWER_W] != r->value[gpu - 2 * SIGNALS + POWER];
    r->value[gpu + CLOCK] = l->where[SM_MHZ] == SIZE_MAX ? (double)NAN : v[SM_MHZ];
    r->fresh[gpu + CLOCK] = !isnan(r->value[gpu + CLOCK]);
    r->set[now * 2] = NAN;
    r->set[now * 2 + 1] = v[SET_W];
    r->t_ns[now] = t;
    r->delay_ns[now] = -1;
    r->line[now] = row->line;
    r->step_count++;
    return FL_OK;
}

fl_status fl_trajectory_read(const char *path, fl_decisions *r, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true, .format = "foldline-trajectory", .head_optional = true};
    loader l = {0};
    fl_status s = fl_csv_read(path, &OPTIONS, &l.r.head, on_row, &l, d);
    if (!s && !l.r.step_count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no rows, expected at least one after the header");
    if (s)
        fl_decisions_free(&l.r);
    *r = l.r;
    return s;
}
