/* tightrope: kernels told apart by the kernel that ran before them.
 *
 * A program may run kernels of one kind in several of its parts, with other data, so that they take other times there.
 * Then the mean of the kind is that of no part, and visits to the top clock differ. What ran before, the last kernel of
 * another kind, is often another one in each part: so each kind is also counted by that. Where the visits of a kind
 * differ and those of the kind after each of the others do not, the latter tell the work. */
#pragma once

#include "policies/tightrope_kind.h"

enum { FL_TIGHTROPE_CONTEXTS = 2048 }; /* kernels of further ones count by their kind alone */

typedef struct fl_tightrope_context {
    uint32_t kind, after; /* that ran, and before it, both + 1 */
    uint32_t next;        /* 1 + index of another one of the kind; 0: none */
    fl_tightrope_kind known;
} fl_tightrope_context;

typedef struct fl_tightrope_contexts { /* all zero is the beginning */
    uint32_t last, before;             /* kind + 1 of the last kernel, and of the last of another kind; 0: not known */
    uint32_t count;
    uint16_t place[2 * FL_TIGHTROPE_CONTEXTS]; /* 1 + index into at, by hash; 0: free */
    uint16_t first[FL_TIGHTROPE_KINDS];        /* 1 + index of one of the kind; 0: none */
    fl_tightrope_context at[FL_TIGHTROPE_CONTEXTS];
} fl_tightrope_contexts;

/* A kernel of this kind ended after the last one. What it counts for, or NULL where nothing tells what ran before, or
 * no place is left. */
fl_tightrope_kind *fl_tightrope_context_next(fl_tightrope_contexts *c, uint32_t kind);

/* What ran before the next kernel is not known. */
void fl_tightrope_context_break(fl_tightrope_contexts *c);

/* A window at the top clock ends. */
void fl_tightrope_context_visited(fl_tightrope_contexts *c);

/* What was learned at the top clock stays; of kernels elsewhere nothing. */
void fl_tightrope_context_keep(fl_tightrope_contexts *c);

/* What kernels of a kind would have taken at the top clock, at least, by what ran before each; `sum` is by the kind
 * alone, and stays where that is more. */
void fl_tightrope_context_credit(const fl_tightrope_contexts *c, const fl_tightrope_kind *all, uint32_t kind,
                                 double sigmas, fl_tightrope_sum *sum);
