/* What a gate found, for other programs. */
#include "harness/base/json/json_out.h"
#include "harness/study/grid/gate.h"

static cJSON *finding_json(const fl_gate_finding *f) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "workload", f->row->workload);
    cJSON_AddStringToObject(o, "policy", f->row->policy);
    cJSON_AddStringToObject(o, "platform", f->row->platform);
    cJSON_AddItemToObject(o, "metric", f->rule ? cJSON_CreateString(f->rule->metric) : cJSON_CreateNull());
    cJSON_AddItemToObject(o, "gate", f->rule ? cJSON_CreateString(f->rule->text) : cJSON_CreateNull());
    cJSON_AddBoolToObject(o, "failed", f->failed);
    if (f->rule) {
        fl_json_add_real(o, "recorded", f->old_mean);
        fl_json_add_real(o, "now", f->new_mean);
        fl_json_add_real(o, "change", f->change);
        fl_json_add_real(o, "change_low", f->low);
        fl_json_add_real(o, "change_high", f->high);
        cJSON_AddStringToObject(o, "unit", f->rule->relative ? "%" : "");
    }
    cJSON_AddStringToObject(o, "text", f->text);
    return o;
}

cJSON *fl_gate_result_json(const char *experiment, const fl_gate_result *r) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "experiment", experiment);
    cJSON_AddNumberToObject(root, "gates", (double)r->count);
    cJSON_AddNumberToObject(root, "failed", (double)r->failed);
    cJSON *rows = cJSON_AddArrayToObject(root, "rows");
    for (size_t i = 0; i < r->count; i++)
        cJSON_AddItemToArray(rows, finding_json(&r->finding[i]));
    return root;
}
