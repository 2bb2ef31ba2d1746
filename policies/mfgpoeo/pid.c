#include "policies/mfgpoeo/pid.h"

#include <math.h>

/* Compounded gains grow from call to call; only they have a limit. */
static double compound(fl_mfg_pid *s, double kp, double factor) {
    const double gain = factor * (s->compounded ? s->gain : kp);
    s->compounded = 1;
    return fmin(gain, 8);
}

/* Neither this loss nor the one before says that a lower clock costs anything. */
static int is_flat(const fl_mfg_pid *s, const fl_mfg_measured *m) {
    if (!s->calls || !(m->loss < 0.2 * m->bound && s->loss < 0.2 * m->bound))
        return 0;
    if (m->below_mhz > 0.5)
        return 1;
    const double step = m->gear - s->gear[0];
    return step != 0 && (m->loss - s->loss) / step > -3 * m->bound / (m->gears - 1.0);
}

/* The gain of this call: the first row that holds. */
static double gain_of(fl_mfg_pid *s, double kp, const fl_mfg_measured *m, double err) {
    const double c = m->bound;
    if (!s->calls)
        return 0.7 * kp;
    if (is_flat(s, m))
        return compound(s, kp, 1.5);
    if (s->calls >= 2 && s->gear[1] > s->gear[0] && s->gear[0] > m->gear && m->loss < 0.5 * c)
        return compound(s, kp, 1.75);
    if (err > 0 && err < 0.04)
        return 0.75 * kp;
    if (err > 0 && err < 0.1 && fabs(m->loss) > 2 * c)
        return 2.2 * kp;
    if (err > 0 && err < 0.4 && fabs(m->loss) > 3 * c)
        return 2.5 * kp;
    if (err <= 0 && -err < 0.003)
        return 4 * kp;
    if (err <= 0 && -err < 0.006)
        return 2.5 * kp;
    if (err <= 0 && -err < 0.025)
        return 1.75 * kp;
    return kp;
}

/* At least one gear in the direction of the error; none where the loss is nearly the bound. */
static double towards_bound(double next, const fl_mfg_pid *s, const fl_mfg_measured *m, double err) {
    if (err < 0 && next <= m->gear)
        next = m->gear + 1.0;
    if (err > 0 && next >= m->gear)
        next = m->gear - 1.0;
    return s->calls && err > 0 && err < 0.01 * m->bound ? m->gear : next;
}

int32_t fl_mfg_pid_next(fl_mfg_pid *s, const fl_mfg_gains *k, const fl_mfg_measured *m) {
    const double err = m->bound - m->loss, gain = gain_of(s, k->kp, m, err);
    const int turned = s->calls && err * s->err < 0;
    double delta = gain * err;
    s->integral = turned ? err : s->integral + err;
    if (s->calls && !turned)
        delta += k->ki * s->integral;
    const double rise = m->loss - s->loss;
    if (s->calls && rise * err < 0 && fabs(rise) > 0.5 * m->bound) /* on the way to the bound: it damps */
        delta += k->kd * rise;
    const double next = towards_bound(round(m->gear * (1 - delta)), s, m, err), top = m->gears - 1.0;
    s->err = err;
    s->loss = m->loss;
    s->gain = gain;
    s->gear[1] = s->gear[0];
    s->gear[0] = m->gear;
    s->calls++;
    return (int32_t)(next < 0 ? 0 : next > top ? top : next);
}
