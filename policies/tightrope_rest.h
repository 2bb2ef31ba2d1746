/* Rests of kernel records: what a time is credited in which they are off.
 *
 * Records cost time while they are on. So at a lower clock the policy listens for a while, lets records rest for a
 * longer while of random length, and listens again. What the kernels of the two listens were slowed by is what the rest
 * is credited. Nothing that is read bounds what ran in one rest. But the program does not know when the policy listens,
 * so over many rests the listens are a sample of them, and the ledger holds back what such a sample may miss:
 *
 * - Where the two listens differ clearly, the program turned to something else in between: the lesser rate counts.
 * - Where they differ a little, the sum of rests has the error that these differences show.
 * - What no listen meets can be rare only. A share q of the time escapes n listens at random with chance
 *   (1 - q)^n < exp(-n q), so q n <= 5 but for a chance of 0.7 %: what is lost unseen is 5 times what the costliest
 *   rest can lose, however many there are.
 *
 * Until the listen after it ends, a rest counts as much as is certain. */
#pragma once

#include <stdint.h>

#define FL_TIGHTROPE_ESCAPES 5 /* rests whose worst is held back */

typedef struct fl_tightrope_heard {     /* one listen, at one clock */
    int64_t begin_ns, from_ns;          /* when it began; first start of a kernel, 0: none began */
    double count, kernels_s, overlap_s; /* its kernels: number, durations; beside each other */
} fl_tightrope_heard;

typedef struct fl_tightrope_rates { /* work per second without records, in seconds at the top clock; NAN: not known */
    double whole, least;            /* of the time in which kernels ran as a whole; of all of the listen, at least */
} fl_tightrope_rates;

typedef struct fl_tightrope_judged { /* rests between two listens that both showed enough */
    double worth_s, certain_s;
    double less_s; /* by how much they are worth less than by the listens after them */
    double square; /* of seconds by which they may be wrong */
} fl_tightrope_judged;

enum { FL_TIGHTROPE_LISTENS, FL_TIGHTROPE_RESTS, FL_TIGHTROPE_WAKES };

typedef struct fl_tightrope_rest { /* all zero is the beginning */
    int64_t stage;                 /* records are off in RESTS; in WAKES they are on, and no whole kernel has begun */
    int64_t end_ns;                /* end of the last kernel that counted */
    int64_t off_ns, on_ns;         /* when records went off, and on again */
    fl_tightrope_heard heard;      /* the present listen */
    double before;                 /* rate of the listen before the rest */
    double open_s, open_certain_s; /* the rest that is over and not judged */
    double all_s;                  /* of all that are over */
    double certain_s;              /* of those of these that are not judged */
    fl_tightrope_judged judged, before_window; /* all of them; those of earlier windows */
    double costliest_s;                        /* most that one of them was credited beyond what is certain */
} fl_tightrope_rest;

/* What the listen until to_ns shows, whose last kernel ended at end_ns. work_s: what its kernels take at the top clock
 * with records; certain: what is certain of a second; cost, record_s: as in fl_tightrope_work. What ran at its edges
 * may be a kernel of which it has no record, and long kernels are cut by an edge more often than short ones: so no more
 * than is certain counts there. */
fl_tightrope_rates fl_tightrope_heard_rates(const fl_tightrope_heard *h, int64_t end_ns, int64_t to_ns, double work_s,
                                            double certain, double cost, double record_s);

/* Records go off, after a listen of that least rate; the last kernel ended at end_ns. Until a kernel begins after they
 * are on again none counts. */
void fl_tightrope_rest_off(fl_tightrope_rest *r, int64_t end_ns, int64_t now_ns, double rate);
void fl_tightrope_rest_on(fl_tightrope_rest *r, int64_t now_ns);

/* That kernel began at heard_ns, or the ledger begins anew then: no time after it belongs to the rest, of which so much
 * is certain. */
void fl_tightrope_rest_over(fl_tightrope_rest *r, int64_t heard_ns, double certain_s);

/* What the listen after it shows, which took heard_s; spread: of kernels, as in fl_tightrope_work. Returns for how long
 * the kernels of that listen are to be taken for those of the rest, in seconds without records; 0: only what is certain
 * of the rest counts. Of the time from the last kernel before it to off_ns, and from on_ns to the first one after it,
 * no more than is certain ever counts. */
double fl_tightrope_rest_judge(fl_tightrope_rest *r, fl_tightrope_rates after, double spread, double heard_s);

/* Since end_ns, where no record counts; 0 while listening. */
double fl_tightrope_rest_open(const fl_tightrope_rest *r, int64_t now_ns);

/* Seconds at the top clock, beside those of the kernels that are taken for theirs, that all rests that are over are
 * worth at least. deviations: standard errors to hold back. */
double fl_tightrope_rest_credit(const fl_tightrope_rest *r, double deviations);

/* A window begins. */
void fl_tightrope_rest_window(fl_tightrope_rest *r);

/* Of the window's rests only what is certain counts: what was heard in it was held against a wrong reference. */
void fl_tightrope_rest_forget(fl_tightrope_rest *r);
