/* Synthetic applications for MF-GPOEO's evaluation: shapes drawn, then written as programs and kinds. */
#include "sim/synth/inside.h"

#include "models/laws/device.h"
#include "models/math/math.h"
#include "policies/random.h"
#include "sim/synth/synth.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What no clock decides of an application: its kernels, how long and how many they are, how they alternate. */

#define SECONDS 1500.0
#define TURNS 20.0 /* parts take turns so many times as often as they are drawn, but for kinds by the hundred */
/* Mean length of a kernel, by time: of 1 us to 10 ms (text to Fig. 2) the middle by decades is 0.1 ms, and long kernels
 * take most of the time. */
#define MEAN_US 1000.0
enum { CUTS = 1000 };

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

/* Draws everything that no clock decides. */
static void fl_app_draw(fl_app *a, const fl_app_target *target, fl_random *r) {
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
    const bool often = round(SECONDS / all) > 1 && !target->kinds; /* parts that take turns */
    if (often)
        for (uint32_t i = 0; i < a->part_count; i++)
            a->part[i].part_s = fl_app_round(a->part[i].part_s / TURNS);
    a->cycles = (uint32_t)fmax(1, round(SECONDS / all) * (often ? TURNS : 1));
}

/* ---- the published ones ---- */

/* Gears, memory clocks and caps: Table V. Losses at 405 MHz: text to Fig. 4. GR_1536: clocks found by MF-GPOEO and loss
 * at 810 MHz, text to Fig. 9. Kinds: text to Fig. 2, whose three panels are AI_I2IP, AI_OBJ and AI_TS. Clocks of
 * GR_0768 and QE_AUSURF112 are not published: assumed. Phased: those of which the paper says that counting kernels
 * misjudges them (Fig. 2, and caps of DEPO that break the bound). Rates: assumed. */
const fl_app_target fl_apps_published[FL_APPS_PUBLISHED] = {
    {"AI_3DFR", 104, 9501, 255, FL_APP_STEADY, 900, 0, 0, 0},
    {"AI_3DOR", 102, 9251, 235, FL_APP_GRIDS, 1600, 0, 0, 0},
    {"AI_FE", 98, 9501, 210, FL_APP_MIXED, 2400, 405, 6.156, 0},
    {"AI_I2IC", 101, 9501, 270, FL_APP_STEADY, 1200, 405, 10.359, 0},
    {"AI_I2IP", 95, 9251, 225, FL_APP_PHASED, 1500, 0, 0, 330},
    {"AI_I2T", 80, 9251, 180, FL_APP_GRIDS, 2200, 0, 0, 0},
    {"AI_ICMP", 103, 9251, 260, FL_APP_MIXED, 700, 0, 0, 0},
    {"AI_IGEN", 66, 810, 175, FL_APP_PHASED, 3000, 0, 0, 0},
    {"AI_LRK", 69, 5001, 180, FL_APP_PHASED, 3200, 0, 0, 0},
    {"AI_OBJ", 95, 9251, 250, FL_APP_PHASED, 1800, 0, 0, 990},
    {"AI_S2T", 108, 9251, 245, FL_APP_GRIDS, 2800, 0, 0, 0},
    {"AI_ST", 39, 810, 180, FL_APP_STEADY, 400, 0, 0, 0},
    {"AI_T2T", 100, 9251, 260, FL_APP_MIXED, 11000, 405, 11.097, 0},
    {"AI_TS", 101, 9501, 245, FL_APP_PHASED, 2000, 0, 0, 480},
    {"GR_0768", 98, 5001, 0, FL_APP_STREAMS, 300, 0, 0, 0},
    {"GR_1536", 101, 5001, 0, FL_APP_MIXED, 3000, 810, 1.905, 0},
    {"QE_AUSURF112", 100, 9501, 0, FL_APP_STEADY, 300, 0, 0, 0},
};

/* ---- the drawn ones ---- */

#define CAP_LOW_W 150.0 /* of those three whose caps are not published; Table V: 175 to 270 W */
#define CAP_HIGH_W 270.0
/* Of the drawn ones: from the least cap that the board takes, as far up that the CPU's share of CPU and GPU energy is
 * the 38 % that the paper's numbers for its 57 imply (models/platforms/rtx3080ti.json, host.cpu). */
#define DRAWN_LOW_W 100.0
#define DRAWN_HIGH_W 184.0

/* Memory clocks in the proportions that are published: 7 of the 57 at 810 MHz; of the others Table V has nine of twelve
 * at 9251 or 9501, and one, with GR two, at 5001. Gears: Table V's range at each memory clock. */
static fl_app_target draw_target(uint32_t i, char name[24], fl_random *r) {
    static const struct {
        double up_to, mem_mhz;
        int low, high;
    } open_[] = {{7.0 / 57, 810, 39, 70}, {14.0 / 57, 5001, 66, 101}, {35.0 / 57, 9251, 80, 108}, {1, 9501, 95, 106}};
    static const struct {
        double up_to;
        fl_app_shape shape;
    } shape[] = {
        {0.3, FL_APP_STEADY}, {0.55, FL_APP_MIXED}, {0.7, FL_APP_GRIDS}, {0.93, FL_APP_PHASED}, {1, FL_APP_STREAMS}};
    fl_app_target t = {.name = name};
    snprintf(name, 24, "gnn_%02u", i + 1);
    const double u = fl_random_unit(r), v = fl_random_unit(r);
    size_t m = 0, s = 0;
    while (u >= open_[m].up_to)
        m++;
    while (v >= shape[s].up_to)
        s++;
    t.mem_mhz = open_[m].mem_mhz;
    t.gear = open_[m].low + (int)fl_random_below(r, (uint64_t)(open_[m].high - open_[m].low) + 1);
    t.shape = shape[s].shape;
    t.rate = fl_app_log_between(r, 300, 3000);
    if (t.shape == FL_APP_MIXED && fl_random_below(r, 8) == 0)
        t.rate = fl_app_between(r, 10000, 12000);
    if (t.shape == FL_APP_STREAMS)
        t.rate = fmin(t.rate, 300); /* their oracle runs every kernel at every clock */
    return t;
}

/* ---- into files ---- */

static fl_status put_kinds(const fl_app *a, const fl_device *dev, fl_kinds *k, fl_diag *d) {
    for (uint32_t i = 0; i < a->kind_count; i++) {
        if (fl_grow(&k->kind, &k->room, k->count + 1, sizeof *k->kind))
            return fl_no_memory(d, "applications");
        const fl_app_kind *from = &a->kind[i];
        fl_kind_load *to = &k->kind[k->count];
        *to = (fl_kind_load){.name = strdup(from->name),
                             .tc = from->tc,
                             .tm = from->tm,
                             .tl = from->tl,
                             .sharpness = dev->sharpness,
                             .alpha = from->alpha,
                             .beta = from->beta,
                             .sm_demand = fl_app_round(0.95 / a->streams + (a->streams > 1 ? 0 : 0.05)),
                             .sm_mhz = dev->default_sm_mhz,
                             .mem_mhz = dev->default_mem_mhz,
                             .phase = 1,
                             .fold_mhz = dev->bandwidth.fold_mhz > 0 ? (double)INFINITY : 0,
                             .host_bound = NAN,
                             .host_alpha = NAN,
                             .host_upc = NAN,
                             .host_gb_s = NAN};
        if (!to->name)
            return fl_no_memory(d, "applications");
        k->count++;
    }
    return FL_OK;
}

/* Launches, and launches times gap weight, of the part and stream of a row. */
static double launches_of(const fl_app *a, const fl_app_row *row, double *gaps) {
    double launches = 0;
    *gaps = 0;
    for (uint32_t k = 0; k < a->row_count; k++)
        if (a->row[k].part == row->part && a->row[k].stream == row->stream) {
            launches += a->row[k].count;
            *gaps += a->row[k].count * a->row[k].gap_weight;
        }
    return launches;
}

static double length_us(const fl_app *a, const fl_app_row *row) {
    const fl_app_part *part = &a->part[row->part];
    double gaps;
    return 1e6 * launches_of(a, row, &gaps) / part->rate * (1 - part->gap_share) * row->share / row->count;
}

/* Mean length of a kernel, by time, and the row of the longest ones. What runs once does not count. */
static double mean_us(const fl_app *a, const fl_app_row **longest) {
    double busy = 0, lengths = 0, most = 0;
    for (uint32_t i = 0; i < a->row_count; i++) {
        const fl_app_row *row = &a->row[i];
        const fl_app_part *part = &a->part[row->part];
        const double us = length_us(a, row), time = part->part_s * (1 - part->gap_share) * row->share;
        if (a->cycles == 1 && a->part_count > 1 && row->part == 0)
            continue;
        busy += time;
        lengths += time * us;
        *longest = us > most ? row : *longest;
        most = fmax(most, us);
    }
    return busy > 0 ? lengths / busy : 0;
}

/* Where kernels are longer than MEAN_US on average, by time, the longest ones come twice as often and are half as long,
 * until they are not. Iterations take as long as before. Where the number of kinds is published, so are their lengths.
 */
static void cut_long(fl_app *a) {
    const fl_app_row *longest = NULL;
    double gaps;
    for (int turn = 0; !a->target.kinds && turn < CUTS && mean_us(a, &longest) > MEAN_US; turn++) {
        const uint32_t kind = longest->kind, place = longest->part;
        const double before = launches_of(a, longest, &gaps);
        for (uint32_t i = 0; i < a->row_count; i++) /* on every stream */
            if (a->row[i].kind == kind && a->row[i].part == place)
                a->row[i].count *= 2;
        a->part[place].rate *= launches_of(a, longest, &gaps) / before;
    }
    for (uint32_t i = 0; i < a->row_count; i++) { /* a part has room for an iteration */
        fl_app_part *part = &a->part[a->row[i].part];
        part->rate = fmax(part->rate, launches_of(a, &a->row[i], &gaps) / part->part_s);
    }
}

/* One iteration of a part on a stream takes so long that its kernels come at the part's rate. */
static fl_status put_rows(const fl_app *a, fl_programs *p, fl_diag *d) {
    const uint32_t program = fl_programs_name(p, a->target.name);
    fl_status s = program == UINT32_MAX ? fl_no_memory(d, "applications") : FL_OK;
    for (uint32_t i = 0; !s && i < a->row_count; i++) {
        const fl_app_row *row = &a->row[i];
        const fl_app_part *part = &a->part[row->part];
        double gaps;
        const double iteration_us = 1e6 * launches_of(a, row, &gaps) / part->rate;
        const double time_us = length_us(a, row);
        const double gap_us = iteration_us * part->gap_share * row->gap_weight / gaps;
        fl_program_row out = {.program = program,
                              .kernel = fl_programs_name(p, a->kind[row->kind].name),
                              .part = row->part + 1,
                              .count = row->count,
                              .part_s = part->part_s,
                              .time_us = fmax(0.5, round(time_us * 1e3) / 1e3),
                              .time_cv = row->time_cv,
                              .gap_us = round(gap_us * 1e3) / 1e3,
                              .gap_cv = row->gap_cv,
                              .stream = row->stream,
                              .grid_x = row->grid,
                              .block_x = row->block,
                              .cycles = a->cycles};
        s = out.kernel == UINT32_MAX ? fl_no_memory(d, "applications") : fl_programs_add(p, &out, d);
    }
    return s;
}

static fl_status put_head(fl_head *h, const fl_device *dev, uint64_t seed, bool programs, fl_diag *d) {
    char source[200], sm[24], mem[24];
    snprintf(source, sizeof source,
             "foldline synth --apps, seed %llu: drawn and solved after Table V of MF-GPOEO, not measured",
             (unsigned long long)seed);
    snprintf(sm, sizeof sm, "%g", dev->default_sm_mhz);
    snprintf(mem, sizeof mem, "%g", dev->default_mem_mhz);
    const char *const entry[][2] = {
        {"source", source},
        {"sm_mhz", sm},
        {"mem_mhz", mem},
        {"published",
         "best static clocks within 5 % of slowdown and power caps of the 14 AI_ (Table V); slowdowns of "
         "AI_FE, AI_I2IC, AI_T2T at 405 MHz and of GR_1536 at 810 MHz (text to Fig. 4 and 9); 330, 990 and "
         "480 kinds of kernels of AI_I2IP, AI_OBJ, AI_TS, of 1 us to 10 ms (text to Fig. 2)"},
        {"assumed 1",
         "everything else: kernels of the others, lengths, rates, gaps, grids, phases, streams; clocks of GR_0768 and "
         "QE"},
        {"assumed 2",
         "mean power at the best clocks is the published cap, where no kernel then exceeds the board's limit "
         "at the default clocks"},
        {"assumed 3",
         "AI_I2T is bound by slowdown at its gear, the paper has its least energy above that; AI_T2T and GR_1536 lose "
         "about half of what is published at low memory clocks: under this law their published best clocks demand it"},
        {"assumed 4",
         "gnn_NN are drawn over the same range, at caps of 100 to 184 W (so that the CPU's share of energy is the "
         "38 % that the paper implies), and stand for no particular application"},
        {"assumed 5", "host time does not depend on the GPU's clocks, and follows the CPU's as the platform says"},
    };
    for (size_t i = 0; i < (programs ? sizeof entry / sizeof *entry : 3); i++)
        if (!fl_head_set(h, entry[i][0], entry[i][1]))
            return fl_no_memory(d, "applications");
    return FL_OK;
}

/* The paper's clocks must exist, and the solver wants a law. */
static fl_status check_clocks(const fl_device *dev, uint32_t drawn, fl_diag *d) {
    if (drawn > 1000)
        return fl_refuse(d, "%u drawn applications, expected at most 1000", drawn);
    for (size_t i = 0; i < FL_APPS_PUBLISHED; i++) {
        const fl_app_target *t = &fl_apps_published[i];
        if (fl_ladder_index(dev->sm_mhz, dev->sm_count, FL_APP_GEAR_MHZ(t->gear)) < 0 ||
            fl_ladder_index(dev->mem_mhz, dev->mem_count, t->mem_mhz) < 0)
            return fl_refuse(d, "%s has no %d MHz with memory at %g MHz, expected the clocks of an RTX 3080 Ti",
                             dev->name, FL_APP_GEAR_MHZ(t->gear), t->mem_mhz);
    }
    return FL_OK;
}

static fl_status add_app(const fl_device *dev, const fl_app_target *given, bool drawn, bool hot, fl_random *r,
                         fl_programs *p, fl_kinds *k, fl_diag *d) {
    fl_app *a = malloc(sizeof *a);
    if (!a)
        return fl_no_memory(d, "applications");
    fl_app_target t = *given;
    if (t.cap_w <= 0)
        t.cap_w = drawn ? fl_app_between(r, DRAWN_LOW_W, DRAWN_HIGH_W) : fl_app_between(r, CAP_LOW_W, CAP_HIGH_W);
    fl_app_draw(a, &t, r);
    a->hot = hot;
    const fl_model_status m = fl_app_solve(a, dev, r);
    fl_status s = m ? fl_refuse(d, "%s: %s", t.name, fl_model_text(m)) : FL_OK;
    cut_long(a);
    if (!s)
        s = put_kinds(a, dev, k, d);
    if (!s)
        s = put_rows(a, p, d);
    free(a);
    return s;
}

fl_status fl_synth_apps(const fl_device *dev, uint32_t drawn, uint64_t seed, fl_programs *p, fl_kinds *k, fl_diag *d) {
    *p = (fl_programs){0};
    *k = (fl_kinds){0};
    fl_status s = check_clocks(dev, drawn, d);
    if (!s)
        s = put_head(&p->head, dev, seed, true, d);
    if (!s)
        s = put_head(&k->head, dev, seed, false, d);
    for (uint32_t i = 0; !s && i < FL_APPS_PUBLISHED + drawn; i++) {
        fl_random r = fl_random_seed(seed, i);
        char name[24];
        const fl_app_target t =
            i < FL_APPS_PUBLISHED ? fl_apps_published[i] : draw_target(i - FL_APPS_PUBLISHED, name, &r);
        /* Every fifteenth of the drawn ones reaches the board's power limit at the default clocks. */
        const bool hot = i >= FL_APPS_PUBLISHED && (i - FL_APPS_PUBLISHED) % 15 == 7 && t.shape != FL_APP_STREAMS;
        s = add_app(dev, &t, i >= FL_APPS_PUBLISHED, hot, &r, p, k, d);
    }
    if (s) {
        fl_programs_free(p);
        fl_kinds_free(k);
    }
    return s;
}
