#include "harness/plan/import_executed.h"

#include "harness/base/json/json_out.h"
#include "harness/plan/executed.h"

#include <stdio.h>

bool fl_import_is_executed(const fl_texts *files) {
    for (size_t i = 0; i < files->count; i++)
        if (fl_executed_is(files->item[i]))
            return true;
    return false;
}

static void print_json(const fl_executed *e, const char *base) {
    cJSON *root = cJSON_CreateObject(), *plans = cJSON_AddObjectToObject(root, "plans");
    cJSON_AddNumberToObject(plans, "count", (double)e->plans.plan_count);
    cJSON_AddNumberToObject(plans, "ranks", e->ranks);
    cJSON_AddNumberToObject(plans, "stages", e->stages);
    cJSON_AddNumberToObject(plans, "microbatches", e->microbatches);
    if (base)
        cJSON_AddStringToObject(plans, "base", base);
    fl_json_tell(root);
}

fl_status fl_import_executed(const fl_texts *files, const char *base, bool json, fl_diag *d) {
    fl_executed e;
    fl_status s = fl_executed_read(files, &e, d);
    if (s)
        return s;
    if (!fl_head_set(&e.plans.head, "source", "executed plans, imported as perseus"))
        s = fl_no_memory(d, NULL);
    if (!s && base)
        s = fl_executed_write(base, &e, d);
    if (!s && json)
        print_json(&e, base);
    if (!s && !json) {
        printf("plans       %zu executed on %u ranks: 1F1B, %u stages, %u microbatches\n", e.plans.plan_count, e.ranks,
               e.stages, e.microbatches);
        if (base)
            printf("written: %s.plans.csv, .measured.csv and .instructions.csv, for fit pipeline %s\n", base, base);
        else
            printf("nothing was written; -o BASE writes BASE.plans.csv, BASE.measured.csv and BASE.instructions.csv\n");
    }
    fl_executed_free(&e);
    return s;
}
