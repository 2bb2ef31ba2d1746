#include "policies/tightrope_rest.h"

#include <math.h>

#define TURNED 0.03 /* rates of two listens that differ by more show another part of the program */

fl_tightrope_rates fl_tightrope_heard_rates(const fl_tightrope_heard *h, int64_t end_ns, int64_t to_ns, double work_s,
                                            double certain, double cost, double record_s) {
    const double length_s = (double)(end_ns - h->from_ns) * 1e-9, paid_s = h->count * record_s;
    if (!h->from_ns || h->overlap_s > 0 || !(length_s > 0) || isnan(work_s))
        return (fl_tightrope_rates){NAN, NAN};
    const double edges_s = (double)(h->from_ns - h->begin_ns + to_ns - end_ns) * 1e-9;
    const double idle_s = fmax(0, length_s - h->kernels_s);
    const double slow_s = (record_s > 0 ? fmax(0, h->kernels_s - paid_s) : h->kernels_s / (1 + cost)) + idle_s;
    const double fast_s = (record_s > 0 ? fmax(0, work_s - paid_s) : work_s / (1 + cost)) + idle_s;
    if (!(slow_s > 0))
        return (fl_tightrope_rates){NAN, NAN};
    const double whole = fmin(1, fast_s / slow_s);
    return (fl_tightrope_rates){whole, (whole * slow_s + certain * edges_s) / (slow_s + edges_s)};
}

void fl_tightrope_rest_off(fl_tightrope_rest *r, int64_t end_ns, int64_t now_ns, double rate) {
    r->stage = FL_TIGHTROPE_RESTS;
    r->end_ns = end_ns, r->off_ns = now_ns;
    r->before = rate;
}

void fl_tightrope_rest_on(fl_tightrope_rest *r, int64_t now_ns) {
    r->stage = FL_TIGHTROPE_WAKES;
    r->on_ns = now_ns;
    r->heard = (fl_tightrope_heard){.begin_ns = now_ns};
}

void fl_tightrope_rest_over(fl_tightrope_rest *r, int64_t heard_ns, double certain_s) {
    const double length_s = (double)(heard_ns - r->end_ns) * 1e-9;
    const double between_s = r->stage == FL_TIGHTROPE_WAKES ? (double)(r->on_ns - r->off_ns) * 1e-9 : 0;
    r->stage = FL_TIGHTROPE_LISTENS;
    r->open_s = between_s, r->open_certain_s = length_s > 0 ? certain_s * between_s / length_s : 0;
    r->all_s += length_s, r->certain_s += certain_s;
}

double fl_tightrope_rest_judge(fl_tightrope_rest *r, fl_tightrope_rates after, double spread, double heard_s) {
    const double length_s = r->open_s, certain_s = r->open_certain_s;
    r->open_s = r->open_certain_s = 0;
    if (!(length_s > certain_s) || isnan(after.least) || isnan(r->before))
        return 0; /* none to judge */
    const double off = fabs(after.least - r->before), turned = off > fmax(TURNED, 3 * sqrt(2 * spread / heard_s));
    const double worth_s = length_s * (turned ? fmin(after.least, r->before) : (after.least + r->before) / 2);
    if (worth_s <= certain_s)
        return 0;
    r->certain_s -= certain_s;
    r->judged.certain_s += certain_s, r->judged.worth_s += worth_s;
    r->judged.less_s += length_s * after.whole - worth_s;
    r->judged.square += turned ? 0 : length_s * (length_s + heard_s) / 2 * off * off;
    r->costliest_s = fmax(r->costliest_s, worth_s - certain_s);
    return length_s;
}

double fl_tightrope_rest_open(const fl_tightrope_rest *r, int64_t now_ns) {
    return r->stage == FL_TIGHTROPE_LISTENS ? 0 : (double)(now_ns - r->end_ns) * 1e-9;
}

void fl_tightrope_rest_window(fl_tightrope_rest *r) { r->before_window = r->judged; }

void fl_tightrope_rest_forget(fl_tightrope_rest *r) {
    r->certain_s += r->judged.certain_s - r->before_window.certain_s;
    r->judged = r->before_window;
}

double fl_tightrope_rest_credit(const fl_tightrope_rest *r, double deviations) {
    const fl_tightrope_judged *j = &r->judged;
    const double held_s = deviations * sqrt(j->square) + FL_TIGHTROPE_ESCAPES * r->costliest_s;
    return r->certain_s - j->less_s - fmin(held_s, j->worth_s - j->certain_s);
}
