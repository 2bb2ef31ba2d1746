#include "harness/plan/fit_pipeline.h"

fl_status fl_pipeline_fit_learn(fl_pipeline_fit *f, const bool *learn, const fl_pipeline_beliefs *b, fl_diag *d) {
    const bool *loads = f->loads_of ? f->loads_of : learn;
    fl_status s = FL_OK;
    for (uint32_t rank = 0; !s && rank < f->p.ranks; rank++) {
        f->load_s[rank] = fl_pf_mean(f, rank, FL_PIPELINE_LOAD, loads);
        f->load_in_recv_s[rank] = fl_pf_mean(f, rank, FL_PIPELINE_LOAD_IN_RECV, loads);
        for (int k = 0; !s && k < 2; k++)
            s = fl_pf_learn_time(f, rank, k, learn, b, d);
    }
    if (!s)
        s = fl_pf_learn_links(f, learn, b, d);
    return s ? s : fl_pf_learn_powers(f, learn, b, d);
}
