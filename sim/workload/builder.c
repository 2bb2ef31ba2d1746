/* What a workload takes from a trace beside its ops: the clocks of the recording, what kernels ask of the GPU, and the
 * arrays that the parts of the builder share. */
#include "sim/workload/inside.h"

#include "models/laws/laws.h"
#include "models/math/math.h"
#include "sim/workload/workload.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static fl_status head_clock(const fl_builder *b, const char *key, double *mhz, fl_diag *d) {
    const char *text = fl_head_get(&b->t->head, key);
    *mhz = 0;
    if (!text)
        return FL_OK;
    char *end;
    *mhz = strtod(text, &end);
    if (end == text || *end || !(*mhz > 0) || *mhz > 1e5)
        return fl_fail(d, FL_BAD_INPUT, b->w->name, 0, 0, "head: %s is '%s', expected a clock in MHz", key, text);
    return FL_OK;
}

fl_status fl_builder_host_clock(fl_builder *b, fl_diag *d) { return head_clock(b, "cpu_mhz", &b->w->host_ref_mhz, d); }

fl_status fl_builder_clocks(fl_builder *b, fl_diag *d) {
    const fl_status s = head_clock(b, "sm_mhz", &b->sm_mhz, d);
    return s ? s : head_clock(b, "mem_mhz", &b->mem_mhz, d);
}

fl_status fl_builder_too_many(const fl_builder *b, fl_diag *d) {
    return fl_refuse(d, "%s: kernels on more than %u devices, the platform %s has %u (see --gpus)", b->w->name,
                     b->node->gpu_count, b->node->name, b->node->gpu_count);
}

/* What a fit wrote into the head of its kinds; NAN where nobody knows how wrong they are. */
static double head_error(const fl_kinds *kinds, const char *key) {
    const char *text = fl_head_get(&kinds->head, key);
    double pct;
    return text && fl_real_parse(text, &pct) == FL_NUMBER_OK && pct >= 0 ? pct : (double)NAN;
}

fl_status fl_builder_begin(fl_builder *b, fl_diag *d) {
    const size_t kinds = b->t->kind_count;
    b->device = calloc(b->node->gpu_count + 1, sizeof *b->device);
    b->rows = calloc(kinds + 1, sizeof *b->rows);
    if (!b->device || !b->rows)
        return fl_no_memory(d, "the workload");
    if (b->o->kinds) {
        b->w->model_time_mape_pct = head_error(b->o->kinds, "model_time_mape_pct");
        b->w->model_power_mape_pct = head_error(b->o->kinds, "model_power_mape_pct");
    }
    b->w->launch_queue = b->node->host.launch_queue ? b->node->host.launch_queue : 1024;
    b->w->gaps_are_host = !b->t->has_launches;
    return FL_OK;
}

void fl_builder_end(fl_builder *b) {
    free(b->device);
    free(b->order);
    free(b->stream);
    free(b->place);
    free(b->class_of_op);
    fl_intern_free(&b->classes);
    free(b->made_for);
    free(b->work_ns);
    free(b->rows);
}

bool fl_builder_shares(const fl_builder *b) {
    const char *alone = fl_head_get(&b->t->head, "alone"); /* each program was recorded by itself: nothing to undo */
    return !(alone && strcmp(alone, "1") == 0);
}

fl_status fl_builder_demands(const fl_builder *b, uint32_t gpu, fl_row *row, fl_diag *d) {
    for (uint32_t c = 0; c < b->w->class_count; c++) {
        fl_row_parts parts;
        const fl_load *l = &b->w->class[c].load;
        fl_model_status m = fl_row_make(fl_builder_device(b, gpu), l, l->ref_sm_mhz, l->ref_mem_mhz, &row[c], &parts);
        if (m != FL_MODEL_OK)
            return fl_error(d, m == FL_MODEL_NO_MEMORY ? FL_NO_MEMORY : FL_BAD_INPUT,
                            "%s: '%s' was recorded at %g MHz (memory %g MHz) on %s: %s", b->w->name,
                            b->w->class[c].kind.name, l->ref_sm_mhz, l->ref_mem_mhz, b->node->name, fl_model_text(m));
        if (b->w->class[c].copy || b->w->class[c].iteration)
            row[c].sms = 0;
    }
    return FL_OK;
}

fl_status fl_builder_check_demands(const fl_builder *b, fl_diag *d) {
    fl_row *row = calloc(b->w->class_count + 1, sizeof *row);
    const fl_status s = !row                   ? fl_no_memory(d, "the workload")
                        : fl_builder_shares(b) ? fl_builder_demands(b, 0, row, d)
                                               : FL_OK;
    free(row);
    return s;
}
