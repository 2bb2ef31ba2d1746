/* `foldline fit probes`: which clocks to measure, on a GPU that was calibrated or on one that no one has measured. */
#include "harness/fit/chip/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
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

static const fl_command_help help = {
    "fit probes", "PLATFORM | DEV.json | --sweep FILE... | --facts FILE.json [--idle LOG] [--run FILE]",
    "Says at which one, two, three or four clocks to measure a workload, so that the others can be predicted from "
    "them.",
    "Each workload that is known is predicted from the candidates by what the rest are like; the clocks with the least "
    "errors are named, with these errors, beside the usual ones (the top, the ends, the corners).\n\n"
    "--sweep FILE fits a device first, DEV.json of `fit device` holds one. Of a platform, or of --facts, the workloads "
    "and how far its V(f) and its power may differ are made up from what the bundled chips are like; an idle log at "
    "several clocks with a context open (--idle) or a run of one workload (--run) narrows that. A file of facts is\n"
    "{\"sm_mhz\": {\"from\": 210, \"to\": 1410, \"steps\": [15]}, \"mem_mhz\": [1593], \"tdp_w\": 400}; it may have "
    "name,\n"
    "default_mem_mhz and peak_gb_s."};

typedef struct probes_options {
    const char *facts, *idle, *run, *platform;
    fl_texts sweeps, only;
    int64_t count;
    bool json;
} probes_options;

static fl_status chip_of_sweep(const probes_options *o, fl_fit_rows *rows, fl_chip *chip, fl_diag *d) {
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

static fl_status find_chip(const probes_options *o, fl_fit_facts *facts, fl_fit_rows *rows, fl_chip *chip, fl_diag *d) {
    bool found = false;
    if (o->sweeps.count)
        return chip_of_sweep(o, rows, chip, d);
    fl_status s = o->platform ? chip_of_file(o->platform, rows, chip, &found, d) : FL_OK;
    if (s || found)
        return s;
    s = o->facts ? fl_fit_facts_read(o->facts, facts, d) : fl_fit_facts_of_platform(o->platform, facts, d);
    return s ? s : fl_fit_facts_chip(facts, o->idle, o->run, chip, d);
}

static fl_status run_all(const probes_options *o, fl_diag *d) {
    fl_fit_facts facts = {0};
    fl_fit_rows rows = {0};
    fl_fit_advice advice;
    fl_chip *chip = fl_must(calloc(1, sizeof *chip));
    fl_status s = find_chip(o, &facts, &rows, chip, d);
    const size_t least = o->count ? (size_t)o->count : 1, most = o->count ? (size_t)o->count : FL_PROBES_MAX;
    if (!s && facts.kin == 0 && (o->idle || o->run))
        s = fl_refuse(d, "--idle and --run are for a GPU that nobody has measured, expected --facts or a platform");
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

int fl_cmd_fit_probes(int argc, char **argv) {
    probes_options o = {0};
    fl_texts rest = {0};
    const fl_option option[] = {
        {"sweep", "FILE", FL_OPTION_LIST, &o.sweeps, 0, 0, "measured settings; may be given several times"},
        {"only", "NAME", FL_OPTION_LIST, &o.only, 0, 0,
         "of these workloads, by name or pattern; may be given several times"},
        {"facts", "FILE", FL_OPTION_TEXT, &o.facts, 0, 0,
         "facts of a GPU that nobody has measured, or a bundled board's name"},
        {"idle", "LOG", FL_OPTION_TEXT, &o.idle, 0, 0, "log of that GPU idling at several clocks"},
        {"run", "FILE", FL_OPTION_TEXT, &o.run, 0, 0, "a sweep of one workload on that GPU, one setting or more"},
        {"count", "N", FL_OPTION_INT, &o.count, 1, FL_PROBES_MAX, "number of clocks to name (all from one to four)"},
        {"json", NULL, FL_OPTION_FLAG, &o.json, 0, 0, "prints the result as JSON"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_status s = FL_OK;
    o.platform = rest.count ? rest.item[0] : NULL;
    if (rest.count > 1)
        s = fl_refuse(&d, "'%s' after '%s', expected one platform or device", rest.item[1], rest.item[0]);
    else if ((o.platform != NULL) + (o.sweeps.count > 0) + (o.facts != NULL) != 1)
        s = fl_refuse(&d, "expected a platform or device, --sweep FILE, or --facts FILE, and one of these alone");
    if (!s)
        s = run_all(&o, &d);
    return fl_command_close(help.name, s, &d, option, sizeof option / sizeof *option, &rest);
}
