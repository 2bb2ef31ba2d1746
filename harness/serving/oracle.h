/* The best that a static clock can do for servers of a language model: of every number of servers up to the one asked
 * for, at every clock, the choice of least energy whose latencies meet the targets. Servers that are left out are
 * switched off: they draw nothing. */
#pragma once

#include "harness/study/trial/static_promise.h"

typedef struct fl_serving_point { /* a whole run */
    uint32_t servers;
    bool standard; /* nothing is set: the driver's default */
    fl_choice at;  /* the clocks that it aims at, else those that hold throughout */
    fl_row_result row;
} fl_serving_point;

typedef struct fl_serving_oracle {
    fl_scenes scenes;        /* of 1, 2, ... servers */
    fl_serving_point *point; /* count: by servers, then the default, then ascending clocks */
    size_t count, held;      /* held: points that keep all bounds */
    size_t best;             /* of all static clocks; count where none keeps them */
    size_t *best_of;         /* the same for each number of servers */
} fl_serving_oracle;

typedef struct fl_serving_oracle_options { /* borrowed */
    const fl_scene_options *scene;         /* with a server; servers: at most so many */
    const fl_promises *promises;
    double bound; /* on the slowdown */
    fl_objective objective;
    unsigned threads;
} fl_serving_oracle_options;

/* *out is to be freed, also where it fails. Equal energies: the fewer servers, then the higher clock. */
fl_status fl_serving_oracle_run(const fl_serving_oracle_options *o, fl_serving_oracle *out, fl_diag *d);
void fl_serving_oracle_free(fl_serving_oracle *o);

/* The clocks of a point, as people read them: the memory clock too where the board has several. Returns buf. */
char *fl_serving_oracle_clocks(const fl_serving_oracle *o, const fl_serving_point *p, char *buf, size_t size);
/* For people: a line for each number of servers and its best clock, and what holds of all. */
void fl_serving_oracle_print(const fl_serving_oracle *o, const fl_serving_oracle_options *asked, FILE *out);
/* For machines: every point. */
cJSON *fl_serving_oracle_json(const fl_serving_oracle *o, const fl_serving_oracle_options *asked);
