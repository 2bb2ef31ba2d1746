#include "harness/study/trial/risk.h"

#include <math.h>

fl_status fl_risk_check(const fl_scenes *scenes, double bound, double risk, fl_diag *d) {
    if (!(risk > 0))
        return FL_OK;
    if (isinf(bound))
        return fl_refuse(d, "--risk is the chance to break --bound, expected --bound as well");
    for (size_t i = 0; i < scenes->count; i++)
        if (!scenes->item[i]->stated.count)
            return fl_fail(
                d, FL_BAD_INPUT, scenes->item[i]->source, 0, 0,
                "%s: --risk needs the error of the model, which is unknown, expected --model fitted, or a sweep that "
                "foldline fit workload predicted",
                scenes->item[i]->w->name);
    return FL_OK;
}

static fl_setting_clocks default_of(const fl_scene *s) {
    const fl_device *dev = &s->platform.node.device[s->platform.node.gpu[0]];
    return (fl_setting_clocks){dev->default_sm_mhz, dev->default_mem_mhz, 0};
}

static double chance_at(const fl_scene *s, const fl_choice *at, double bound) {
    return fl_stated_chance(&s->stated, (fl_setting_clocks){at->sm_mhz, at->mem_mhz, 0}, default_of(s), bound);
}

size_t fl_risk_keep(const fl_scene *s, double bound, double risk, fl_static_point *point, size_t count) {
    size_t kept = 0;
    if (!(risk > 0))
        return count;
    for (size_t i = 0; i < count; i++)
        if (chance_at(s, &point[i].at, bound) <= risk)
            point[kept++] = point[i];
    return kept;
}

fl_risk fl_risk_at(const fl_scene *s, const fl_choice *at, double bound, fl_objective objective) {
    const double delay = objective == FL_MIN_ENERGY ? 1 : objective == FL_MIN_EDP ? 2 : 3;
    return (fl_risk){
        chance_at(s, at, bound),
        fl_stated_regret(&s->stated, (fl_setting_clocks){at->sm_mhz, at->mem_mhz, 0}, default_of(s), bound, delay)};
}
