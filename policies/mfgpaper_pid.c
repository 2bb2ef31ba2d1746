#include "policies/mfgpaper_pid.h"

#include <math.h>

/* The factor of K_P and the largest K_P, as in the released program. */
#define FACTOR_MIN 0.7
#define FACTOR_MAX 4
#define KP_MAX 8
#define RAISE 1.5       /* of the factor while the loss stays far below the bound, or the curve is flat */
#define RAISE_MORE 1.75 /* where both hold */
/* Assumed: neither the paper nor the released program has them. All are relative to the bound. */
#define FAR 0.5  /* a loss below this share of the bound is far below it */
#define FLAT 0.1 /* a change of loss below this share from one gear to another is flat */
#define NEAR 1.2 /* a loss up to this many times the bound is just past it: factor 1; beyond, FACTOR_MIN */

/* The schedule of Kp. One gain does not do: where time follows the clock, 2.8 overshoots more than twice; on a flat
 * curve it creeps. */
static double schedule(const fl_mfp_pid *s, double bound, double loss, int32_t gear) {
    const double factor = s->factor > 0 ? s->factor : 1;
    if (loss > bound) {
        if (s->count && s->loss > s->bound) /* the step before was too short */
            return factor * RAISE;
        return loss > NEAR * bound ? FACTOR_MIN : 1;
    }
    if (!s->count)
        return factor;
    if (s->loss > s->bound) /* back from beyond the bound: the smallest steps */
        return FACTOR_MIN;
    const int far = loss < FAR * bound;
    const int flat = gear != s->before && fabs(loss - s->loss) < FLAT * bound;
    return factor * (far && flat ? RAISE_MORE : far || flat ? RAISE : 1);
}

static double scheduled(const fl_mfp_pid_rules *r, fl_mfp_pid *s, double bound, double loss, int32_t gear) {
    const double err = bound - loss;
    const int turned = s->count && (err > 0) != (s->err > 0);
    double factor = schedule(s, bound, loss, gear);
    factor = s->factor = fmin(fmax(factor, FACTOR_MIN), FACTOR_MAX);
    s->integral = turned ? err : s->integral + err;
    double u = fmin(r->kp * factor, KP_MAX) * err;
    if (!turned)
        u += r->ki * s->integral;
    if (s->count && fabs(err - s->err) > r->swing * bound) /* errors are shares of the bound: Alg. 4 line 10 */
        u += r->kd * (err - s->err);
    const double next = rint(gear * (1 - u));
    return err > 0 ? fmin(next, gear - 1) : fmax(next, gear + 1); /* one gear towards the bound at least */
}

/* Eq. 13 to the letter: a fraction becomes gears, so u hardly ever reaches one. */
static double printed(const fl_mfp_pid_rules *r, fl_mfp_pid *s, double bound, double loss, int32_t gear) {
    const double err = loss - bound;
    s->integral += err;
    return rint(gear + r->kp * err + r->ki * s->integral + r->kd * (err + s->err)); /* s->err is bound - loss */
}

/* Algorithm 4 lines 3-9, "roll back or increase the current clock gear". By the listing gear_{k-1} is the gear that was
 * just measured (line 11 keeps what is set next), so that a controller about to move stays, though it breaks the bound.
 * The scheduled form goes by the text: to the gear before, or, where there is none that is nearer to the bound, one up.
 */
static double back(int64_t form, const fl_mfp_pid *s, int32_t gear, double next, int violated) {
    if (form == FL_MFP_PID_PRINTED)
        return next != gear ? gear : gear + 1;
    const int useful = s->count && s->before != gear && (violated ? s->before > gear : s->err > 0);
    return useful ? s->before : fmax(next, gear + 1);
}

static int32_t limited(double gear, int32_t top) { return gear <= 0 ? 0 : gear >= top ? top : (int32_t)gear; }

int32_t fl_mfp_pid_next(const fl_mfp_pid_rules *r, fl_mfp_pid *s, double bound, double loss, double objective,
                        int32_t gear, int32_t top) {
    double next = r->form == FL_MFP_PID_PRINTED ? printed(r, s, bound, loss, gear) : scheduled(r, s, bound, loss, gear);
    const int violated = loss > bound, worse = s->count && objective > s->objective;
    if (r->back == FL_MFP_BACK_AND ? violated && worse : violated || worse)
        next = back(r->form, s, gear, next, violated);
    s->err = bound - loss;
    s->loss = loss;
    s->bound = bound;
    s->objective = objective;
    s->before = gear;
    s->count++;
    return limited(next, top);
}
