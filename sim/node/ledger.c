#include "sim/node/ledger.h"

#include "sim/gpu/cpu.h"
#include "sim/advance/prefix.h"

#define FL_ROW_PART_NAME(id, name, meaning) #name,
const char *const fl_part_names[FL_PART_COUNT] = {FL_PARTS(FL_ROW_PART_NAME)};

fl_status fl_ledger_add_gpu(fl_ledger *l, const fl_gpu *g, fl_diag *d) {
    fl_wide part[FL_PART_COUNT] = {0}, sum = 0;
    for (uint32_t i = 0; i < g->slot_count; i++) {
        const fl_slot *s = &g->slot[i];
        const fl_base *b = &s->rates->base;
        const fl_wide awake_ps = s->open_ps - s->gated_ps;
        part[FL_PART_STATIC] += awake_ps * b->static_mw;
        part[FL_PART_MEMORY] += (fl_wide)s->open_ps * b->memory_mw;
        part[FL_PART_CLOCK_TREE] += awake_ps * b->tree_mw;
        part[FL_PART_SM] += s->sm_fj;
        part[FL_PART_MEMORY] += s->memory_fj;
        part[FL_PART_UNSPLIT] += s->unsplit_fj;
        for (uint32_t c = 0; c < g->w->class_count; c++) {
            if (!s->class_ps[c])
                continue; /* nearly all of them in a run by tables of sums */
            const fl_row_parts *p = &s->rates->parts[c];
            part[FL_PART_SM] += (fl_wide)s->class_ps[c] * p->sm_mw;
            part[FL_PART_MEMORY] += (fl_wide)s->class_ps[c] * p->memory_mw;
            part[FL_PART_UNSPLIT] += (fl_wide)s->class_ps[c] * p->unsplit_mw;
        }
    }
    part[FL_PART_LEAKAGE] = g->leak_fj;
    part[FL_PART_CLOSED] = (fl_wide)g->closed_ps * g->closed_mw;
    for (int i = 0; i < FL_PART_COUNT; i++) {
        sum += part[i];
        l->part_fj[i] += part[i];
    }
    l->gpu_fj += sum;
    if (sum != g->sums.energy_fj || sum < 0)
        return fl_error(d, FL_MODEL_FAULT,
                        "the ledger of GPU %u does not close: %.17g J by residence, %.17g J by running sum", g->index,
                        fl_joules(sum), fl_joules(g->sums.energy_fj));
    return FL_OK;
}

fl_status fl_ledger_add_host(fl_ledger *l, const fl_node *n, const fl_node_spec *spec, fl_diag *d) {
    const fl_cpu *cpu = fl_node_cpu(n);
    fl_wide part[FL_PART_COUNT] = {0};
    part[FL_PART_CPU] = cpu ? fl_cpu_residence_fj(cpu) : 0;
    part[FL_PART_COMMUNICATION] = fl_node_comm_fj(n);
    part[FL_PART_NODE_STATIC] = (fl_wide)fl_node_now(n) * (int64_t)(spec->host.static_w * 1000 + 0.5);
    for (int i = 0; i < FL_PART_COUNT; i++) {
        l->part_fj[i] += part[i];
        l->host_fj += part[i];
    }
    if (cpu && (part[FL_PART_CPU] != cpu->sums.cpu_fj || part[FL_PART_CPU] < 0))
        return fl_error(d, FL_MODEL_FAULT,
                        "the ledger of the CPU does not close: %.17g J by residence, %.17g J by running sum",
                        fl_joules(part[FL_PART_CPU]), fl_joules(cpu->sums.cpu_fj));
    return FL_OK;
}

void fl_ledger_classes(const fl_gpu *g, fl_wide *fj, int64_t *ps) {
    for (uint32_t i = 0; i < g->slot_count; i++)
        for (uint32_t c = 0; c < g->w->class_count; c++) {
            int64_t at = g->slot[i].class_ps[c];
            fj[c] += (fl_wide)at * ((int64_t)g->slot[i].rates->row[c].dyn_mw + g->slot[i].rates->base.total_mw);
            ps[c] += at;
        }
}

/* Classes that ran alone drew their own power. Where classes shared a GPU, the power was recorded as they ran. */
static int64_t busy_peak_mw(const fl_gpu *g) {
    int64_t peak = g->peak_mw;
    for (uint32_t i = 0; !g->peak_mw && i < g->slot_count; i++)
        for (uint32_t c = 0; c < g->w->class_count; c++)
            if (g->slot[i].class_ps[c] > 0) {
                int64_t mw = (int64_t)g->slot[i].rates->base.total_mw + g->slot[i].rates->row[c].dyn_mw;
                if (mw > peak)
                    peak = mw;
            }
    return g->peak_mw ? peak : fl_prefix_peak_mw(g, peak);
}

int64_t fl_ledger_peak_mw(const fl_gpu *g) {
    int64_t peak = busy_peak_mw(g);
    for (uint32_t i = 0; i < g->slot_count; i++)
        if (g->slot[i].open_ps > 0 && g->slot[i].rates->base.total_mw > peak)
            peak = g->slot[i].rates->base.total_mw;
    peak += g->leak_peak_mw;
    return g->closed_ps > 0 && g->closed_mw > peak ? g->closed_mw : peak;
}

int64_t fl_ledger_host_peak_mw(const fl_node *n, const fl_node_spec *spec) {
    const fl_cpu *cpu = fl_node_cpu(n);
    int64_t mw = (cpu ? cpu->peak_mw : 0) + (int64_t)(spec->host.static_w * 1000 + 0.5);
    return fl_node_comm_fj(n) > 0 ? mw + (int64_t)(spec->host.comm_w * 1000 + 0.5) : mw;
}
