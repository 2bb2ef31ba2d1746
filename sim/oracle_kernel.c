/* The best clock per kind of kernel. */
#include "sim/oracle.h"
#include "sim/oracle_ops.h"

#include <math.h>
#include <stdlib.h>

typedef struct fl_class_sums { /* of all streams */
    size_t columns;            /* the choices, and last the default clocks */
    const fl_clock_rates **at; /* columns */
    fl_wide *ps;               /* classes x columns */
    fl_wide gap_ps;
} fl_class_sums;

static fl_status sum_classes(const fl_workload *w, fl_class_sums *sum, fl_diag *d) {
    fl_op_block b = {0};
    fl_status s = fl_op_block_open(&b, w, d);
    for (uint32_t i = 0; !s && i < w->stream_count; i++) {
        const fl_stream *stream = &w->stream[i];
        for (uint64_t at = 0; !s && at < stream->count; at += FL_OP_BLOCK_MAX) {
            uint64_t end = stream->count - at < FL_OP_BLOCK_MAX ? stream->count : at + FL_OP_BLOCK_MAX;
            s = fl_op_block_fill(&b, stream, at, end, d);
            if (s)
                break;
            sum->gap_ps += b.gap_ps;
            for (size_t k = 0; k < b.class_count; k++)
                for (size_t c = 0; c < sum->columns; c++)
                    sum->ps[b.class_id[k] * sum->columns + c] +=
                        fl_op_block_length_ps(&b, k, sum->at[c]->row[b.class_id[k]].mul);
        }
    }
    fl_op_block_close(&b);
    return s;
}

/* Of the choices that hold the bound the one with the least objective; of others the fastest. Ties: the higher clock,
 * which comes later. */
static void choose(const fl_class_sums *sum, uint32_t class_id, fl_objective objective, double bound,
                   const fl_choice *choice, fl_kernel_choice *out) {
    const fl_wide *ps = sum->ps + class_id * sum->columns;
    fl_wide standard_ps = ps[sum->columns - 1];
    int64_t limit = standard_ps < INT64_MAX ? fl_limit_ps((int64_t)standard_ps, bound) : INT64_MAX;
    bool held = false;
    double least = 0;
    for (size_t c = 0; c + 1 < sum->columns; c++) {
        int64_t board_mw = (int64_t)sum->at[c]->base.total_mw + sum->at[c]->row[class_id].dyn_mw;
        double j = fl_joules(ps[c] * board_mw), s = (double)ps[c] * 1e-12;
        bool holds = ps[c] <= limit;
        double value = holds ? fl_objective_value(objective, j, s) : s;
        if (c && (holds != held ? held : value > least))
            continue;
        held = holds;
        least = value;
        *out = (fl_kernel_choice){class_id, choice[c], j, s};
    }
}

fl_status fl_oracle_per_kernel(const fl_workload *w, fl_rates *rates, const fl_node_spec *spec, fl_objective objective,
                               double bound, fl_kernel_choice *choice, double *energy_j, double *time_s, fl_diag *d) {
    uint32_t device = spec->gpu[0];
    const fl_device *dev = &spec->device[device];
    int sm = fl_ladder_index(dev->sm_mhz, dev->sm_count, dev->default_sm_mhz);
    int mem = fl_ladder_index(dev->mem_mhz, dev->mem_count, dev->default_mem_mhz);
    if (sm < 0 || mem < 0)
        return fl_refuse(d, "the default clocks of %s are not on its ladders, expected there", dev->name);
    fl_choice *at = NULL;
    size_t count;
    fl_status s = fl_oracle_choices(w, spec, &at, &count, d);
    if (s)
        return s;
    fl_class_sums sum = {.columns = count + 1};
    sum.at = calloc(sum.columns, sizeof(fl_clock_rates *));
    sum.ps = calloc(sum.columns * (w->class_count + 1), sizeof *sum.ps);
    if (!sum.at || !sum.ps)
        s = fl_no_memory(d, "the oracle");
    for (size_t c = 0; !s && c < count; c++)
        s = fl_rates_at(rates, device, at[c].sm, at[c].mem, &sum.at[c], d);
    if (!s)
        s = fl_rates_at(rates, device, (uint32_t)sm, (uint32_t)mem, &sum.at[count], d);
    if (!s)
        s = sum_classes(w, &sum, d);
    if (!s) {
        *energy_j = fl_joules(sum.gap_ps * sum.at[count]->base.total_mw);
        *time_s = (double)sum.gap_ps * 1e-12;
        for (uint32_t c = 0; c < w->class_count; c++) {
            choose(&sum, c, objective, bound, at, &choice[c]);
            *energy_j += choice[c].energy_j;
            *time_s += choice[c].time_s;
        }
    }
    free(sum.at);
    free(sum.ps);
    free(at);
    return s;
}
