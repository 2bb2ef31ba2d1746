#include "policies/tightrope/certain.h"

#include <math.h>

void fl_tightrope_certain_cut(fl_tightrope_certain *c, int64_t then_ns) {
    while (c->count && c->from_ns[c->count - 1] > then_ns)
        c->count--;
}

void fl_tightrope_certain_from(fl_tightrope_certain *c, int64_t from_ns, double worth) {
    fl_tightrope_certain_cut(c, from_ns - 1);
    if (c->count == FL_TIGHTROPE_SPANS) {
        c->worth[0] = fmin(c->worth[0], c->worth[1]);
        for (uint32_t i = 1; i + 1 < FL_TIGHTROPE_SPANS; i++)
            c->from_ns[i] = c->from_ns[i + 1], c->worth[i] = c->worth[i + 1];
        c->count--;
    }
    c->from_ns[c->count] = from_ns;
    c->worth[c->count++] = worth;
}

double fl_tightrope_certain_between(const fl_tightrope_certain *c, int64_t from_ns, int64_t to_ns) {
    double sum = 0;
    for (uint32_t i = c->count; i-- > 0 && to_ns > from_ns;) {
        if (to_ns <= c->from_ns[i])
            continue;
        const int64_t begin =
            i && c->from_ns[i] > from_ns ? c->from_ns[i] : from_ns; /* the first holds for all before */
        sum += (double)(to_ns - begin) * 1e-9 * c->worth[i];
        to_ns = begin;
    }
    return sum;
}
