/* `foldline fit workload --which-clocks N`: which clocks to measure, on a GPU that was calibrated or on one that no one
 * has measured. */
#include "harness/fit/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "harness/chip/chip.h"
#include "models/chip/chip.h"
#include "models/math/math.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fl_status chip_of_sweep(const fl_fit_probes_options *o, fl_fit_rows *rows, fl_chip *chip, fl_diag *d) {
    fl_status s = fl_fit_rows_sound(&o->sweeps, &o->only, rows, d);
    if (!s) {
        const fl_model_status m = fl_chip_fit(rows->row, rows->count, FL_CHIP_BEST, chip);
        fl_must_have(m != FL_MODEL_NO_MEMORY);
        if (m != FL_MODEL_OK)
            s = fl_fail(d, FL_BAD_INPUT, o->sweeps.item[0], 0, 0,
                        "no model fits: %s; expected workloads at two settings or more", fl_model_text(m));
    }
    return s;
}

/* Reads the calibration of a device file; *found: it has one. rows: receives its names for clocks. */
static fl_status chip_of_file(const char *path, fl_fit_rows *rows, fl_chip *chip, bool *found, fl_diag *d) {
    cJSON *tree = NULL;
    bool mem_known = true;
    *found = false;
    if (!fl_is_standard(path) && !strchr(path, '/') && !fl_name_ends(path, ".json"))
        return FL_OK;
    fl_status s = fl_json_read(path, &tree, d);
    if (!s) {
        const fl_json root = fl_json_root(tree, path);
        fl_json at;
        *found = fl_json_has(&root, "calibration");
        if (*found)
            s = fl_json_get_object(&root, "calibration", &at, d);
        if (!s && *found)
            s = fl_chip_from_json(&at, chip, &mem_known, d);
        if (!s && *found)
            s = fl_fit_clocks_apply(&at, rows, d);
    }
    cJSON_Delete(tree);
    return s;
}

static fl_status find_chip(const fl_fit_probes_options *o, fl_fit_facts *facts, fl_fit_rows *rows, fl_chip *chip,
                           fl_diag *d) {
    bool found = false;
    if (o->sweeps.count)
        return chip_of_sweep(o, rows, chip, d);
    fl_status s = o->platform ? chip_of_file(o->platform, rows, chip, &found, d) : FL_OK;
    if (s || found)
        return s;
    s = o->facts ? fl_fit_facts_read(o->facts, facts, d) : fl_fit_facts_of_platform(o->platform, facts, d);
    return s ? s : fl_fit_facts_chip(facts, o->idle, o->run, chip, d);
}

static fl_status run_all(const fl_fit_probes_options *o, fl_diag *d) {
    fl_fit_facts facts = {0};
    fl_fit_rows rows = {0};
    fl_fit_advice advice;
    fl_chip *chip = fl_must(calloc(1, sizeof *chip));
    fl_status s = find_chip(o, &facts, &rows, chip, d);
    const size_t least = o->count ? (size_t)o->count : 1, most = o->count ? (size_t)o->count : FL_PROBES_MAX;
    if (!s && facts.kin == 0 && (o->idle || o->run))
        s = fl_refuse(d, "--idle and --run are for a GPU without measurements, expected --facts or a platform");
    if (!s)
        fl_fit_advise(chip, &rows, least, most, &advice);
    if (!s && advice.end == advice.first)
        s = fl_refuse(d,
                      "%u workloads at %u settings are too few, expected %d workloads and more settings than you "
                      "want to measure",
                      chip->shares, chip->settings, FL_PROBES_WORKLOADS);
    if (!s && o->json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddStringToObject(root, "from", facts.kin ? "chips alike" : "calibration");
        cJSON_AddItemToObject(root, "probes", fl_fit_advice_json(&advice));
        fl_json_tell(root);
    } else if (!s) {
        if (facts.kin)
            fl_fit_facts_print(&facts);
        fl_fit_advice_print(&advice);
        for (size_t i = 0; i < rows.clocks; i++)
            if (rows.clock[i].clear)
                printf("note: ask for %g MHz; the GPU then ran at about %.0f MHz\n", rows.clock[i].sm_mhz,
                       rows.clock[i].ran_mhz);
    }
    fl_fit_facts_free(&facts);
    fl_fit_rows_free(&rows);
    free(chip);
    return s;
}

fl_status fl_fit_probes_tell(const fl_fit_probes_options *o, fl_diag *d) {
    if ((o->platform != NULL) + (o->sweeps.count > 0) + (o->facts != NULL) != 1)
        return fl_refuse(d, "expected --device with a device or platform, SWEEP ..., or --facts FILE, and one of "
                            "these alone");
    return run_all(o, d);
}
