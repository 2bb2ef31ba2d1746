/* The clocks that a user may set on a GPU that no platform describes, and the next one to measure. */
#include "harness/advise/inside.h"

#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/chip/chip.h"
#include "models/laws/device.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define LADDER_MHZ 15 /* the step of most boards' ladders */
#define SAME_MHZ 0.5

static int ascending(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* Sorts the list and drops what it has twice. Returns how many are left. */
static uint32_t sort(int32_t *list, size_t count) {
    uint32_t n = 0;
    qsort(list, count, sizeof *list, ascending);
    for (size_t i = 0; i < count; i++)
        if (!n || list[n - 1] < list[i])
            list[n++] = list[i];
    return n;
}

static fl_status of_board(const char *board, int32_t **mhz, uint32_t *count, char **from, fl_diag *d) {
    fl_board b = {0};
    char text[128];
    fl_status s = fl_board_open(board, &b, d);
    if (s)
        return s;
    const char *lacks = fl_board_lacks(&b, text, sizeof text);
    if (b.sm_count < 2 && lacks)
        s = fl_refuse(d, "board %s: unknown: %s, expected a board whose SM clocks are known", board, lacks);
    if (!s)
        s = fl_board_ladder(&b, mhz, count, d);
    if (!s)
        *from = fl_must_print("board %s", board);
    fl_board_free(&b);
    return s;
}

fl_status fl_advise_ladder(const fl_sweep_chip *c, const char *board, const char *gpu, fl_device *dev, char **from,
                           fl_diag *d) {
    const double low = 0.5 * c->chip->sm_min, top = c->chip->sm_ref;
    const size_t steps = (size_t)((top - low) / LADDER_MHZ) + 1;
    int32_t *known = NULL;
    uint32_t count = 0;
    size_t n = 0, m = 0;
    *from = NULL;
    fl_status s = board ? of_board(board, &known, &count, from, d) : fl_ladder_find(gpu, &known, &count, from, d);
    if (s)
        return s;
    dev->sm_mhz = fl_must(calloc(steps + count + c->rows.count, sizeof *dev->sm_mhz));
    dev->mem_mhz = fl_must(calloc(c->rows.count + 1, sizeof *dev->mem_mhz));
    for (uint32_t i = 0; i < count; i++)
        if (known[i] >= low && known[i] <= top)
            dev->sm_mhz[n++] = known[i];
    for (size_t i = 0; !count && i < steps; i++)
        dev->sm_mhz[n++] = (int32_t)lround(top - LADDER_MHZ * (double)i);
    for (size_t i = 0; i < c->rows.count; i++) {
        const fl_chip_row *r = &c->rows.row[i];
        if (fl_fit_asked_mhz(&c->rows, r->sm_mhz) == r->sm_mhz) /* else a user reaches it under another name only */
            dev->sm_mhz[n++] = (int32_t)lround(r->sm_mhz);
        dev->mem_mhz[m++] = (int32_t)lround(r->mem_mhz);
    }
    dev->sm_count = sort(dev->sm_mhz, n);
    dev->mem_count = sort(dev->mem_mhz, m);
    dev->default_sm_mhz = dev->sm_mhz[dev->sm_count - 1];
    dev->default_mem_mhz = dev->mem_mhz[dev->mem_count - 1];
    free(known);
    return FL_OK;
}

void fl_advise_next(const fl_device *dev, double bound, fl_advise_subject *to) {
    const fl_stated *s = &to->of[0].stated;
    fl_chip_row *row = fl_must(calloc(s->count + 1, sizeof *row));
    double *ladder = fl_must(calloc(dev->sm_count + 1, sizeof *ladder));
    size_t n = 0, clocks = 0;
    for (size_t i = 0; i < s->count; i++) /* at the reference's memory clock, under the board's own limit */
        if (to->measured[i] && fabs(s->at[i].mem_mhz - to->ref.mem_mhz) < SAME_MHZ && !(s->at[i].limit_w > 0) &&
            s->at[i].sm_mhz > 0)
            row[n++] = (fl_chip_row){.sm_mhz = s->at[i].sm_mhz,
                                     .mem_mhz = s->at[i].mem_mhz,
                                     .time_s = s->guess[i].time_s,
                                     .power_w = s->guess[i].power_w};
    for (uint32_t i = 0; i < dev->sm_count; i++)
        if (dev->sm_mhz[i] < to->ref.sm_mhz + SAME_MHZ)
            ladder[clocks++] = dev->sm_mhz[i];
    to->next_known = true;
    to->next = (fl_setting_clocks){NAN, to->ref.mem_mhz, 0};
    if (n && clocks)
        to->next.sm_mhz = fl_two_laws_next(row, n, ladder, clocks, bound);
    free(row);
    free(ladder);
}
