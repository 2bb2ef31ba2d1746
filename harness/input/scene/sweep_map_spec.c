#include "harness/input/scene/sweep_map_spec.h"

#include "harness/base/json/json.h"
#include "traces/io/gzip.h"

#include <stdlib.h>
#include <string.h>

static fl_status read_file(const char *path, fl_sweep_map *m, fl_diag *d) {
    cJSON *tree = NULL;
    fl_status s = fl_json_read(path, &tree, d);
    const fl_json root = fl_json_root(tree, path);
    for (fl_json at = s ? (fl_json){0} : fl_json_first(&root); !s && at.node; at = fl_json_next(&root, &at)) {
        char *source = NULL;
        s = fl_json_param_text(&at, &source, d);
        if (!s)
            s = fl_sweep_map_add(m, at.node->string, source, d);
        free(source);
    }
    if (!s && !m->count)
        s = fl_json_fail(&root, d, "no pair, expected such as \"sm_mhz\": \"COLUMN\"");
    cJSON_Delete(tree);
    if (s)
        fl_sweep_map_free(m);
    return s;
}

fl_status fl_sweep_map_open(const char *spec, fl_sweep_map *m, fl_diag *d) {
    *m = (fl_sweep_map){0};
    return fl_name_ends(spec, ".json") ? read_file(spec, m, d) : fl_sweep_map_parse(spec, m, d);
}
