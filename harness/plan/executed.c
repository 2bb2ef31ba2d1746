/* Imports clock plans that were executed. */
#include "harness/plan/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "harness/base/work/work.h"
#include "sim/pipeline/pipeline.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the runs of one pipeline ---- */

/* How many of the first iterations are on boards that are still cold. Less than iterations, which are 2 at least. */
static size_t fl_executed_left_out(size_t iterations) { return iterations > 5 ? 2 : 1; }

/* The number at `node`, an entry of `array`; refuses one beyond min and max at its place. Unlike a walk with
 * fl_json_next it makes no path for entries that are right: there are many. */
static fl_status fl_executed_real(const fl_json *array, const cJSON *node, double min, double max, double *value,
                                  fl_diag *d) {
    if (cJSON_IsNumber(node) && node->valuedouble >= min && node->valuedouble <= max) {
        *value = node->valuedouble;
        return FL_OK;
    }
    fl_json at = fl_json_first(array); /* only for its place */
    while (at.node && at.node != node)
        at = fl_json_next(array, &at);
    return fl_json_real(&at, min, max, value, d);
}

static void mean_of(const double *x, size_t count, double out[2]) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < count; i++)
        sum += x[i];
    out[0] = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        square += (x[i] - out[0]) * (x[i] - out[0]);
    out[1] = count > 1 ? sqrt(square / (double)(count - 1)) : 0;
}

static fl_status read_series(const fl_json *rank, const char *key, size_t iterations, double *value, fl_diag *d) {
    fl_json all;
    fl_status s = fl_json_get_array(rank, key, &all, d);
    if (!s && fl_json_count(&all) != iterations)
        s = fl_json_fail(&all, d, "%zu iterations, expected %zu", fl_json_count(&all), iterations);
    size_t n = 0;
    for (const cJSON *node = s ? NULL : all.node->child; !s && node; node = node->next, n++) {
        double v = 0;
        s = fl_executed_real(&all, node, 1e-6, 1e9, &v, d);
        if (n >= fl_executed_left_out(iterations))
            value[n - fl_executed_left_out(iterations)] = v;
    }
    return s;
}

/* Adds means and deviations of iter_time and iter_energy of a plan; rank_at: the object of each rank. */
static fl_status fl_executed_add_runs(const fl_json *rank_at, int64_t plan, fl_executed *e, size_t iterations,
                                      fl_diag *d) {
    const size_t kept = iterations - fl_executed_left_out(iterations);
    double *value = fl_must(calloc(4 * kept, sizeof *value)), *longest = value + 2 * kept, *sum = value + 3 * kept,
           whole[2][2];
    const size_t first = e->run_count;
    fl_status s = FL_OK;
    for (uint32_t rank = 0; !s && rank < e->ranks; rank++) {
        s = read_series(&rank_at[rank], "iter_time", iterations, value, d);
        if (!s)
            s = read_series(&rank_at[rank], "iter_energy", iterations, value + kept, d);
        if (s)
            break;
        fl_must_grow(&e->run, &e->run_room, e->run_count + 1, sizeof *e->run);
        fl_executed_run *r = &e->run[e->run_count++];
        *r = (fl_executed_run){.plan = plan, .rank = rank, .iterations = kept};
        mean_of(value, kept, r->time_s);
        mean_of(value + kept, kept, r->energy_j);
        for (size_t i = 0; i < kept; i++) {
            longest[i] = fmax(longest[i], value[i]);
            sum[i] += value[kept + i];
        }
    }
    if (!s) {
        mean_of(longest, kept, whole[0]);
        mean_of(sum, kept, whole[1]);
    }
    for (size_t i = first; !s && i < e->run_count; i++) {
        memcpy(e->run[i].plan_s, whole[0], sizeof whole[0]);
        memcpy(e->run[i].plan_j, whole[1], sizeof whole[1]);
    }
    free(value);
    return s;
}

/* The files of executed plans, as traces/pipeline/pipeline.h reads them. */

static void put_runs(const fl_executed *e, FILE *out) {
    fputs("plan,rank,iter_time_s,iter_time_sd_s,iter_energy_j,iter_energy_sd_j,iterations,plan_time_s,plan_time_sd_s,"
          "plan_energy_j,plan_energy_sd_j\n",
          out);
    for (size_t i = 0; i < e->run_count; i++) {
        const fl_executed_run *r = &e->run[i];
        fprintf(out, "%lld,%u,%.9g,%.7g,%.9g,%.7g,%zu,%.9g,%.7g,%.9g,%.7g\n", (long long)r->plan, r->rank, r->time_s[0],
                r->time_s[1], r->energy_j[0], r->energy_j[1], r->iterations, r->plan_s[0], r->plan_s[1], r->plan_j[0],
                r->plan_j[1]);
    }
}

static void put_parts(const fl_executed *e, FILE *out) {
    fputs("plan,rank,kind,sm_mhz,count,switched,time_mean_s,time_sd_s\n", out);
    for (size_t i = 0; i < e->part_count; i++) {
        const fl_executed_part *p = &e->part[i];
        fprintf(out, "%lld,%u,%s,%d,%zu,%zu,%.7g,%.7g\n", (long long)p->plan, p->rank, fl_pipeline_what_name[p->what],
                p->mhz, p->count, p->switched, p->mean_s, p->samples > 1 ? sqrt(p->square / (p->samples - 1)) : 0);
    }
}

static fl_status write_one(const char *base, const char *ending, const fl_executed *e, fl_diag *d) {
    char *path = fl_must_print("%s.%s", base, ending);
    fl_status s = FL_OK;
    if (*ending == 'p') {
        s = fl_plans_write(path, &e->plans, d);
    } else {
        fl_output *o = fl_output_open(path, d);
        if (o)
            (*ending == 'm' ? put_runs : put_parts)(e, fl_output_file(o));
        s = o ? fl_output_commit(o, d) : d->status;
    }
    free(path);
    return s;
}

fl_status fl_executed_write(const char *base, const fl_executed *e, fl_diag *d) {
    fl_status s = write_one(base, "plans.csv", e, d);
    if (!s)
        s = write_one(base, "measured.csv", e, d);
    return s ? s : write_one(base, "instructions.csv", e, d);
}

/* ---- importing them ---- */

/* The timer of a load also runs inside each receive of an activation. There it takes some 15 us where nothing is
 * loaded; the one stage of an encoder-decoder that does load there takes about 8 ms. What is shorter than this is no
 * load. */
#define LOAD_S 1e-3

typedef struct pair { /* one plan */
    int64_t number;
    const char *path[2];
    cJSON *tree[2];
    fl_json *rank[2]; /* [ranks]: its object in each file */
} pair;
enum { SCHED, PROF };
static const char *const ENDING[] = {".sched.json", ".prof.json"};

bool fl_executed_is(const char *path) { return fl_name_ends(path, ENDING[SCHED]) || fl_name_ends(path, ENDING[PROF]); }

/* ---- pairs ---- */

static int by_number(const void *a, const void *b) {
    const pair *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static fl_status add_file(pair *all, size_t *count, const char *path, fl_diag *d) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const int which = fl_name_ends(path, ENDING[PROF]) ? PROF : SCHED;
    char number[24];
    int64_t n = -1;
    const size_t stem = fl_executed_is(path) ? strlen(name) - strlen(ENDING[which]) : sizeof number;
    if (stem < sizeof number) {
        memcpy(number, name, stem);
        number[stem] = 0;
    }
    if (stem >= sizeof number || fl_int_parse(number, &n) != FL_NUMBER_OK || n < 0)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "among executed plans, expected names such as 2.sched.json and 2.prof.json");
    size_t i = 0;
    while (i < *count && all[i].number != n)
        i++;
    if (i == *count)
        all[(*count)++] = (pair){.number = n};
    if (all[i].path[which])
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "plan %lld is there twice, see %s", (long long)n,
                       all[i].path[which]);
    all[i].path[which] = path;
    return FL_OK;
}

/* Each rank's object, by rank. */
static fl_status open_file(pair *p, int which, uint32_t *ranks, fl_diag *d) {
    fl_status s = fl_json_read_any(p->path[which], &p->tree[which], d);
    if (s)
        return s;
    const fl_json root = fl_json_root(p->tree[which], p->path[which]);
    const size_t count = cJSON_IsArray(root.node) ? fl_json_count(&root) : 0;
    if (!count || count > FL_PIPELINE_RANKS_MAX || (*ranks && count != *ranks))
        return fl_fail(d, FL_BAD_INPUT, p->path[which], 1, 1, "%zu ranks, expected a list of %u to %u", count,
                       *ranks ? *ranks : 1, *ranks ? *ranks : FL_PIPELINE_RANKS_MAX);
    *ranks = (uint32_t)count;
    p->rank[which] = fl_must(calloc(count, sizeof *p->rank[which]));
    for (fl_json e = fl_json_first(&root); !s && e.node; e = fl_json_next(&root, &e)) {
        int64_t rank = 0;
        s = fl_json_object(&e, d);
        if (!s)
            s = fl_json_get_int(&e, "rank", 0, (int64_t)count - 1, &rank, d);
        if (!s && p->rank[which][rank].node)
            s = fl_json_fail(&e, d, "rank %lld again, expected each once", (long long)rank);
        if (!s)
            p->rank[which][rank] = e;
    }
    return s;
}

static void close_pair(pair *p) {
    for (int k = 0; k < 2; k++) {
        cJSON_Delete(p->tree[k]);
        free(p->rank[k]);
        p->tree[k] = NULL;
        p->rank[k] = NULL;
    }
}

/* ---- the order of instructions ---- */

static fl_status lengths_fit(const pair *p, const fl_pipeline_order *o, uint32_t ranks, bool *fit, fl_diag *d) {
    *fit = true;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        fl_json states;
        const fl_status s = fl_json_get_array(&p->rank[SCHED][rank], "power_states", &states, d);
        if (s)
            return s;
        *fit = *fit && fl_json_count(&states) == o->stage[rank % o->stages].count;
    }
    return FL_OK;
}

/* The most stages that divide the ranks and whose lists are as long as those that there are. */
static fl_status find_order(const pair *p, fl_executed *e, fl_pipeline_order *o, fl_diag *d) {
    fl_json all, forward;
    fl_status s = fl_json_get_object(&p->rank[PROF][0], "time_breakdown", &all, d);
    if (!s)
        s = fl_json_get_array(&all, "forward", &forward, d);
    if (s)
        return s;
    const cJSON *last = forward.node->child ? forward.node->child->prev : NULL; /* the first may have one too many */
    const size_t count = cJSON_IsArray(last) ? (size_t)cJSON_GetArraySize(last) : 0;
    if (!count || count > FL_PIPELINE_PARTS_MAX / e->ranks)
        return fl_json_fail(&forward, d, "%zu forwards in the last iteration, expected 1 to %u", count,
                            FL_PIPELINE_PARTS_MAX / e->ranks);
    e->microbatches = (uint32_t)count;
    for (uint32_t stages = e->ranks; !s && stages; stages--) {
        const fl_pipeline shape = {.schedule = FL_PIPELINE_1F1B,
                                   .stages = stages,
                                   .microbatches = e->microbatches,
                                   .chunks = 1,
                                   .data_parallel = e->ranks / stages,
                                   .tensor_parallel = 1,
                                   .ranks = e->ranks};
        bool fit = false;
        if (e->ranks % stages)
            continue;
        s = fl_pipeline_schedule_make(&shape, o, d);
        if (!s)
            s = lengths_fit(p, o, e->ranks, &fit, d);
        if (!s && fit) {
            e->stages = stages;
            return FL_OK;
        }
        fl_pipeline_order_free(o);
    }
    return s ? s
             : fl_fail(d, FL_BAD_INPUT, p->path[SCHED], 1, 1,
                       "lists of instructions as no 1F1B schedule of %u ranks and %u microbatches has them", e->ranks,
                       e->microbatches);
}

/* ---- clocks ---- */

static bool computes(fl_instruction_type t) { return t == FL_DO_FORWARD || t == FL_DO_BACKWARD; }

/* mhz: of each instruction of the rank; what is no forward or backward has that of the one before it, or of the first.
 */
static fl_status read_clocks(const fl_json *rank, const fl_pipeline_list *list, uint32_t r, fl_pipeline_clocks *c,
                             int32_t *mhz, fl_diag *d) {
    fl_json states;
    fl_status s = fl_json_get_array(rank, "power_states", &states, d);
    if (!s && fl_json_count(&states) != list->count)
        s = fl_json_fail(&states, d, "%zu clocks, expected %zu, as the lists of the first plan", fl_json_count(&states),
                         list->count);
    const cJSON *node = s ? NULL : states.node->child;
    int32_t last = 0;
    for (size_t i = 0; !s && i < list->count; i++, node = node->next) {
        double clock = 0;
        const fl_instruction *in = &list->item[i];
        s = fl_executed_real(&states, node, 1, 1e5, &clock, d);
        if (!s && clock != floor(clock))
            s = fl_json_fail(&states, d, "a clock of %g MHz, expected whole ones", clock);
        if (!s && computes(in->type)) {
            *fl_pipeline_clock(c, r, in->type == FL_DO_BACKWARD, 0, (uint32_t)in->microbatch) = clock;
            for (size_t k = 0; !last && k < i; k++)
                mhz[k] = (int32_t)clock;
            last = (int32_t)clock;
        }
        mhz[i] = last;
    }
    return s;
}

/* ---- times of instructions ---- */

typedef struct adding {
    fl_executed *e;
    const fl_pipeline_list *list;
    const int32_t *mhz;
    int64_t plan;
    uint32_t rank;
    size_t first; /* of its parts */
} adding;

static void add_sample(adding *a, fl_pipeline_what what, int32_t mhz, bool switched, bool counted, double seconds) {
    fl_executed *e = a->e;
    size_t i = a->first;
    while (i < e->part_count && (e->part[i].what != what || e->part[i].mhz != mhz))
        i++;
    if (i == e->part_count) {
        fl_must_grow(&e->part, &e->part_room, e->part_count + 1, sizeof *e->part);
        e->part[e->part_count++] = (fl_executed_part){.plan = a->plan, .rank = a->rank, .what = what, .mhz = mhz};
    }
    fl_executed_part *p = &e->part[i];
    const double off = seconds - p->mean_s; /* Welford, "Note on a method for calculating corrected sums", 1962 */
    p->samples++;
    p->mean_s += off / p->samples;
    p->square += off * (seconds - p->mean_s);
    p->count += counted;
    p->switched += counted && switched;
}

static bool receives_act(fl_instruction_type t) { return t == FL_DO_RECV_ACT || t == FL_DO_SEND_GRAD_RECV_ACT; }

/* Which instructions of the list the times of a kind are of, in order. */
static bool is_of(fl_pipeline_what what, fl_instruction_type t, bool in_receives) {
    return what == FL_PIPELINE_FORWARD    ? t == FL_DO_FORWARD
           : what == FL_PIPELINE_BACKWARD ? t == FL_DO_BACKWARD
                                          : t == FL_DO_LOAD || (in_receives && receives_act(t));
}

static fl_status add_iteration(adding *a, fl_pipeline_what what, const fl_json *times, bool counted, fl_diag *d) {
    size_t own = 0, with = 0, i = 0;
    const fl_pipeline_list *l = a->list;
    if (!cJSON_IsArray(times->node))
        return fl_json_fail(times, d, "expected a list of seconds");
    for (size_t k = 0; k < l->count; k++) {
        own += is_of(what, l->item[k].type, false);
        with += is_of(what, l->item[k].type, true);
    }
    const size_t count = fl_json_count(times);
    const bool in_receives = count != own;
    if (count && count != own && count != with)
        return fl_json_fail(times, d, "%zu times of %s, expected %zu", count, fl_pipeline_what_name[what], own);
    const cJSON *node = times->node->child;
    fl_status s = FL_OK;
    int32_t before = 0;
    for (size_t k = l->count; k-- > 0 && !before;) /* an iteration comes after another of the same plan */
        before = computes(l->item[k].type) ? a->mhz[k] : 0;
    for (; !s && node && i < l->count; i++) {
        const fl_instruction_type t = l->item[i].type;
        double seconds;
        if (is_of(what, t, in_receives)) {
            s = fl_executed_real(times, node, 0, 1e6, &seconds, d);
            if (!s)
                add_sample(a, receives_act(t) ? FL_PIPELINE_LOAD_IN_RECV : what, a->mhz[i],
                           computes(t) && a->mhz[i] != before, counted, seconds);
            node = node->next;
        }
        before = computes(t) ? a->mhz[i] : before;
    }
    return s;
}

static fl_status add_times(adding *a, const fl_json *rank, size_t iterations, fl_diag *d) {
    static const struct {
        const char *key;
        fl_pipeline_what what;
    } KIND[] = {{"forward", FL_PIPELINE_FORWARD}, {"backward", FL_PIPELINE_BACKWARD}, {"load", FL_PIPELINE_LOAD}};
    fl_json all, kind;
    fl_status s = fl_json_get_object(rank, "time_breakdown", &all, d);
    a->first = a->e->part_count;
    for (size_t k = 0; !s && k < 3; k++) {
        if (KIND[k].what == FL_PIPELINE_LOAD && !fl_json_has(&all, "load"))
            continue; /* some were released without */
        s = fl_json_get_array(&all, KIND[k].key, &kind, d);
        if (!s && fl_json_count(&kind) != iterations)
            s = fl_json_fail(&kind, d, "%zu iterations, expected %zu as iter_time has", fl_json_count(&kind),
                             iterations);
        size_t n = 0;
        for (fl_json e = s ? (fl_json){0} : fl_json_first(&kind); !s && e.node; e = fl_json_next(&kind, &e), n++)
            if (n >= fl_executed_left_out(iterations))
                s = add_iteration(a, KIND[k].what, &e, n == fl_executed_left_out(iterations), d);
    }
    size_t kept = a->first;
    for (size_t i = a->first; i < a->e->part_count; i++)
        if (a->e->part[i].what != FL_PIPELINE_LOAD_IN_RECV || a->e->part[i].mean_s >= LOAD_S)
            a->e->part[kept++] = a->e->part[i];
    a->e->part_count = kept;
    return s;
}

/* ---- all of it ---- */

static fl_status read_pair(pair *p, fl_executed *e, fl_pipeline_order *o, fl_diag *d) {
    fl_json times;
    fl_pipeline_clocks c = {0};
    int32_t *mhz = NULL;
    fl_status s = FL_OK;
    for (int k = 0; !s && k < 2; k++)
        s = p->path[k] ? open_file(p, k, &e->ranks, d)
                       : fl_fail(d, FL_BAD_INPUT, p->path[1 - k], 0, 0, "stands alone, expected %lld%s beside it",
                                 (long long)p->number, ENDING[k]);
    if (!s && !o->stage)
        s = find_order(p, e, o, d);
    if (!s)
        s = fl_json_get_array(&p->rank[PROF][0], "iter_time", &times, d);
    const size_t iterations = s ? 0 : fl_json_count(&times);
    if (!s && iterations < 2)
        s = fl_json_fail(&times, d, "%zu iterations, expected at least 2: the first is left out", iterations);
    const fl_pipeline shape = {.ranks = e->ranks, .chunks = 1, .microbatches = e->microbatches};
    if (!s)
        s = fl_pipeline_clocks_new(&shape, &c, d);
    for (uint32_t rank = 0; !s && rank < e->ranks; rank++) {
        const fl_pipeline_list *list = &o->stage[rank % o->stages];
        free(mhz);
        mhz = fl_must(calloc(list->count + 1, sizeof *mhz));
        adding a = {.e = e, .list = list, .mhz = mhz, .plan = p->number, .rank = rank};
        s = read_clocks(&p->rank[SCHED][rank], list, rank, &c, mhz, d);
        if (!s)
            s = add_times(&a, &p->rank[PROF][rank], iterations, d);
    }
    if (!s)
        s = fl_executed_add_runs(p->rank[PROF], p->number, e, iterations, d);
    if (!s)
        s = fl_plans_add(&e->plans, p->number, &c, d);
    free(mhz);
    fl_pipeline_clocks_free(&c);
    return s;
}

fl_status fl_executed_read(const fl_texts *files, fl_executed *e, fl_diag *d) {
    pair *all = fl_must(calloc(files->count + 1, sizeof *all));
    fl_pipeline_order o = {0};
    size_t count = 0;
    *e = (fl_executed){0};
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < files->count; i++)
        s = add_file(all, &count, files->item[i], d);
    if (!s)
        qsort(all, count, sizeof *all, by_number);
    for (size_t i = 0; !s && i < count; i++) {
        s = read_pair(&all[i], e, &o, d);
        close_pair(&all[i]);
    }
    fl_pipeline_order_free(&o);
    free(all);
    if (s)
        fl_executed_free(e);
    return s;
}

void fl_executed_free(fl_executed *e) {
    fl_plans_free(&e->plans);
    free(e->run);
    free(e->part);
    *e = (fl_executed){0};
}
