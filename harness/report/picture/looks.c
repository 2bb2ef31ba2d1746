/* Colour, shape and dash of each policy. */
#include "harness/report/picture/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/work/work.h"
#include "harness/report/data/data.h"
#include "harness/report/picture/picture.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void fl_looks_make(const fl_report_data *r, fl_looks *l) {
    *l = (fl_looks){0};
    size_t policies = 0;
    for (size_t p = 0; p < r->policy.count; p++)
        policies += !fl_report_is_baseline(r->policy.item[p]);
    const bool each = policies <= FL_PICTURE_LOOKS;
    l->by_family = !each;
    size_t *members = fl_must(calloc(r->policy.count + 1, sizeof *members)), baselines = 0; /* of a family so far */
    l->of = fl_must(calloc(r->policy.count + 1, sizeof *l->of));
    l->legend_look = fl_must(calloc(r->policy.count + 1, sizeof *l->legend_look));
    for (int baseline = 0; baseline < 2; baseline++) /* the legend ends with the baselines */
        for (size_t p = 0; p < r->policy.count; p++) {
            char family[128];
            const char *name = r->policy.item[p];
            if (fl_report_is_baseline(name) != (baseline != 0))
                continue;
            const size_t index = fl_names_index(&l->legend, baseline || each ? name : fl_label_family(name, family));
            l->of[p] = baseline ? (fl_look){.shape = (int)baselines++}
                                : (fl_look){.colour = 1 + (int)(index % FL_PICTURE_COLOURS),
                                            .shape = (int)(index % FL_PICTURE_SHAPES),
                                            .dash = (int)(members[index] % 5)};
            if (!members[index]++)
                l->legend_look[index] = l->of[p];
        }
    free(members);
}

bool fl_picture_shows(const fl_picture *p, const char *policy) {
    const fl_texts *asked = p->options ? p->options->policies : NULL;
    char family[128];
    if (!asked || !asked->count || fl_report_is_baseline(policy))
        return true;
    for (size_t i = 0; i < asked->count; i++)
        if (!strcmp(asked->item[i], policy) || !strcmp(asked->item[i], fl_label_family(policy, family)))
            return true;
    return false;
}

fl_status fl_picture_known(const fl_picture *p, const fl_names *n, fl_diag *d) {
    const fl_texts *asked = p->options ? p->options->policies : NULL;
    for (size_t i = 0; asked && i < asked->count; i++) {
        bool found = false;
        char family[128];
        for (size_t k = 0; k < n->count; k++)
            found |=
                !strcmp(asked->item[i], n->item[k]) || !strcmp(asked->item[i], fl_label_family(n->item[k], family));
        const char *near = found ? NULL : fl_nearest(asked->item[i], (const char *const *)n->item, n->count);
        if (near)
            return fl_refuse(d, "no policy '%s' in the result, did you mean '%s'?", asked->item[i], near);
        if (!found)
            return fl_refuse(d, "no policy '%s' in the result, expected a label or its part before the colon",
                             asked->item[i]);
    }
    return FL_OK;
}

void fl_looks_free(fl_looks *l) {
    free(l->of);
    free(l->legend_look);
    fl_names_free(&l->legend);
    *l = (fl_looks){0};
}
