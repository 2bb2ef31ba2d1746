#include "harness/log/probelog.h"

#include "traces/io/numbers.h"
#include "traces/io/writing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fl_probelog_open(fl_probelog *l, const fl_policy *policy, uint32_t gpu_count) {
    *l = (fl_probelog){.policy = policy, .gpu_count = gpu_count};
    for (uint32_t i = 0; i < policy->probe_count; i++)
        l->cells += policy->probe[i].per_gpu ? gpu_count : 1;
}

fl_status fl_probelog_add(fl_probelog *l, const fl_sample *sample, const fl_decision *decision, fl_diag *d) {
    if (fl_grow(&l->t_ns, &l->room_t, l->step_count + 1, sizeof *l->t_ns) ||
        fl_grow(&l->value, &l->room_value, (l->step_count + 1) * l->cells + 1, sizeof *l->value))
        return fl_no_memory(d, "the probes");
    l->t_ns[l->step_count] = sample->time_ns;
    if (l->cells)
        memcpy(l->value + l->step_count * l->cells, decision->probe, l->cells * sizeof *l->value);
    l->step_count++;
    return FL_OK;
}

/* The row of the host (gpu = gpu_count) or of one GPU. */
static void put_row(const fl_probelog *l, size_t step, uint32_t gpu, FILE *f) {
    size_t at = step * l->cells;
    char text[FL_REAL_TEXT];
    if (gpu == l->gpu_count)
        fprintf(f, "%lld,host", (long long)l->t_ns[step]);
    else
        fprintf(f, "%lld,%u", (long long)l->t_ns[step], gpu);
    for (uint32_t i = 0; i < l->policy->probe_count; i++) {
        bool per_gpu = l->policy->probe[i].per_gpu;
        double value = per_gpu == (gpu < l->gpu_count) ? l->value[at + (per_gpu ? gpu : 0)] : NAN;
        fprintf(f, ",%s", isfinite(value) ? fl_real_text(value, text) : "");
        at += per_gpu ? l->gpu_count : 1;
    }
    fputc('\n', f);
}

fl_status fl_probelog_write(const fl_probelog *l, const char *path, fl_diag *d) {
    fl_output *o = fl_output_open(path, d);
    if (!o)
        return d ? d->status : FL_IO;
    FILE *f = fl_output_file(o);
    bool node = false;
    fputs("t_ns,device", f);
    for (uint32_t i = 0; i < l->policy->probe_count; i++) {
        fprintf(f, ",%s", l->policy->probe[i].name);
        node |= !l->policy->probe[i].per_gpu;
    }
    fputc('\n', f);
    for (size_t step = 0; step < l->step_count; step++) {
        if (node)
            put_row(l, step, l->gpu_count, f);
        for (uint32_t gpu = 0; gpu < l->gpu_count; gpu++)
            put_row(l, step, gpu, f);
    }
    return fl_output_commit(o, d);
}

void fl_probelog_free(fl_probelog *l) {
    free(l->t_ns);
    free(l->value);
    *l = (fl_probelog){0};
}
