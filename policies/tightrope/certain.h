/* What is certain of a time's work, whatever ran in it: by the two facts of tightrope_curve.h a second at clock f is
 * worth f / top of a second at the top clock at least, but for the tolerance. A kernel may begin at one clock and end
 * at another, several windows later: its worth is the sum over them. */
#pragma once

#include <stdint.h>

enum { FL_TIGHTROPE_SPANS = 32 };

typedef struct fl_tightrope_certain { /* all zero is the beginning */
    int64_t from_ns[FL_TIGHTROPE_SPANS];
    double worth[FL_TIGHTROPE_SPANS]; /* of a second, from then on until the next */
    uint32_t count;
} fl_tightrope_certain;

/* From then on a second is worth so much; what was said of that time before is forgotten. Of what is long past only the
 * least worth is remembered. */
void fl_tightrope_certain_from(fl_tightrope_certain *c, int64_t from_ns, double worth);

/* Forgets what begins after then. */
void fl_tightrope_certain_cut(fl_tightrope_certain *c, int64_t then_ns);

/* Seconds at the top clock. */
double fl_tightrope_certain_between(const fl_tightrope_certain *c, int64_t from_ns, int64_t to_ns);
