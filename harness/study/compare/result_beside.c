#include "harness/study/compare/result_beside.h"

#include "harness/base/json/json_out.h"
#include "harness/study/compare/draws_compare.h"
#include "harness/study/compare/provenance.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *experiment_text(const fl_setup *u, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItem(u->experiment.tree, key));
}

fl_status fl_report_record(const fl_setup *u, cJSON **record, fl_diag *d) {
    *record = fl_provenance(&u->scenes, u->spec, u->o.spec_count, u->o.seed);
    return *record ? FL_OK : fl_no_memory(d, "the provenance");
}

void fl_report_about(const fl_setup *u, cJSON *record) {
    if (u->experiment.tree) {
        const char *path = fl_input_name(u->experiment.path), *slash = strrchr(path, '/'),
                   *about = experiment_text(u, "about");
        cJSON_AddStringToObject(record, "experiment", slash ? slash + 1 : path);
        if (about && !u->own)
            cJSON_AddStringToObject(record, "about", about);
    }
    if (cJSON_HasObjectItem(record, "options"))
        return;
    cJSON *o = cJSON_AddObjectToObject(record, "options");
    fl_json_add_real(o, "bound", u->o.bound);
    cJSON_AddItemToObject(o, "bounds", fl_promises_json(&u->promises));
    cJSON_AddStringToObject(o, "objective", fl_objective_names[u->o.objective]);
    cJSON_AddNumberToObject(o, "seeds", (double)fl_setup_seeds(u));
    cJSON_AddBoolToObject(o, "oracles", u->o.oracles);
}

/* The lines as they were solved, with the notes of the experiment, and what it assumes. */
static cJSON *published_tree(const fl_setup *u, const fl_published *published) {
    cJSON *root = cJSON_CreateObject(), *lines = fl_published_json(published), *line;
    const cJSON *assumed = cJSON_GetObjectItem(u->experiment.tree, "assumed"),
                *given = cJSON_GetObjectItem(u->experiment.tree, "published");
    int i = 0;
    cJSON_ArrayForEach(line, lines) {
        const char *note = cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(given, i++), "note"));
        if (note)
            cJSON_AddStringToObject(line, "note", note);
    }
    if (experiment_text(u, "about"))
        cJSON_AddStringToObject(root, "about", experiment_text(u, "about"));
    cJSON_AddItemToObject(root, "published", lines);
    if (assumed)
        cJSON_AddItemToObject(root, "assumed", cJSON_Duplicate(assumed, true));
    return root;
}

static char *beside(const char *csv, const char *ending) {
    char *provenance = fl_provenance_path(csv), *path = NULL;
    const size_t stem = provenance ? strlen(provenance) - strlen(".provenance.json") : 0;
    if (!provenance || asprintf(&path, "%.*s%s", (int)stem, provenance, ending) < 0)
        path = NULL;
    free(provenance);
    return path;
}

fl_status fl_report_beside_write(const fl_setup *u, const fl_comparison *c, const fl_published *published,
                                 const char *csv, fl_diag *d) {
    if (fl_is_standard(csv))
        return FL_OK;
    char *json = beside(csv, ".published.json"), *regret = beside(csv, ".regret.csv");
    cJSON *tree = published ? published_tree(u, published) : NULL;
    fl_status s = json && regret && (tree || !published) ? FL_OK : fl_no_memory(d, "the results");
    if (!s && published)
        s = fl_json_write(json, tree, d);
    else if (!s)
        unlink(json);
    if (!s && fl_experiment_draws(&u->experiment))
        s = fl_draws_write_regret(c, regret, u->o.seed, d);
    else if (!s)
        unlink(regret);
    cJSON_Delete(tree);
    free(json);
    free(regret);
    return s;
}
