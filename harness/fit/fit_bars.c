#include "harness/fit/fit_bars.h"

#include "harness/base/json.h"
#include "harness/base/json_out.h"

const char *const fl_fit_bars_kind[FL_CHIP_KINDS] = {"time", "power"};
const char *const fl_fit_bars_place[FL_CHIP_PLACES] = {"inside", "outside", "alone", "other_memory"};

fl_status fl_fit_bars_read(const char *path, const char *without, fl_chip_bars *bars, fl_diag *d) {
    cJSON *tree = NULL;
    fl_status s = fl_json_read(path, &tree, d);
    if (s)
        return s;
    const fl_json top = fl_json_root(tree, path);
    fl_json list, root;
    s = without ? fl_json_get_object(&top, "without", &list, d) : fl_json_get_object(&top, "all", &root, d);
    if (!s && without)
        s = fl_json_get_object(&list, without, &root, d);
    for (int k = 0; !s && k < FL_CHIP_KINDS; k++) {
        fl_json kind, at;
        s = fl_json_get_object(&root, fl_fit_bars_kind[k], &kind, d);
        for (int p = 0; !s && p < FL_CHIP_PLACES; p++) {
            fl_chip_bar *b = &bars->of[k][p];
            s = fl_json_get_object(&kind, fl_fit_bars_place[p], &at, d);
            if (!s)
                s = fl_json_get_real(&at, "typical", 1e-3, 1e3, &b->typical, d);
            if (!s)
                s = fl_json_get_real(&at, "own_typical", 1e-3, 1e3, &b->own_typical, d);
            if (!s)
                s = fl_json_get_real(&at, "trust", 0, 1, &b->trust, d);
            if (!s)
                s = fl_json_get_real(&at, "spec", 1e-3, 1e3, &b->spec, d);
        }
    }
    cJSON_Delete(tree);
    return s;
}

cJSON *fl_fit_bars_to_json(const fl_chip_bars *bars) {
    cJSON *root = cJSON_CreateObject();
    for (int k = 0; k < FL_CHIP_KINDS; k++) {
        cJSON *kind = cJSON_AddObjectToObject(root, fl_fit_bars_kind[k]);
        for (int p = 0; p < FL_CHIP_PLACES; p++) {
            const fl_chip_bar *b = &bars->of[k][p];
            cJSON *at = cJSON_AddObjectToObject(kind, fl_fit_bars_place[p]);
            fl_json_add_real(at, "typical", b->typical);
            fl_json_add_real(at, "own_typical", b->own_typical);
            fl_json_add_real(at, "trust", b->trust);
            fl_json_add_real(at, "spec", b->spec);
        }
    }
    return root;
}
