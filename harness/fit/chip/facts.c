/* A chip from board data only: reads the facts. */
#include "harness/fit/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "harness/input/platform/platform.h"
#include "models/chip/chip.h"
#include "models/fit/fit.h"
#include "models/laws/device.h"
#include "models/math/math.h"
#include "traces/io/io.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIN_MAX 64

void fl_fit_facts_free(fl_fit_facts *f) {
    free(f->sm);
    free(f->mem);
    fl_board_free(&f->board);
    *f = (fl_fit_facts){0};
}

static void borrow_ladders(fl_fit_facts *f) {
    f->known.sm_mhz = f->sm;
    f->known.mem_mhz = f->mem;
}

static fl_status read_root(const fl_json *root, fl_fit_facts *f, fl_diag *d) {
    static const char *const known[] = {"name", "sm_mhz", "mem_mhz", "default_mem_mhz", "tdp_w", "peak_gb_s"};
    char text[FL_OFF_LADDER_TEXT];
    fl_status s = fl_json_known(root, known, sizeof known / sizeof *known, d);
    f->peak_gb_s = (double)NAN;
    snprintf(f->name, sizeof f->name, "%s", "GPU of facts");
    if (!s && fl_json_has(root, "name"))
        s = fl_platform_name(root, f->name, sizeof f->name, d);
    if (!s)
        s = fl_platform_ladder(root, "sm_mhz", &f->sm, &f->known.sm_count, d);
    if (!s && f->known.sm_count < 2)
        s = fl_platform_refuse(root, "sm_mhz", d, "one clock, expected two or more");
    if (!s)
        s = fl_platform_ladder(root, "mem_mhz", &f->mem, &f->known.mem_count, d);
    if (!s)
        f->known.default_mem_mhz = f->mem[f->known.mem_count - 1];
    if (!s && fl_json_has(root, "default_mem_mhz"))
        s = fl_json_get_real(root, "default_mem_mhz", 1, FL_PLATFORM_MHZ_MAX, &f->known.default_mem_mhz, d);
    if (!s && fl_ladder_index(f->mem, f->known.mem_count, f->known.default_mem_mhz) < 0)
        s = fl_platform_refuse(root, "default_mem_mhz", d, "%s",
                               fl_off_ladder(f->known.default_mem_mhz, "mem_mhz", f->mem, f->known.mem_count, text));
    if (!s)
        s = fl_json_get_real(root, "tdp_w", 1, FL_PLATFORM_WATTS_MAX, &f->known.tdp_w, d);
    if (!s && fl_json_has(root, "peak_gb_s"))
        s = fl_json_get_real(root, "peak_gb_s", 0.1, 1e6, &f->peak_gb_s, d);
    borrow_ladders(f);
    return s;
}

/* ---- facts of a bundled board ---- */

static fl_status of_board(const char *name, fl_fit_facts *f, fl_diag *d) {
    fl_board *b = &f->board;
    fl_status s = fl_board_open(name, b, d);
    if (s)
        return s;
    const double *fact = b->fact;
    f->low_assumed = isnan(fact[FL_BOARD_sm_min_mhz]);
    f->step_assumed = isnan(fact[FL_BOARD_sm_step_mhz]);
    char text[128];
    const char *lacks = fl_board_lacks(b, text, sizeof text);
    if (lacks)
        return fl_refuse(
            d, "board %s: unknown: %s; expected a board that has them, or a file of facts (fit workload --help)", name,
            lacks);
    s = fl_board_ladder(b, &f->sm, &f->known.sm_count, d);
    if (s)
        return s;
    f->known.mem_count = b->mem_count;
    f->mem = fl_must(calloc(b->mem_count, sizeof *f->mem));
    memcpy(f->mem, b->mem_mhz, b->mem_count * sizeof *f->mem);
    snprintf(f->name, sizeof f->name, "%s", b->gpu);
    f->known.default_mem_mhz = f->mem[f->known.mem_count - 1];
    f->known.tdp_w = fact[FL_BOARD_limit_default_w];
    f->peak_gb_s = fact[FL_BOARD_peak_gb_s];
    borrow_ladders(f);
    return FL_OK;
}

fl_status fl_fit_facts_read(const char *path, fl_fit_facts *f, fl_diag *d) {
    cJSON *tree = NULL;
    const bool file = strchr(path, '/') || strchr(path, '.') || fl_is_standard(path) || !access(path, F_OK),
               board = fl_board_exists(path) || fl_is_smi(path) || !file;
    *f = (fl_fit_facts){0};
    fl_status s = board ? of_board(path, f, d) : fl_json_read(path, &tree, d);
    if (!s && !board) {
        const fl_json root = fl_json_root(tree, path);
        s = read_root(&root, f, d);
    }
    cJSON_Delete(tree);
    if (s)
        fl_fit_facts_free(f);
    return s;
}

/* The constants of the bundled chips and their spread; *kin is their number (generic does not count). The error of
 * a platform that cannot be opened. */
static fl_status kin_prior(fl_kin_spread *prior, size_t *kin, fl_diag *d) {
    char **names = NULL;
    fl_kin list[KIN_MAX];
    size_t count = 0, n = 0;
    fl_status s = fl_platform_list(&names, &count, d);
    for (size_t i = 0; i < count; i++) {
        fl_platform p = {0};
        if (!s && n < KIN_MAX && strcmp(names[i], "generic") != 0) { /* generic is not a real chip */
            s = fl_platform_open(names[i], 1, &p, d);
            n += !s && fl_kin_of_device(&p.node.device[0], &list[n]) == FL_MODEL_OK;
        }
        fl_platform_free(&p);
        free(names[i]);
    }
    free(names);
    if (!s && fl_kin_prior(list, n, prior) != FL_MODEL_OK)
        s = fl_refuse(d, "%zu platforms that describe a chip, expected three or more to tell how chips differ", n);
    *kin = n;
    return s;
}

/* Rows of one workload, at the GPU's default memory clock where they name none. */
static fl_status read_run(fl_fit_facts *f, const char *path, fl_fit_rows *rows, fl_diag *d) {
    const char *item = path;
    const fl_texts files = {.item = &item, .count = 1}, all = {0};
    fl_status s = fl_fit_rows_sound(&files, &all, rows, d);
    if (!s && rows->latent)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                    "power limits but no SM clocks, expected a run at clocks that are known");
    if (!s && rows->entities > 1)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "%zu workloads, expected the run of one; fit device takes several",
                    rows->entities);
    for (size_t i = 0; !s && i < rows->count; i++) {
        fl_chip_row *r = &rows->row[i];
        if (!rows->mem_known)
            r->mem_mhz = f->known.default_mem_mhz;
        if (r->sm_mhz < f->sm[0] - 0.5 || r->sm_mhz > f->sm[f->known.sm_count - 1] + 0.5 ||
            r->mem_mhz < f->mem[0] - 0.5 || r->mem_mhz > f->mem[f->known.mem_count - 1] + 0.5)
            s = fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                        "a run at %g MHz, memory %g MHz, expected clocks from %d to %d and from %d to %d", r->sm_mhz,
                        r->mem_mhz, f->sm[0], f->sm[f->known.sm_count - 1], f->mem[0], f->mem[f->known.mem_count - 1]);
    }
    f->run_rows = s ? 0 : rows->count;
    return s;
}

fl_status fl_fit_facts_chip(fl_fit_facts *f, const char *idle, const char *run, fl_chip *chip, fl_diag *d) {
    fl_idle_point *point = NULL;
    fl_fit_rows rows = {0};
    int device = 0;
    fl_status s = kin_prior(&f->prior, &f->kin, d);
    if (!s && idle)
        s = fl_idle_log_points(idle, &point, &f->idle_clocks, &device, d);
    if (!s && run)
        s = read_run(f, run, &rows, d);
    if (!s) {
        const fl_model_status m =
            fl_kin_chip(&f->known, &f->prior, point, f->idle_clocks, rows.row, rows.count, chip, &f->after);
        fl_must_have(m != FL_MODEL_NO_MEMORY);
        if (m != FL_MODEL_OK)
            s = fl_refuse(d, "these facts do not suffice to describe a chip: %s", fl_model_text(m));
    }
    free(point);
    fl_fit_rows_free(&rows);
    return s;
}

void fl_fit_facts_print(const fl_fit_facts *f) {
    static const char *const head[] = {"of the GPU", "about", "2 sd from", "to", "chips alike", "from", "to"};
    fl_grid g = FL_GRID_HEADED(head);
    for (int i = 0; i < FL_KIN_COUNT; i++) {
        const fl_kin_spread *const both[] = {&f->after, &f->prior};
        fl_grid_add(&g, "%s", fl_kin_what[i]);
        for (size_t k = 0; k < 2; k++) {
            const double two = both[k]->factor[i] * both[k]->factor[i];
            fl_grid_add(&g, "%.3g\t%.3g\t%.3g", both[k]->middle[i], both[k]->middle[i] / two, both[k]->middle[i] * two);
        }
    }
    fl_grid_print(&g, 1, stdout);
    printf("\nfrom %zu known chips, a TDP of %g W and a ladder of %d to %d MHz", f->kin, f->known.tdp_w, f->sm[0],
           f->sm[f->known.sm_count - 1]);
    if (f->idle_clocks)
        printf(", idling at %zu clocks", f->idle_clocks);
    if (f->run_rows)
        printf(", one workload at %zu settings", f->run_rows);
    printf("\n");
}
