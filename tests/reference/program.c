#include "tests/reference/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_NS INT64_C(100000000)

#define WORDS_OF(id, words) words,
const char *const ref_branch_words[REF_BRANCH_COUNT] = {REF_BRANCHES(WORDS_OF)};
uint64_t ref_reached[REF_BRANCH_COUNT];

static ref_program *programs; /* of all instances, newest first */

/* ---- steps ---- */

void ref_next_step(ref_program *p) {
    sem_post(&p->done);
    sem_wait(&p->go);
    if (p->closing)
        pthread_exit(NULL);
}

static int64_t nanoseconds(double seconds) { return llround(seconds * 1e9); }

void ref_wait(ref_program *p, double seconds) {
    const int64_t began = p->now_ns;
    while (p->now_ns - began < nanoseconds(seconds))
        ref_next_step(p);
}

void ref_set(ref_program *p, int control, double value) { p->wanted[control] = value; }
void ref_reset_limit(ref_program *p) { p->reset_limit = true; }
double ref_sm_mhz(const ref_program *p, int gear) { return p->gpu->sm.mhz[gear]; }
void ref_set_sm_gear(ref_program *p, int gear) { ref_set(p, FL_SET_SM_MHZ, ref_sm_mhz(p, gear)); }
void ref_set_memory_gear(ref_program *p, int gear) { ref_set(p, FL_SET_MEM_MHZ, p->gpu->mem.mhz[gear]); }

/* ---- one window ---- */

/* U > 0 counts as busy. A reading that is not known is no sample. Returns whether there was one. */
static bool busy_sample(const ref_program *p, bool *busy) {
    const fl_gpu_sample *g = &p->sample->gpu[p->index];
    *busy = g->value[FL_GPU_UTIL_GPU_PCT] > 0;
    return fl_gpu_known(g, FL_GPU_UTIL_GPU_PCT);
}

/* "until 7 of the last 15 are busy": samples from the next step on. */
static void wait_until_busy(ref_program *p) {
    bool last[15] = {false}, busy;
    for (int taken = 0, count = 0; count < 7;) {
        ref_next_step(p);
        if (!busy_sample(p, &busy))
            continue;
        count += busy - last[taken % 15];
        last[taken++ % 15] = busy;
    }
}

/* "Idle gate first: U every 0.1 s; passes at 5 busy of at most 15 samples; else SM limit to gear 0 until 7 of the last
 * 15 are busy, limits back, 1 s." */
void ref_idle_gate(ref_program *p, bool untouched) {
    bool busy;
    for (int taken = 0, count = 0;; ref_next_step(p)) {
        if (!busy_sample(p, &busy))
            continue;
        taken++;
        count += busy;
        if (count == 5) {
            ref_reach(REF_GATE_PASSED);
            return;
        }
        if (taken == 15)
            break;
    }
    ref_reach(untouched ? REF_GATE_UNTOUCHED : REF_GATE_SLOWED);
    const double limit = p->wanted[FL_SET_SM_MHZ];
    if (!untouched)
        ref_set_sm_gear(p, 0);
    wait_until_busy(p);
    ref_set(p, FL_SET_SM_MHZ, limit);
    ref_wait(p, 1);
}

static ref_data *new_data(ref_program *p) {
    ref_owned *o = calloc(1, sizeof *o);
    if (!o) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    o->next = p->owned;
    p->owned = o;
    return &o->data;
}

void ref_forget(ref_program *p, ref_data *w) {
    for (ref_owned **o = &p->owned; *o; o = &(*o)->next)
        if (&(*o)->data == w) {
            ref_owned *found = *o;
            *o = found->next;
            ref_data_free(w);
            free(found);
            return;
        }
}

/* "NVML every 100 ms; samples with U = 0 enter no mean; power is cut to whole watts and averaged." */
static void take_sample(const ref_program *p, ref_data *w) {
    static const int signal[REF_READINGS] = {FL_GPU_POWER_W, FL_GPU_SM_MHZ, FL_GPU_MEM_MHZ, FL_GPU_UTIL_GPU_PCT,
                                             FL_GPU_UTIL_MEM_PCT};
    const fl_gpu_sample *g = &p->sample->gpu[p->index];
    for (int i = 0; i < REF_READINGS; i++)
        if (!fl_gpu_known(g, signal[i]))
            return;
    if (!(g->value[FL_GPU_UTIL_GPU_PCT] > 0))
        return;
    w->samples += 1;
    for (int i = 0; i < REF_READINGS; i++)
        w->sum[i] += i == REF_POWER ? floor(g->value[signal[i]]) : g->value[signal[i]];
}

typedef struct stream_end { /* where a stream of the window stands: its last kernel */
    uint32_t stream, product;
    int64_t end_ns;
} stream_end;

typedef struct stream_ends {
    stream_end at[256];
    size_t count;
} stream_ends;

static stream_end *end_of(stream_ends *s, uint32_t stream, bool *first) {
    size_t i = 0;
    while (i < s->count && s->at[i].stream != stream)
        i++;
    *first = i == s->count;
    if (*first && s->count++ == 256) {
        fprintf(stderr, "more than 256 streams\n");
        exit(1);
    }
    s->at[i].stream = stream;
    return &s->at[i];
}

/* "Kernel: stream, name, G, B. Gap: stream, kind before, kind after; only if start > previous end in that stream; none
 * before a stream's first kernel of a window. Records with start or end 0 are dropped." */
static void take_records(ref_program *p, ref_data *w, stream_ends *ends, int64_t began) {
    for (uint64_t i = 0; i < p->sample->record_count; i++) {
        const fl_kernel_record *r = &p->sample->record[i];
        if (r->gpu != p->index || r->start_ns <= 0 || r->end_ns <= 0 || r->end_ns < r->start_ns || r->start_ns < began)
            continue;
        const uint32_t product = ref_product_of(&p->products, r->stream, &p->sample->kind[r->kind], p->cores);
        w->kernels += 1;
        ref_count(&w->kernel, (ref_kind){.stream = r->stream, .before = product, .after = product},
                  (double)(r->end_ns - r->start_ns));
        bool first;
        stream_end *end = end_of(ends, r->stream, &first);
        if (!first && r->start_ns > end->end_ns)
            ref_count(&w->gap, (ref_kind){.stream = r->stream, .before = end->product, .after = product},
                      (double)(r->start_ns - end->end_ns));
        end->product = product;
        end->end_ns = r->end_ns;
    }
}

/* "Then tracer on, D seconds (>= 0.25), flush, off; length by the tracer's clock." */
static ref_data *measure(ref_program *p, double seconds, bool traced) {
    ref_data *w = new_data(p);
    stream_ends ends = {.count = 0};
    const int64_t began = p->now_ns;
    ref_set(p, FL_SET_RECORDS, traced);
    while (p->now_ns - began < nanoseconds(fmax(seconds, 0.25))) {
        ref_next_step(p);
        take_sample(p, w);
        if (traced)
            take_records(p, w, &ends, began);
    }
    ref_set(p, FL_SET_RECORDS, 0);
    w->duration_ns = (double)(p->now_ns - began);
    p->traced_ns += traced ? p->now_ns - began : 0;
    return w;
}

/* "No kernel: repeat, pooled with factor 1." */
ref_data *ref_window(ref_program *p, double seconds, bool traced) {
    ref_idle_gate(p, false);
    ref_data *w = measure(p, seconds, traced);
    while ((traced ? w->kernels : w->samples) == 0) {
        ref_reach(REF_WINDOW_REPEATED);
        ref_idle_gate(p, false);
        ref_data *again = measure(p, seconds, traced);
        ref_merge(w, again, 1, false);
        ref_forget(p, again);
    }
    return w;
}

/* ---- the policy ---- */

static void *run_program(void *program) {
    ref_program *p = program;
    sem_wait(&p->go);
    if (!p->closing)
        ref_course(p);
    return NULL;
}

static const char *init(void *state, const void *params, const fl_facts *facts) {
    (void)params;
    ref_program **own = fl_gpu_states(state, 0);
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        const fl_gpu_facts *gpu = &facts->gpu[i];
        if (gpu->mem.count != 5)
            return "is written for five memory clocks";
        ref_program *p = own[i] = calloc(1, sizeof *p);
        if (!p)
            return "is out of memory";
        *p = (ref_program){.gpu = gpu, .index = i, .where = "start", .next = programs};
        p->gears = (int)gpu->sm.count;
        p->memory_gears = (int)gpu->mem.count;
        p->cores = gpu->sm_count ? UINT64_C(128) * gpu->sm_count : 10240;
        p->wanted[FL_SET_SM_MHZ] = p->wanted[FL_SET_MEM_MHZ] = FL_DEFAULT;
        memcpy(p->last_set, p->wanted, sizeof p->last_set);
        p->last_set[FL_SET_RECORDS] = 1; /* as the descriptor asks: off in the first step */
        programs = p;
        if (sem_init(&p->go, 0, 0) || sem_init(&p->done, 0, 0) || pthread_create(&p->thread, NULL, run_program, p)) {
            fprintf(stderr, "no thread\n");
            exit(1);
        }
    }
    return NULL;
}

static void step(void *state, const void *params, const fl_facts *facts, const fl_sample *sample, fl_command *command) {
    static const int drives[] = {FL_SET_SM_MHZ, FL_SET_MEM_MHZ, FL_SET_RECORDS};
    (void)params;
    ref_program **own = fl_gpu_states(state, 0);
    for (uint32_t i = 0; i < facts->gpu_count; i++) {
        ref_program *p = own[i];
        p->now_ns = sample->time_ns;
        p->sample = sample;
        sem_post(&p->go);
        sem_wait(&p->done);
        for (size_t k = 0; k < FL_COUNT(drives); k++)
            if (p->wanted[drives[k]] != p->last_set[drives[k]])
                fl_set_gpu(command, i, drives[k], p->last_set[drives[k]] = p->wanted[drives[k]]);
        if (p->reset_limit)
            fl_set_gpu(command, i, FL_SET_POWER_LIMIT_W, FL_DEFAULT);
        p->reset_limit = false;
    }
    command->delay_ns = PERIOD_NS;
}

void ref_close_all(void) {
    while (programs) {
        ref_program *p = programs;
        programs = p->next;
        p->closing = true;
        sem_post(&p->go);
        pthread_join(p->thread, NULL);
        while (p->owned)
            ref_forget(p, &p->owned->data);
        ref_products_free(&p->products);
        sem_destroy(&p->go);
        sem_destroy(&p->done);
        free(p);
    }
}

char *ref_state_text(uint32_t gpu, char *buf, size_t size) {
    const ref_program *p = programs;
    while (p && p->index != gpu)
        p = p->next;
    if (!p)
        snprintf(buf, size, "no instance");
    else
        snprintf(buf, size,
                 "%s: D %g s, SM gear %d, memory gear %d, n %d, C %g, loss %.6f, exe %.6f, gap %.6f, covered %.3f, "
                 "matched %.3f, gain %.3f, I %.5f, traced %g s",
                 p->where, p->window_s, p->gear, p->memory, p->calls, p->bound, p->found.loss, p->found.exe,
                 p->found.gap, p->found.covered, p->found.matched, p->last_gain, p->error_sum,
                 (double)p->traced_ns / 1e9);
    return buf;
}

static const fl_signal_row signal_rows[] = {FL_NEEDS(GPU_POWER_W),      FL_NEEDS(GPU_UTIL_GPU_PCT),
                                            FL_NEEDS(GPU_UTIL_MEM_PCT), FL_NEEDS(GPU_SM_MHZ),
                                            FL_NEEDS(GPU_MEM_MHZ),      FL_NEEDS(KERNEL_RECORDS)};

const fl_policy ref_policy = {FL_POLICY_ABI,
                              .name = "mf-gpoeo-reference",
                              .summary = "MF-GPOEO's released controller, a second time",
                              .source = "MF-GPOEO, as released",
                              FL_SIGNAL_ROWS(signal_rows),
                              .gpu_drives = FL_BIT(FL_SET_SM_MHZ) | FL_BIT(FL_SET_MEM_MHZ) | FL_BIT(FL_SET_RECORDS) |
                                            FL_BIT(FL_SET_POWER_LIMIT_W),
                              .gpu_size = sizeof(ref_program *),
                              .init = init,
                              .step = step};
