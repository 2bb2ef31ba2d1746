/* What no clock decides of an application: its kernels, how long and how many they are, how they alternate. */
#include "sim/synth/app.h"

#include <stdio.h>

#define SECONDS 1500.0

static const char *const ROLE_NAME[FL_ROLES][4] = {
    {"gemm", "conv", "attention", "fused"}, {"copy", "gather", "norm", "scatter"}, {"fill", "reduce", "index", "cast"}};

static uint32_t between(fl_random *r, uint32_t low, uint32_t high) {
    return low + (uint32_t)fl_random_below(r, high - low + 1);
}

static uint32_t add_kind(fl_app *a, fl_app_role role, fl_random *r) {
    fl_app_kind *k = &a->kind[a->kind_count];
    *k = (fl_app_kind){.role = role, .sense = fl_app_between(r, 0.7, 1.3), .balance = fl_app_between(r, 0.8, 1.2)};
    static const double ACTIVITY[FL_ROLES] = {1, 0.65, 0.3};
    k->activity = ACTIVITY[role] * fl_app_between(r, 0.85, 1.15);
    snprintf(k->name, sizeof k->name, "%.31s.%s_%u", a->target.name, ROLE_NAME[role][fl_random_below(r, 4)],
             a->kind_count);
    return a->kind_count++;
}

static fl_app_row *add_row(fl_app *a, uint32_t part, uint32_t kind, uint32_t count, fl_random *r) {
    fl_app_row *row = &a->row[a->row_count++];
    *row = (fl_app_row){.kind = kind,
                        .part = part,
                        .count = count,
                        .grid = 40 * between(r, 1, 200), /* whole waves of 80 SMs x 128 cores in blocks of 256 */
                        .block = 256,
                        .weight = fl_app_between(r, 0.5, 1.5),
                        .time_cv = fl_app_round(fl_app_between(r, 0.02, 0.2)),
                        .gap_weight = fl_app_between(r, 0.5, 1.5),
                        .gap_cv = fl_app_round(fl_app_between(r, 0.2, 1.2))};
    if (fl_random_below(r, 12) == 0) /* now and then a kernel whose work depends on its data */
        row->time_cv = fl_app_round(fl_app_between(r, 0.4, 1));
    return row;
}

static void add_part(fl_app *a, double part_s, double gap_share, double rate) {
    a->part[a->part_count++] = (fl_app_part){part_s, gap_share, rate, {1, 1, 1}};
}

/* Kernels of one loop. Long ones launch seldom, short ones often: `spread` is how many short ones go with a long one.
 */
static void add_loop(fl_app *a, uint32_t part, const uint32_t role[FL_ROLES], uint32_t spread, fl_random *r) {
    for (uint32_t i = 0; i < FL_ROLES; i++)
        for (uint32_t k = 0; k < role[i]; k++)
            add_row(a, part, add_kind(a, (fl_app_role)i, r),
                    i == FL_ROLE_LATENCY ? between(r, 2, 4) * spread
                    : k % 2              ? between(r, 1, spread)
                                         : between(r, 1, 3),
                    r);
}

/* How a program begins: kernels that run once and are never seen again. */
static void add_setup(fl_app *a, fl_random *r) {
    add_part(a, fl_app_round(fl_app_between(r, 1, 3)), 0.6, 5);
    for (uint32_t i = 0, count = between(r, 3, 6); i < count; i++)
        add_row(a, a->part_count - 1, add_kind(a, FL_ROLE_LATENCY, r), 1, r);
}

static void draw_loop(fl_app *a, uint32_t spread, uint32_t kinds, fl_random *r) {
    add_setup(a, r);
    add_part(a, SECONDS - a->part[0].part_s, fl_app_between(r, 0.03, 0.25), a->target.rate);
    add_loop(a, 1, (uint32_t[FL_ROLES]){kinds / 2, (kinds + 3) / 4, (kinds + 2) / 4}, spread, r);
    for (uint32_t i = 0, first = a->row_count - kinds / 2; i < 2; i++) { /* two of its kernels on a second grid, too */
        fl_app_row *again = add_row(a, 1, a->row[first - i].kind, between(r, 1, 2), r);
        again->weight *= 0.4;
    }
}

/* The same kernels on other grids: batches of other sizes, in turns. Every second row keeps its grid. */
static void draw_grids(fl_app *a, fl_random *r) {
    const double first_s = fl_app_round(fl_app_between(r, 6, 20)), second_s = fl_app_round(fl_app_between(r, 6, 20));
    add_part(a, first_s, fl_app_between(r, 0.03, 0.2), a->target.rate);
    add_loop(a, 0, (uint32_t[FL_ROLES]){4, 2, 2}, 4, r);
    add_part(a, second_s, fl_app_between(r, 0.03, 0.2), a->target.rate * fl_app_between(r, 0.7, 1.4));
    for (uint32_t i = 0, count = a->row_count; i < count; i++) {
        fl_app_row *again = add_row(a, 1, a->row[i].kind, a->row[i].count, r);
        if (i % 2)
            again->grid = a->row[i].grid;
    }
}

/* A loop of as many kinds as are published. Mean lengths are spread evenly over the orders of magnitude from 1 us to 10
 * ms that the paper gives over all kinds (text to Fig. 2); what waits for launches is short, what computes is long. A
 * kind of 1 ms or more runs once in an iteration, a shorter one up to `spread` times. So no kind dominates, and the
 * rate of kernels follows. */
static void add_many(fl_app *a, uint32_t part, const uint32_t role[FL_ROLES], const double low_us[FL_ROLES],
                     uint32_t spread, fl_random *r) {
    static const double HIGH_US[FL_ROLES] = {1e4, 1e3, 1e2};
    double launches = 0, busy_us = 0;
    for (uint32_t i = 0; i < FL_ROLES; i++)
        for (uint32_t k = 0; k < role[i]; k++) {
            const double us = fl_app_log_between(r, low_us[i], HIGH_US[i]);
            fl_app_row *row = add_row(a, part, add_kind(a, (fl_app_role)i, r), us < 1e3 ? between(r, 1, spread) : 1, r);
            row->weight = us * row->count;
            launches += row->count;
            busy_us += row->weight;
        }
    a->part[part].rate = launches * (1 - a->part[part].gap_share) / busy_us * 1e6;
}

/* The kinds of two loops, in the proportions of draw_phases. */
static void add_published(fl_app *a, uint32_t kinds, fl_random *r) {
    const uint32_t first = kinds * 9 / 15, second = kinds - first;
    const uint32_t many[FL_ROLES] = {first - first * 2 / 9 - first * 3 / 9, first * 2 / 9, first * 3 / 9};
    const uint32_t few[FL_ROLES] = {second - second * 2 / 6 - second / 6, second * 2 / 6, second / 6};
    add_many(a, 0, many, (double[FL_ROLES]){10, 1, 1}, 12, r);
    add_many(a, 1, few, (double[FL_ROLES]){100, 10, 1}, 2, r);
}

/* Many short kernels, then few long ones, then now and then a third part with a kernel of its own that runs once in
 * each turn: training, evaluation, checkpoint. */
static void draw_phases(fl_app *a, fl_random *r) {
    const double contrast = fl_app_log_between(r, 3, 12), gap = fl_app_between(r, 0.03, 0.2);
    add_part(a, fl_app_round(fl_app_between(r, 8, 25)), gap, a->target.rate * 1.3);
    if (!a->target.kinds)
        add_loop(a, 0, (uint32_t[FL_ROLES]){4, 2, 3}, 12, r);
    add_part(a, fl_app_round(fl_app_between(r, 5, 12)), gap * fl_app_between(r, 0.6, 1.4),
             a->target.rate * 1.3 / contrast);
    if (a->target.kinds)
        add_published(a, a->target.kinds, r);
    else
        add_loop(a, 1, (uint32_t[FL_ROLES]){3, 2, 1}, 2, r);
    a->part[1].role[FL_ROLE_LATENCY] = fl_app_between(r, 0.4, 1);
    a->part[1].role[FL_ROLE_MEMORY] = fl_app_between(r, 0.6, 1.6);
    add_row(a, 1, a->row[0].kind, between(r, 1, 2), r); /* and one that both have */
    if (fl_random_below(r, 2)) {
        add_part(a, fl_app_round(fl_app_between(r, 0.5, 1.5)), 0.5, 10);
        add_loop(a, 2, (uint32_t[FL_ROLES]){1, 0, 2}, 1, r);
    }
}

/* The same loop on each stream, of other lengths: nothing waits for the other. */
static void draw_streams(fl_app *a, fl_random *r) {
    a->streams = between(r, 2, 3);
    add_part(a, SECONDS, fl_app_between(r, 0.05, 0.25), a->target.rate / a->streams);
    add_loop(a, 0, (uint32_t[FL_ROLES]){3, 1, 2}, 4, r);
    const uint32_t count = a->row_count;
    for (uint32_t stream = 1; stream < a->streams; stream++)
        for (uint32_t i = 0; i < count; i++) {
            fl_app_row *row = &a->row[a->row_count++];
            *row = a->row[i];
            row->stream = (int32_t)stream;
            row->grid = 40 * between(r, 1, 200);
        }
}

void fl_app_draw(fl_app *a, const fl_app_target *target, fl_random *r) {
    *a = (fl_app){.target = *target, .cycles = 1, .streams = 1};
    switch (target->shape) {
    case FL_APP_MIXED:
        draw_loop(a, 40, between(r, 10, 16), r);
        break;
    case FL_APP_GRIDS:
        draw_grids(a, r);
        break;
    case FL_APP_PHASED:
        draw_phases(a, r);
        break;
    case FL_APP_STREAMS:
        draw_streams(a, r);
        break;
    default:
        draw_loop(a, 3, between(r, 6, 10), r);
        break;
    }
    double all = 0;
    for (uint32_t i = 0; i < a->part_count; i++)
        all += a->part[i].part_s;
    a->cycles = (uint32_t)fmax(1, round(SECONDS / all));
}
