/* Advice on workloads of a GPU that no platform describes: two laws through each workload's own rows. */
#include "harness/advise/inside.h"

#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "harness/input/scene/scene.h"
#include "models/chip/chip.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LADDER_MHZ 15 /* the step of most boards' ladders */
#define SAME_MHZ 0.5

typedef struct setting { /* of one workload, its kernels added up */
    double sm_mhz, mem_mhz, time_s, energy_j;
    size_t kernels;
} setting;

static int by_clocks(const void *a, const void *b) {
    const setting *x = a, *y = b;
    if (fabs(x->mem_mhz - y->mem_mhz) >= SAME_MHZ)
        return x->mem_mhz < y->mem_mhz ? -1 : 1;
    return (x->sm_mhz > y->sm_mhz) - (x->sm_mhz < y->sm_mhz);
}

/* The settings at which all kernels of the workload have rows, ascending by memory clock and SM clock. The caller frees
 * them. Repeated rows of a kernel count as their mean. */
static setting *settings_of(const fl_fit_rows *rows, const char *workload, size_t *count) {
    setting *at = fl_must(calloc(rows->count + 1, sizeof *at));
    size_t n = 0, kernels = 0, kept = 0;
    for (size_t e = 0; e < rows->entities; e++) {
        const fl_fit_entity *of = &rows->entity[e];
        if (!of->count || strcmp(of->workload, workload) != 0)
            continue;
        kernels++;
        for (size_t i = of->first, next; i < of->first + of->count; i = next) { /* equal settings lie side by side */
            const fl_chip_row *r = &rows->row[i];
            double time = 0, energy = 0;
            for (next = i; next < of->first + of->count && fabs(rows->row[next].sm_mhz - r->sm_mhz) < SAME_MHZ &&
                           fabs(rows->row[next].mem_mhz - r->mem_mhz) < SAME_MHZ;
                 next++) {
                time += rows->row[next].time_s;
                energy += rows->row[next].time_s * rows->row[next].power_w;
            }
            size_t k = 0;
            while (k < n && !(fabs(at[k].sm_mhz - r->sm_mhz) < SAME_MHZ && fabs(at[k].mem_mhz - r->mem_mhz) < SAME_MHZ))
                k++;
            if (k == n)
                at[n++] = (setting){.sm_mhz = r->sm_mhz, .mem_mhz = r->mem_mhz};
            at[k].time_s += time / (double)(next - i);
            at[k].energy_j += energy / (double)(next - i);
            at[k].kernels++;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (at[i].kernels == kernels)
            at[kept++] = at[i];
    qsort(at, kept, sizeof *at, by_clocks);
    *count = kept;
    return at;
}

fl_status fl_advise_check_rows(const fl_fit_rows *rows, const char *path, fl_diag *d) {
    for (size_t e = 0; e < rows->entities; e++) {
        const fl_fit_entity *of = &rows->entity[e];
        for (size_t i = of->first; i < of->first + of->count; i++)
            for (size_t k = of->first; k < of->first + of->count; k++) {
                const fl_chip_row *low = &rows->row[i], *high = &rows->row[k];
                if (low->sm_mhz < high->sm_mhz && fabs(low->mem_mhz - high->mem_mhz) < 0.5 &&
                    low->time_s < FL_SWEEP_FASTER * high->time_s)
                    return fl_fail(
                        d, FL_BAD_INPUT, path, 0, 0,
                        "%s took %g s at %g MHz, but %g s at %g MHz: no clock explains that the lower one is "
                        "so much faster, expected one program, one input and the clocks at which it ran",
                        of->workload, low->time_s, low->sm_mhz, high->time_s, high->sm_mhz);
            }
    }
    return FL_OK;
}

static void add(fl_stated *to, fl_setting_clocks at, fl_chip_guess guess) {
    to->at[to->count] = at;
    to->guess[to->count++] = guess;
}

static bool is_row(const fl_chip_row *row, size_t count, double sm_mhz) {
    for (size_t i = 0; i < count; i++)
        if (fabs(row[i].sm_mhz - sm_mhz) < SAME_MHZ)
            return true;
    return false;
}

/* The measured settings, and at the highest memory clock the predicted ones between its rows. */
static void state(const fl_fit_rows *all, const setting *at, size_t count, const fl_chip_row *row, size_t rows,
                  const double *ladder, size_t clocks, fl_stated *to) {
    fl_two_laws l;
    const bool fits = !fl_two_laws_fit(&l, row, rows);
    to->at = fl_must(calloc(count + clocks + 1, sizeof *to->at));
    to->guess = fl_must(calloc(count + clocks + 1, sizeof *to->guess));
    to->fitted = true;
    for (size_t i = 0, k = 0; i < count; i++) {
        for (; at[i].mem_mhz > row[0].mem_mhz - SAME_MHZ && k < clocks && ladder[k] < at[i].sm_mhz; k++)
            if (fits && ladder[k] > row[0].sm_mhz && !is_row(row, rows, ladder[k]))
                add(to, (fl_setting_clocks){ladder[k], row[0].mem_mhz, 0}, fl_two_laws_at(&l, ladder[k]));
        if (fl_fit_asked_mhz(all, at[i].sm_mhz) == at[i].sm_mhz) /* else a user reaches it under another name only */
            add(to, (fl_setting_clocks){at[i].sm_mhz, at[i].mem_mhz, 0},
                fl_chip_repeats(at[i].time_s, at[i].energy_j / at[i].time_s));
    }
}

/* The clocks that a user may set, where a board states them; count 0: it is not known. */
typedef struct board_ladder {
    int32_t *mhz;
    uint32_t count;
    char *from; /* "board a30" */
} board_ladder;

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The board's clocks from half of the lowest row to the highest, else steps of LADDER_MHZ down from there, and the
 * rows' clocks. Returns how many. */
static size_t ladder_of(const board_ladder *b, const fl_chip_row *row, size_t rows, double **ladder) {
    const double top = row[rows - 1].sm_mhz, least = 0.5 * row[0].sm_mhz;
    const size_t steps = b->count ? b->count : (size_t)((top - least) / LADDER_MHZ) + 1;
    double *at = fl_must(calloc(steps + rows, sizeof *at));
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < steps + rows; i++) {
        const double mhz = i < rows   ? row[i].sm_mhz
                           : b->count ? b->mhz[i - rows]
                                      : top - LADDER_MHZ * (double)(i - rows);
        if (i < rows || (mhz >= least && mhz <= top))
            at[n++] = mhz;
    }
    qsort(at, n, sizeof *at, ascending);
    for (size_t i = 0; i < n; i++)
        if (!kept || at[i] >= at[kept - 1] + SAME_MHZ)
            at[kept++] = at[i];
    *ladder = at;
    return kept;
}

static fl_status find_ladder(const char *board, const char *gpu, board_ladder *to, fl_diag *d) {
    fl_board b = {0};
    char text[128];
    *to = (board_ladder){0};
    if (!board)
        return fl_ladder_find(gpu, &to->mhz, &to->count, &to->from, d);
    fl_status s = fl_board_open(board, &b, d);
    if (s)
        return s;
    const char *lacks = fl_board_lacks(&b, text, sizeof text);
    if (b.sm_count < 2 && lacks)
        s = fl_refuse(d, "board %s: unknown: %s, expected a board whose SM clocks are known", board, lacks);
    if (!s)
        s = fl_board_ladder(&b, &to->mhz, &to->count, d);
    if (!s)
        to->from = fl_must_print("board %s", board);
    fl_board_free(&b);
    return s;
}

/* Which settings are rows. */
static bool *find_measured(const setting *at, size_t count, const fl_stated *s) {
    bool *measured = fl_must(calloc(s->count + 1, sizeof *measured));
    for (size_t k = 0; k < s->count; k++)
        for (size_t i = 0; i < count && !measured[k]; i++)
            measured[k] =
                fabs(at[i].sm_mhz - s->at[k].sm_mhz) < SAME_MHZ && fabs(at[i].mem_mhz - s->at[k].mem_mhz) < SAME_MHZ;
    return measured;
}

static void one_workload(const fl_fit_rows *rows, const char *name, double bound, const board_ladder *board,
                         fl_advise_subjects *s) {
    size_t count = 0, n = 0;
    setting *at = settings_of(rows, name, &count);
    if (!count) {
        fl_advise_doubt(s, "%s is left out: none of its rows ran at the clock it names", name);
        free(at);
        return;
    }
    fl_chip_row *row = fl_must(calloc(count + 1, sizeof *row));
    const double mem_mhz = at[count - 1].mem_mhz;
    for (size_t i = 0; i < count; i++)
        if (at[i].mem_mhz > mem_mhz - SAME_MHZ)
            row[n++] = (fl_chip_row){.sm_mhz = at[i].sm_mhz,
                                     .mem_mhz = mem_mhz,
                                     .time_s = at[i].time_s,
                                     .power_w = at[i].energy_j / at[i].time_s};
    double *ladder = NULL;
    const size_t clocks = ladder_of(board, row, n, &ladder);
    const fl_setting_clocks top = {row[n - 1].sm_mhz, mem_mhz, 0};
    if (count == 1) {
        const fl_log_run run = {.sm_mhz = row[0].sm_mhz, .mem_mhz = mem_mhz};
        (void)fl_advise_add_unknown(s, name, "measured at one clock", fl_advise_to_measure(&run, run.sm_mhz, NULL));
    } else {
        fl_advise_subject *to = fl_advise_add(s, name);
        to->cases = 1;
        to->ref = top;
        state(rows, at, count, row, n, ladder, clocks, &to->of[0].stated);
        to->measured = find_measured(at, count, &to->of[0].stated);
        to->next = (fl_chip_next){.known = true,
                                  .sm_mhz = fl_two_laws_next(row, n, ladder, clocks, bound),
                                  .mem_mhz = mem_mhz,
                                  .now_pct = NAN,
                                  .then_pct = NAN};
    }
    free(ladder);
    free(row);
    free(at);
}

fl_status fl_advise_own_laws(const char *path, const char *gpu, const fl_fit_rows *rows, const fl_advise_options *o,
                             fl_advise_subjects *s, fl_diag *d) {
    double low = INFINITY, high = 0;
    char from[48], to[48], steps[128];
    size_t names = 0;
    board_ladder board = {0};
    fl_status status = fl_advise_check_rows(rows, path, d);
    if (!status)
        status = find_ladder(o->board, gpu ? gpu : "", &board, d);
    if (status)
        return status;
    if (board.count)
        (void)snprintf(steps, sizeof steps, "on the ladder of %s", board.from);
    else
        (void)snprintf(steps, sizeof steps, "in steps of %d MHz", LADDER_MHZ);
    for (size_t i = 0; i < rows->count; i++) {
        low = fmin(low, rows->row[i].sm_mhz);
        high = fmax(high, rows->row[i].sm_mhz);
    }
    for (size_t e = 0; e < rows->entities; e++) {
        size_t k = 0;
        while (k < e && strcmp(rows->entity[k].workload, rows->entity[e].workload) != 0)
            k++;
        if (k < e)
            continue;
        one_workload(rows, rows->entity[e].workload, o->bound, &board, s);
        names++;
    }
    free(board.mhz);
    free(board.from);
    if (!s->count)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no workload has rows that a law can use");
    for (size_t i = 0; i < rows->count; i++)
        s->several_memories |= fabs(rows->row[i].mem_mhz - rows->row[0].mem_mhz) >= SAME_MHZ;
    FL_ADVISE_REST(s,
                   "%s: %zu measured setting%s of %zu workload%s at %s to %s MHz; two laws through each workload's own "
                   "rows predict the clocks in between, %s: no platform describes the GPU",
                   basename(path), rows->count, rows->count == 1 ? "" : "s", names, names == 1 ? "" : "s",
                   fl_fit_clock_text(rows, low, from, sizeof from), fl_fit_clock_text(rows, high, to, sizeof to),
                   steps);
    if (rows->unsounds)
        fl_advise_doubt(s, "%s: rows left out, as they did not run at the clock they name (fit device tells them): %zu",
                        basename(path), rows->unsounds);
    return FL_OK;
}
