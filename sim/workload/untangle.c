#include "sim/workload/untangle.h"

#include "models/laws/shares.h"

#include <stdlib.h>

static int by_time(const void *a, const void *b) {
    const fl_edge *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->end != y->end)
        return x->end ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

fl_status fl_untangle(fl_edge *edge, size_t count, const uint32_t *class_of_op, const fl_row *row, double *work,
                      uint32_t interference, bool *shared, fl_diag *d) {
    uint32_t sms[FL_SHARES_MAX], memory[FL_SHARES_MAX], rate[FL_SHARES_MAX], who[FL_SHARES_MAX];
    size_t active = 0;
    uint64_t sum_sms = 0, sum_memory = 0;
    qsort(edge, count, sizeof *edge, by_time);
    for (size_t i = 0; i < count; i++) {
        if (edge[i].end) {
            size_t k = 0;
            while (who[k] != edge[i].op)
                k++;
            sum_sms -= sms[k];
            sum_memory -= memory[k];
            active--;
            sms[k] = sms[active], memory[k] = memory[active], who[k] = who[active];
        } else {
            if (active == FL_SHARES_MAX)
                return fl_refuse(d, "more than %d kernels at once on one GPU", FL_SHARES_MAX);
            const fl_row *r = &row[class_of_op[edge[i].op]];
            who[active] = edge[i].op;
            sum_sms += sms[active] = (uint32_t)r->sms * 2;
            sum_memory += memory[active++] = (uint32_t)r->memory * 2;
        }
        if (i + 1 == count || edge[i + 1].at_ns == edge[i].at_ns || !active)
            continue;
        bool scarce = sum_sms > FL_SHARE_ONE || sum_memory > FL_SHARE_ONE;
        if (scarce) {
            fl_shares_rates(sms, memory, rate, active, FL_SHARE_ONE, interference);
            *shared = true;
        }
        double dt = (double)(edge[i + 1].at_ns - edge[i].at_ns);
        for (size_t k = 0; k < active; k++)
            work[who[k]] += scarce ? dt * rate[k] / FL_SHARE_ONE : dt;
    }
    return FL_OK;
}
