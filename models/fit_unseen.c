#include "models/fit_unseen.h"
#include "models/time.h"

#include <math.h>
#include <stdlib.h>

#define FOLDS 4 /* each leaves every fourth point out */

static fl_model_status error_at(const fl_device *dev, const fl_load *l, const fl_fit_point *p, double *time_pct,
                                double *power_pct) {
    double core = 0, memory = 0;
    fl_base base;
    fl_model_status s = fl_power_dynamic(dev, l->alpha, l->beta, p->sm_mhz, p->mem_mhz, &core, &memory);
    if (s == FL_MODEL_OK)
        s = fl_base_make(dev, p->sm_mhz, p->mem_mhz, &base);
    if (s != FL_MODEL_OK)
        return s;
    const double time =
        fl_time_at(l->tc, l->tm, l->tl, l->sharpness, l->ref_sm_mhz / p->sm_mhz, l->ref_mem_mhz / p->mem_mhz);
    *time_pct = 100 * fabs(time / p->time_s - 1);
    *power_pct = 100 * fabs((core + memory + base.total_mw / 1000.0) / p->power_w - 1);
    return FL_MODEL_OK;
}

fl_model_status fl_fit_unseen(const fl_device *dev, const fl_fit_point *point, size_t count, fl_fit_unseen_error *out) {
    *out = (fl_fit_unseen_error){NAN, NAN};
    if (count < 3)
        return FL_MODEL_NO_FIT;
    fl_fit_point *kept = malloc(count * sizeof *kept);
    double time_sum = 0, power_sum = 0;
    size_t tested = 0;
    fl_model_status s = kept ? FL_MODEL_OK : FL_MODEL_NO_MEMORY;
    for (size_t fold = 0; s == FL_MODEL_OK && fold < FOLDS && fold < count; fold++) {
        fl_fit_result r;
        size_t n = 0;
        for (size_t i = 0; i < count; i++)
            if (i % FOLDS != fold)
                kept[n++] = point[i];
        s = fl_fit_workload(dev, kept, n, n - 1, &r);
        for (size_t i = fold; s == FL_MODEL_OK && i < count; i += FOLDS) {
            double time = 0, power = 0;
            s = error_at(dev, &r.load, &point[i], &time, &power);
            time_sum += time;
            power_sum += power;
            tested++;
        }
    }
    free(kept);
    if (s == FL_MODEL_OK)
        *out = (fl_fit_unseen_error){time_sum / (double)tested, power_sum / (double)tested};
    return s;
}
