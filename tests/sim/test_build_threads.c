/* Host threads of a trace, by hand: launches and synchronisations in the order of their host times, the host time
 * between them, and what each synchronisation waits for. Times in microseconds. */
#include "sim/workload/workload.h"
#include "traces/files/files.h"
#include "traces/io/records.h"
#include "tests/support/sim_fixture.h"

enum { OPS = 12, NO = INT32_MAX, TWO = NO - 1 };

typedef struct row {
    const char *what;
    int32_t thread, process, stream;
    int32_t launch_us, start_us, end_us; /* a launch of NO: a synchronisation */
    int waits; /* for this op; TWO: for the second and the fourth; NO: for all that was launched */
} row;

static const row rows[OPS] = {
    {"first on its stream", 7, 0, 0, 10, 20, 60, NO},
    {"on another", 7, 0, 1, 15, 50, 55, NO},
    {"for both", 7, 0, 0, NO, 30, 70, NO},
    {"launched while the host waited", 7, 0, 1, 65, 70, 71, NO},
    {"after the wait", 7, 0, 0, 80, 90, 95, NO},
    {"for two that are done", 7, 0, 0, NO, 85, 86, TWO},
    {"for all, and told so before the last was done", 7, 0, 0, NO, 86, 86, NO},
    {"a second thread, later in time than the next", 3, 1, 0, 7, 60, 65, NO},
    {"the first of all", 3, 1, 0, 6, 40, 41, NO},
    {"at the same time as the last but one", 3, 0, 0, 7, 96, 97, NO},
    {"of a thread that launches nothing", 5, 0, 0, NO, 9, 14, NO},
    {"for the other thread's", 5, 0, 0, NO, 20, 75, 7},
};

typedef struct step {
    fl_item_type type;
    int64_t host_us, after_us;
    uint32_t stream; /* of a launch */
    uint32_t waits;  /* of a synchronisation */
    fl_wait wait[2];
} step;

static const struct {
    int32_t id;
    size_t count;
    step step[7];
} threads[] = {
    {3,
     3,
     {{.type = FL_ITEM_LAUNCH, .stream = 2},
      {.type = FL_ITEM_LAUNCH, .host_us = 1, .stream = 2},
      {.type = FL_ITEM_LAUNCH, .stream = 0}}},
    {5,
     2,
     {{.type = FL_ITEM_SYNC, .host_us = 3, .after_us = 5},
      {.type = FL_ITEM_SYNC, .host_us = 6, .after_us = 10, .waits = 1, .wait = {{2, 2}}}}},
    {7,
     7,
     {{.type = FL_ITEM_LAUNCH, .host_us = 4, .stream = 0},
      {.type = FL_ITEM_LAUNCH, .host_us = 5, .stream = 1},
      {.type = FL_ITEM_SYNC, .host_us = 15, .after_us = 10, .waits = 2, .wait = {{0, 1}, {1, 1}}},
      {.type = FL_ITEM_LAUNCH, .stream = 1},
      {.type = FL_ITEM_LAUNCH, .host_us = 10, .stream = 0},
      {.type = FL_ITEM_SYNC, .host_us = 5, .after_us = 1, .waits = 2, .wait = {{1, 1}, {1, 2}}},
      {.type = FL_ITEM_SYNC, .waits = 2, .wait = {{0, 2}, {1, 2}}}}},
};

static void test_threads(void) {
    fx_rig r;
    fx_open(&r, 1);
    fl_kernel_trace t = {.has_launches = true};
    const uint32_t kind = fl_trace_add_kind(&t, "k", (uint32_t[3]){1, 1, 1}, (uint32_t[3]){32, 1, 1});
    uint32_t waits[2 * OPS];
    for (uint32_t i = 0; i < OPS; i++) {
        const row *x = &rows[i];
        const bool sync = x->launch_us == NO;
        waits[2 * i] = x->waits == NO ? 0 : x->waits == TWO ? 1 : (uint32_t)x->waits;
        waits[2 * i + 1] = 3;
        const fl_trace_op op = {.start_ns = x->start_us * 1000,
                                .end_ns = x->end_us * 1000,
                                .launch_ns = sync ? INT64_MIN : x->launch_us * 1000,
                                .bytes = -1,
                                .kind = kind,
                                .process = x->process,
                                .stream = x->stream,
                                .host_thread = x->thread,
                                .waits_first = 2 * i,
                                .waits_count = (uint16_t)(x->waits == NO    ? 0
                                                          : x->waits == TWO ? 2
                                                                            : 1),
                                .type = sync ? FL_OP_SYNC : FL_OP_KERNEL};
        FX_MUST(fl_trace_add_op(&t, &op));
    }
    t.waits = waits;
    t.wait_count = 2 * OPS;
    fl_workload *w;
    const fl_build_options o = {.assume = "compute"};
    FX_MUST(fl_build_trace(&w, "threads", &t, &r.spec, &o, d));
    CU_ASSERT_FATAL(w->thread_count == 3 && w->stream_count == 3);
    for (size_t i = 0; i < 3; i++) {
        const fl_thread *thread = &w->thread[i];
        FL_CHECK(thread->id == threads[i].id && thread->count == threads[i].count && !thread->server,
                 "thread %d has %zu steps", thread->id, thread->count);
        for (size_t k = 0; k < threads[i].count && k < thread->count; k++) {
            const fl_item *item = &thread->item[k];
            const step *want = &threads[i].step[k];
            FL_CHECK(item->type == want->type && item->host_ns == want->host_us * 1000 &&
                         item->after_ns == want->after_us * 1000 && item->wait_count == want->waits,
                     "thread %d, step %zu: %lld ns of the host before it, %lld behind, %u waits", thread->id, k,
                     (long long)item->host_ns, (long long)item->after_ns, item->wait_count);
            if (want->type == FL_ITEM_LAUNCH)
                FL_CHECK(item->stream == want->stream && item->parts == 0, "thread %d, step %zu: stream %u", thread->id,
                         k, item->stream);
            for (uint32_t j = 0; j < want->waits && j < item->wait_count; j++) {
                const fl_wait *on = &thread->wait[item->wait_first + j];
                FL_CHECK(on->stream == want->wait[j].stream && on->done == want->wait[j].done,
                         "thread %d, step %zu: waits for %d ops of stream %u", thread->id, k, (int)on->done,
                         on->stream);
            }
        }
    }
    fl_workload_free(w);
    t.waits = NULL;
    fl_kernel_trace_free(&t);
    fx_close(&r);
}

/* Ops without a launch: those before the first known one of their stream are launched by its thread at its begin, those
 * behind with the one before them. A wait for all includes them. */
static void test_without_launch(void) {
    static const struct {
        int32_t stream, thread; /* thread -1: no launch */
        int32_t launch_us, start_us, end_us;
    } op[] = {{0, -1, 0, 10, 20}, {0, -1, 0, 20, 30}, {0, 7, 25, 40, 50}, {0, -1, 0, 50, 60},
              {0, -1, 0, 60, 70}, {0, 7, 65, 80, 90}, {1, -1, 0, 12, 15}, {1, -1, 0, 16, 18},
              {2, -1, 0, 11, 13}, {2, 3, 30, 35, 36}, {0, 7, NO, 95, 99}};
    static const struct {
        int32_t id;
        size_t count;
        struct {
            uint32_t stream, parts;
            int64_t host_us;
        } launch[4];
    } want[] = {{3, 2, {{2, 0, 0}, {2, 0, 20}}}, {7, 3, {{0, 1, 0}, {0, 2, 15}, {0, 0, 40}}}};
    fx_rig r;
    fx_open(&r, 1);
    fl_kernel_trace t = {.has_launches = true};
    const uint32_t kind = fl_trace_add_kind(&t, "k", (uint32_t[3]){1, 1, 1}, (uint32_t[3]){32, 1, 1});
    for (size_t i = 0; i < sizeof op / sizeof *op; i++) {
        const bool sync = op[i].launch_us == NO;
        const fl_trace_op o = {.start_ns = op[i].start_us * 1000,
                               .end_ns = op[i].end_us * 1000,
                               .launch_ns = sync || op[i].thread < 0 ? INT64_MIN : op[i].launch_us * 1000,
                               .bytes = -1,
                               .kind = kind,
                               .stream = op[i].stream,
                               .host_thread = op[i].thread,
                               .type = sync ? FL_OP_SYNC : FL_OP_KERNEL};
        FX_MUST(fl_trace_add_op(&t, &o));
    }
    fl_workload *w;
    const fl_build_options o = {.assume = "compute"};
    FX_MUST(fl_build_trace(&w, "threads", &t, &r.spec, &o, d));
    CU_ASSERT_FATAL(w->thread_count == 2 && w->stream_count == 3);
    FL_CHECK(w->stream[0].launched && !w->stream[1].launched && w->stream[2].launched, "streams");
    for (size_t i = 0; i < 2; i++) {
        const fl_thread *thread = &w->thread[i];
        FL_CHECK(thread->id == want[i].id && thread->count == want[i].count + (want[i].id == 7), "thread %d: %zu",
                 thread->id, thread->count);
        for (size_t k = 0; k < want[i].count && k < thread->count; k++)
            FL_CHECK(thread->item[k].type == FL_ITEM_LAUNCH && thread->item[k].stream == want[i].launch[k].stream &&
                         thread->item[k].parts == want[i].launch[k].parts &&
                         thread->item[k].host_ns == want[i].launch[k].host_us * 1000,
                     "thread %d, launch %zu: stream %u, %u more, after %lld ns", thread->id, k, thread->item[k].stream,
                     thread->item[k].parts, (long long)thread->item[k].host_ns);
    }
    const fl_item *last = &w->thread[1].item[w->thread[1].count - 1];
    FL_CHECK(last->type == FL_ITEM_SYNC && last->wait_count == 1 && w->thread[1].wait[last->wait_first].stream == 0 &&
                 w->thread[1].wait[last->wait_first].done == 6,
             "the wait for all");
    fl_workload_free(w);
    fl_kernel_trace_free(&t);
    fx_close(&r);
}

FL_SUITE("build_threads", {"threads", test_threads}, {"without a launch", test_without_launch})
