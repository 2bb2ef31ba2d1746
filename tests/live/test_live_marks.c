/* Markers of a program: its NVTX through the collector into the ring, what counts as an iteration, who is woken when,
 * and what damaged or hostile rings do. */
#include "harness/live/collector/inside.h"
#include "harness/live/collector/ring.h"
#include "harness/live/guard/guard.h"
#include "harness/live/records/records.h"
#include "policies/policy.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "traces/open/open.h"
#include "tests/support/ring_fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAS_NVTX 1
#endif

/* ---- the slots of a ring ----------------------------------------------------------------------------------------- */

enum { SLOTS = 8 };

static void open_pair(fl_ring *writer, fl_ring *reader) {
    char path[400];
    fresh_folder();
    CU_ASSERT(new_ring(writer, SLOTS, 64) == 0 && ring_of(getpid(), path, sizeof path));
    CU_ASSERT(open_ring(reader, path) == 0);
}

static void close_pair(fl_ring *writer, fl_ring *reader) {
    fl_ring_close(writer);
    fl_ring_close(reader);
    clear_folder();
}

static size_t taken(fl_ring *reader, bool over, fl_ring_mark *last, uint64_t *bad) {
    size_t n = 0;
    fl_ring_mark m;
    bool more = true;
    while (fl_ring_take_mark(reader, over, &m, &more, bad) && more)
        if (m.time_ns >= 0) {
            *last = m;
            n++;
        }
    return n;
}

static void test_slots(void) {
    fl_ring w, r;
    fl_ring_mark last = {0};
    uint64_t bad = 0;
    char longest[300];
    open_pair(&w, &r);
    for (int round = 0; round < 5; round++) { /* round and round, in order; a full ring drops and counts */
        for (int i = 0; i < SLOTS + 3; i++)
            CU_ASSERT(!fl_ring_put_mark(&w, round * 100 + i, 2, "step"));
        FL_CHECK(taken(&r, false, &last, &bad) == SLOTS && last.time_ns == round * 100 + SLOTS - 1 && last.gpu == 2,
                 "round %d ends at %lld", round, (long long)last.time_ns);
        CU_ASSERT(atomic_load(&r.head->marks_dropped) == 3 * (uint64_t)(round + 1));
    }
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    fl_ring_put_mark(&w, 1, 0, longest);
    CU_ASSERT(taken(&r, false, &last, &bad) == 1 && strlen(last.name) == FL_RING_MARK_NAME - 1 && !bad);
    atomic_store(&r.head->wanted, fl_ring_wanted("step"));
    fl_ring_put_mark(&w, 1, 0, "step");
    fl_ring_put_mark(&w, 1, 0, "other"); /* of another bit than "step" */
    CU_ASSERT(fl_ring_wanted("step") != fl_ring_wanted("other") && taken(&r, false, &last, &bad) == 1);
    atomic_store(&r.head->wakes, 1);
    CU_ASSERT(fl_ring_put_mark(&w, 1, 0, "step") && !fl_ring_put_mark(&w, 1, 0, "other"));
    close_pair(&w, &r);
}

static void test_damaged_slots(void) {
    fl_ring w, r;
    fl_ring_mark m, last = {0};
    uint64_t bad = 0;
    bool more = true;
    open_pair(&w, &r);
    fl_ring_put_mark(&w, 1, 0, "a");
    fl_ring_put_mark(&w, 2, 0, "b");
    w.slot[0].mark.time_ns ^= 64;
    CU_ASSERT(taken(&r, false, &last, &bad) == 1 && bad == 1 && last.time_ns == 2);
    atomic_fetch_add(&w.head->marks, 1); /* a thread that takes a slot and dies */
    fl_ring_put_mark(&w, 4, 0, "d");
    CU_ASSERT(taken(&r, false, &last, &bad) == 0);
    CU_ASSERT(taken(&r, true, &last, &bad) == 1 && last.time_ns == 4);
    fl_ring_put_mark(&w, 5, 0, "e"); /* an earlier reader ended before it had said so */
    atomic_store(&w.slot[4].turn, 2);
    fl_ring_put_mark(&w, 6, 0, "f");
    CU_ASSERT(taken(&r, false, &last, &bad) == 1 && last.time_ns == 6);
    atomic_fetch_add(&w.head->marks, 1);
    atomic_store(&w.slot[6].turn, 77);
    CU_ASSERT(!fl_ring_take_mark(&r, false, &m, &more, &bad));
    atomic_store(&w.slot[6].turn, 0);
    const uint64_t impossible[] = {UINT64_MAX, 0, 6 + SLOTS + 1};
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        atomic_store(&w.head->marks, impossible[i]);
        CU_ASSERT(!fl_ring_take_mark(&r, false, &m, &more, &bad));
    }
    close_pair(&w, &r);
}

enum { THREADS = 4, EACH = 20000 };

static void *put_many(void *of) {
    fl_ring *w = of;
    for (int i = 0; i < EACH; i++)
        fl_ring_put_mark(w, i, 0, "step");
    return NULL;
}

/* Threads that put at once: what is taken and what was dropped is what was put. */
static void test_threads(void) {
    fl_ring w, r;
    fl_ring_mark last;
    uint64_t bad = 0;
    pthread_t thread[THREADS];
    size_t n = 0;
    open_pair(&w, &r);
    for (int i = 0; i < THREADS; i++)
        CU_ASSERT(!pthread_create(&thread[i], NULL, put_many, &w));
    for (int i = 0; i < 2000; i++)
        n += taken(&r, false, &last, &bad);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    n += taken(&r, false, &last, &bad);
    const uint64_t dropped = atomic_load(&w.head->marks_dropped);
    FL_CHECK(n + dropped == THREADS * EACH && !bad, "%zu taken, %llu dropped, %llu bad", n, (unsigned long long)dropped,
             (unsigned long long)bad);
    close_pair(&w, &r);
}

/* ---- a program's NVTX -------------------------------------------------------------------------------------------- */

static fl_nvtx_function function[2][16], *slot[2][16];

static int table_of(fl_nvtx_module module, fl_nvtx_function ***out, unsigned *count) {
    const int k = module == FL_NVTX_CORE ? 0 : 1;
    for (int i = 1; i < 16; i++)
        slot[k][i] = &function[k][i];
    *out = slot[k];
    *count = 16;
    return module == FL_NVTX_CORE || module == FL_NVTX_CORE2;
}

static const void *export_of(uint32_t table) {
    static const fl_nvtx_callbacks callbacks = {sizeof callbacks, table_of};
    return table == FL_NVTX_CALLBACKS ? &callbacks : NULL;
}

#define CALLED(k, id, type, ...) ((type)function[k][id])(__VA_ARGS__)

/* Each kind of call once, as a program's own NVTX makes it. */
static void call_all(void) {
    typedef int on_text(const char *);
    typedef int on_wide(const wchar_t *);
    typedef int on_attributes(const fl_nvtx_attributes *);
    typedef int of_domain(void *, const fl_nvtx_attributes *);
    typedef const char *registers(void *, const char *);
    typedef const char *registers_wide(void *, const wchar_t *);
    fl_nvtx_attributes a = {.version = 3, .size = sizeof a, .message_type = FL_NVTX_ASCII, .message = "ex"};
    CALLED(0, FL_NVTX_MARK_A, on_text *, "mark");
    CALLED(0, FL_NVTX_RANGE_PUSH_A, on_text *, "push");
    CALLED(0, FL_NVTX_RANGE_START_A, on_text *, "start");
    CALLED(0, FL_NVTX_MARK_W, on_wide *, L"wide \u00e9");
    CALLED(0, FL_NVTX_RANGE_PUSH_W, on_wide *, L"wide push");
    CALLED(0, FL_NVTX_RANGE_START_W, on_wide *, L"wide start");
    for (int id = FL_NVTX_MARK_EX; id <= FL_NVTX_RANGE_PUSH_EX; id++)
        if (id == FL_NVTX_MARK_EX || id == FL_NVTX_RANGE_START_EX || id == FL_NVTX_RANGE_PUSH_EX)
            CALLED(0, id, on_attributes *, &a);
    a.message_type = FL_NVTX_REGISTERED;
    a.message = CALLED(1, FL_NVTX_DOMAIN_REGISTER_STRING_A, registers *, NULL, "registered");
    CALLED(1, FL_NVTX_DOMAIN_MARK_EX, of_domain *, NULL, &a);
    a.message = CALLED(1, FL_NVTX_DOMAIN_REGISTER_STRING_W, registers_wide *, NULL, L"registered wide");
    CALLED(1, FL_NVTX_DOMAIN_RANGE_PUSH_EX, of_domain *, NULL, &a);
    a.message_type = FL_NVTX_UNICODE;
    a.message = L"unicode";
    CALLED(1, FL_NVTX_DOMAIN_RANGE_START_EX, of_domain *, NULL, &a);
    a.message_type = 77; /* what nobody knows, and too short a struct, have no name */
    CALLED(1, FL_NVTX_DOMAIN_MARK_EX, of_domain *, NULL, &a);
    a.size = 8;
    CALLED(0, FL_NVTX_MARK_EX, on_attributes *, &a);
    if (function[0][FL_NVTX_RANGE_POP] || function[0][FL_NVTX_RANGE_END]) /* left to NVTX */
        _exit(7);
}

/* The collector in this process, attached to the NVTX above; the driver is there. */
static void load(void) {
    void *cupti = dlopen(FL_STUB_CUPTI, RTLD_NOW), *collector = dlopen(FL_COLLECTOR, RTLD_NOW);
    int (*start)(fl_nvtx_export *) = NULL;
    if (!cupti || !collector)
        _exit(9);
    *(void **)(void *)&start = dlsym(collector, "InitializeInjectionNvtx2");
    if (!start || start(NULL) != 1 || start(export_of) != 1)
        _exit(8);
}

static pid_t start_loaded(void (*load_it)(void), void (*run)(void)) {
    setenv("FOLDLINE_RINGS", folder, 1);
    const pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        load_it();
        run();
        exit(0);
    }
    return pid;
}

static pid_t start_program(void (*run)(void)) { return start_loaded(load, run); }

static fl_kernels *take_all(pid_t pid, const char *const *names, size_t count) {
    fl_sample s = {.gpu_count = 4};
    fl_kernels *k = open_folder();
    fl_kernels_iterations(k, names, count, true);
    const int status = end_of(pid);
    FL_CHECK(status == 0, "exit status %d", WEXITSTATUS(status));
    CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL));
    return k;
}

static void test_every_call(void) {
    static const char *const NAMES[] = {"ex", "registered"};
    char text[1024];
    uint64_t count;
    fresh_folder();
    setenv("FOLDLINE_CUDA_DEVICES", "3,2", 1);
    setenv("FOLDLINE_CUDA_CURRENT", "1", 1);
    fl_kernels *k = take_all(start_program(call_all), NAMES, 2);
    unsetenv("FOLDLINE_CUDA_CURRENT");
    unsetenv("FOLDLINE_CUDA_DEVICES");
    fl_marks_text(fl_kernels_marks(k), text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "ex 3, mark 1, push 1, registered 1, registered wide 1, start 1, unicode 1, "
                                 "wide push 1, wide start 1, wide \u00e9 1");
    CU_ASSERT(fl_kernels_iterated(k, 2, &count) && count == 4); /* the program's GPU 1 is the machine's 2 */
    CU_ASSERT(fl_kernels_iterated(k, 3, &count) && count == 0);
    CU_ASSERT(fl_kernels_marks(k)->count == 4 && fl_kernels_marks(k)->marker[3].gpu == 2);
    CU_ASSERT(fl_kernels_count(k).marks == 12 && !fl_kernels_count(k).ends_missing);
    fl_kernels_close(k);
    clear_folder();
}

enum { AGAIN = 30000 /* registrations: more than there is room for, were each kept */ };

/* Registers two strings over and over, one of which begins like the other. */
static void register_again(void) {
    typedef const char *registers(void *, const char *);
    typedef int of_domain(void *, const fl_nvtx_attributes *);
    fl_nvtx_attributes a = {.version = 3, .size = sizeof a, .message_type = FL_NVTX_REGISTERED};
    for (int i = 0; i < AGAIN; i++) {
        CALLED(1, FL_NVTX_DOMAIN_REGISTER_STRING_A, registers *, NULL, "backward");
        a.message = CALLED(1, FL_NVTX_DOMAIN_REGISTER_STRING_A, registers *, NULL, "back");
    }
    CALLED(1, FL_NVTX_DOMAIN_MARK_EX, of_domain *, NULL, &a);
}

static void test_registered_again(void) {
    static const char *const NAMES[] = {"back"};
    fresh_folder();
    setenv("FOLDLINE_CUDA_CURRENT", "0", 1);
    fl_kernels *k = take_all(start_program(register_again), NAMES, 1);
    CU_ASSERT(fl_kernels_marks(k)->iterations == 1);
    fl_kernels_close(k);
    unsetenv("FOLDLINE_CUDA_CURRENT");
    clear_folder();
}

/* A name is compared as it is given: what cannot be shown is no other name, nor is it the name with '?' in its place.
 */
static void test_names_as_given(void) {
    static const char *const NAMES[] = {"step\t1", "pass?"};
    char text[200];
    fl_ring w;
    fl_sample s = {.gpu_count = 1};
    fresh_folder();
    CU_ASSERT(fl_ring_create(&w, folder, SLOTS, 64) == 0);
    tell_gpu(&w, 0, 0);
    fl_kernels *k = open_folder();
    fl_kernels_iterations(k, NAMES, 2, true);
    fl_ring_put_mark(&w, 1, 0, "step\t1");
    fl_ring_put_mark(&w, 2, 0, "step?1");
    fl_ring_put_mark(&w, 3, 0, "pass\t");
    CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL));
    CU_ASSERT(fl_kernels_marks(k)->iterations == 1 && fl_kernels_marks(k)->marker[0].time_ns == 1);
    fl_marks_text(fl_kernels_marks(k), text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "step?1 2, pass? 1");
    fl_kernels_close(k);
    fl_ring_close(&w);
    clear_folder();
}

static void three_marks(void) {
    for (int i = 0; i < 3; i++)
        CALLED(0, FL_NVTX_MARK_A, int (*)(const char *), "step");
}

/* A thread without a GPU is of its program's only one; where there are several, of none until a kernel has run. */
static void test_without_a_current_gpu(void) {
    static const char *const NAMES[] = {"step"};
    for (int gpus = 1; gpus <= 2; gpus++) {
        fl_ring w;
        fl_sample s = {.gpu_count = 2};
        fresh_folder();
        CU_ASSERT(fl_ring_create(&w, folder, SLOTS, 64) == 0);
        for (uint8_t i = 0; i < gpus; i++)
            tell_gpu(&w, i, 1 - i);
        fl_ring_put_mark(&w, 5, FL_RING_NO_GPU, "step");
        fl_kernels *k = open_folder();
        fl_kernels_iterations(k, NAMES, 1, false);
        CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL));
        const fl_marks *m = fl_kernels_marks(k);
        FL_CHECK(m->iterations == (gpus == 1) && m->unplaced == (gpus == 2), "%d GPUs: %llu iterations", gpus,
                 (unsigned long long)m->iterations);
        CU_ASSERT(!m->count || m->marker[0].gpu == 1);
        fl_ring_put_mark(&w, 6, 77, "step"); /* no program has as many */
        fl_ring_put_mark(&w, -6, 0, "step");
        fl_ring_put_mark(&w, 7, 0, "st\x1b[0m");
        fl_ring_put_mark(&w, 8, 0, "step");
        CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL));
        CU_ASSERT(m->count == 1 && m->marker[0].time_ns == 8 && fl_kernels_count(k).damaged == 1);
        fl_kernels_close(k);
        fl_ring_close(&w);
        clear_folder();
    }
}

/* Names of others, and none where nobody asks: what such a ring says cannot hold up the others. */
static void test_hostile(void) {
    static const char *const NAMES[] = {"step"};
    fl_ring w;
    fl_sample s = {.gpu_count = 2};
    fresh_folder();
    CU_ASSERT(new_ring(&w, SLOTS, 64) == 0);
    fl_kernels *k = open_folder();
    fl_kernels_iterations(k, NAMES, 1, false);
    CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL) && fl_kernels_count(k).running == 1);
    atomic_store(&w.head->marks, 1 << 20);
    CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL));
    CU_ASSERT(fl_kernels_count(k).running == 0 && fl_kernels_count(k).set_aside == 1);
    fl_ring_close(&w);
    clear_folder();
    fresh_folder();
    fl_kernels_close(k);
    k = open_folder();
    fl_kernels_iterations(k, NAMES, 1, false);
    CU_ASSERT(!fl_kernels_wakes(k, NULL) && new_ring(&w, SLOTS, 64) == 0 && !fl_kernels_take(k, 0, &s, NULL));
    atomic_store(&w.head->marks_dropped, UINT64_MAX);
    bool marked;
    fl_ring_wake(folder);
    CU_ASSERT(!fl_kernels_await(k, fl_clock_ns(), &marked, NULL)); /* a wait sees it first, and leaves it to the take */
    CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL) && fl_kernels_count(k).set_aside == 1);
    fl_kernels_close(k);
    fl_ring_close(&w);
    clear_folder();
}

/* ---- waking ------------------------------------------------------------------------------------------------------ */

/* The folder of rings is named from the program's own folder, which the program leaves. */
static void load_and_leave(void) {
    setenv("FOLDLINE_RINGS", ".", 1);
    if (chdir(folder))
        _exit(5);
    load();
    if (chdir("/"))
        _exit(5);
}

static void marks_after_a_while(void) {
    wait_us(200000);
    CALLED(0, FL_NVTX_MARK_A, int (*)(const char *), "other");
    wait_us(100000);
    CALLED(0, FL_NVTX_RANGE_PUSH_A, int (*)(const char *), "step");
    wait_us(200000);
}

/* The reader waits; the program begins while it does, and its first marker ends the wait at once. */
static void test_wakes(void) {
    static const char *const NAMES[] = {"step"};
    fl_sample s = {.gpu_count = 4};
    bool marked = false;
    int64_t woken_ns = 0;
    fresh_folder();
    setenv("FOLDLINE_CUDA_CURRENT", "0", 1);
    fl_kernels *k = open_folder();
    fl_kernels_iterations(k, NAMES, 1, false);
    CU_ASSERT(!fl_kernels_wakes(k, NULL) && !fl_kernels_take(k, 0, &s, NULL));
    const pid_t pid = start_loaded(load_and_leave, marks_after_a_while);
    const int64_t given_up_ns = fl_clock_ns() + INT64_C(20000000000);
    while (!marked && fl_clock_ns() < given_up_ns)
        CU_ASSERT(!fl_kernels_await(k, fl_clock_ns() + INT64_C(100000000), &marked, NULL));
    woken_ns = fl_clock_ns();
    CU_ASSERT(marked && !fl_kernels_await(k, fl_clock_ns() + INT64_C(100000000), &marked, NULL) && marked);
    CU_ASSERT(fl_clock_ns() - woken_ns < 50000000); /* it does not wait: the marker has not been taken */
    CU_ASSERT(fl_kernels_marks(k)->count == 1 && fl_kernels_marks(k)->others == 0);
    if (fl_kernels_marks(k)->count) {
        const int64_t late_ns = woken_ns - fl_kernels_marks(k)->marker[0].time_ns;
        printf("\n    woken %.3f ms after the marker", (double)late_ns * 1e-6);
        FL_CHECK(late_ns < 50000000, "woken %.3f ms after the marker", (double)late_ns * 1e-6);
    }
    CU_ASSERT(!fl_kernels_take(k, 0, &s, NULL));
    CU_ASSERT(!fl_kernels_await(k, fl_clock_ns() + 1000000, &marked, NULL) && !marked);
    end_of(pid);
    fl_kernels_close(k);
    unsetenv("FOLDLINE_CUDA_CURRENT");
    clear_folder();
}

/* A program wakes nobody by any file but a FIFO, and is not ended by one that nobody reads. */
static void test_foreign_files(void) {
    static const char *const NAMES[] = {"step"};
    char path[400];
    fl_diag d = {0};
    struct stat st;
    fresh_folder();
    snprintf(path, sizeof path, "%s/" FL_RING_WAKE, folder);
    fl_ring_wake(folder); /* nobody waits */
    CU_ASSERT(access(path, F_OK) != 0);
    fl_kernels *k = open_folder();
    fl_kernels_iterations(k, NAMES, 1, false);
    CU_ASSERT(!fl_kernels_wakes(k, &d));
    fl_kernels_close(k);
    for (int i = 0; i < 70000; i++) /* a full FIFO */
        fl_ring_wake(folder);
    unlink(path);
    const int fd = open(path, O_CREAT | O_WRONLY, 0600);
    fl_ring_wake(folder);
    CU_ASSERT(!fstat(fd, &st) && st.st_size == 0);
    close(fd);
    k = open_folder();
    CU_ASSERT(fl_kernels_wakes(k, &d) == FL_IO && strstr(d.message, "no FIFO"));
    fl_kernels_close(k);
    clear_folder();
}

static void fork_and_mark(void) {
    const pid_t child = fork();
    CALLED(0, FL_NVTX_MARK_A, int (*)(const char *), "step");
    if (!child)
        _exit(0);
    if (end_of(child))
        _exit(6);
}

/* A forked child puts nothing into its parent's ring. */
static void test_fork(void) {
    static const char *const NAMES[] = {"step"};
    fresh_folder();
    setenv("FOLDLINE_CUDA_CURRENT", "0", 1);
    fl_kernels *k = take_all(start_program(fork_and_mark), NAMES, 1);
    CU_ASSERT(fl_kernels_marks(k)->iterations == 1 && !fl_kernels_count(k).ends_missing);
    fl_kernels_close(k);
    k = take_all(start_program(three_marks), NAMES, 1);
    CU_ASSERT(fl_kernels_marks(k)->iterations == 3);
    fl_kernels_close(k);
    unsetenv("FOLDLINE_CUDA_CURRENT");
    clear_folder();
}

/* NVIDIA's own header as the client, where it is installed. */
static void test_nvidias_header(void) {
#ifdef HAS_NVTX
    static const char *const NAMES[] = {"step"};
    char text[1024];
    fresh_folder();
    setenv("FOLDLINE_RINGS", folder, 1);
    setenv("FOLDLINE_CUDA_CURRENT", "0", 1);
    setenv("NVTX_INJECTION64_PATH", FL_COLLECTOR, 1);
    const pid_t pid = fork();
    if (!pid) {
        if (!dlopen(FL_STUB_CUPTI, RTLD_NOW))
            _exit(9);
        nvtxDomainHandle_t domain = nvtxDomainCreateA("mine");
        nvtxEventAttributes_t a = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
        a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        a.message.registered = nvtxDomainRegisterStringA(domain, "registered");
        for (int i = 0; i < 5; i++) {
            nvtxRangePushA("step");
            nvtxDomainRangePushEx(domain, &a);
            nvtxDomainRangePop(domain);
            nvtxRangeEnd(nvtxRangeStartA("range"));
            nvtxRangePop();
        }
        exit(0);
    }
    fl_kernels *k = take_all(pid, NAMES, 1);
    fl_marks_text(fl_kernels_marks(k), text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "range 5, registered 5, step 5");
    CU_ASSERT(fl_kernels_marks(k)->iterations == 5);
    fl_kernels_close(k);
    unsetenv("NVTX_INJECTION64_PATH");
    unsetenv("FOLDLINE_CUDA_CURRENT");
    clear_folder();
#else
    printf("\n    skipped: NVTX's headers are not installed");
#endif
}

/* ---- into a trace ------------------------------------------------------------------------------------------------ */

static void add_op(fl_kernel_trace *t, uint32_t kind, int32_t device, int32_t stream, int64_t start, int64_t end) {
    CU_ASSERT(!fl_trace_add_op(t, &(fl_trace_op){.start_ns = start,
                                                 .end_ns = end,
                                                 .launch_ns = INT64_MIN,
                                                 .bytes = -1,
                                                 .kind = kind,
                                                 .device = device,
                                                 .stream = stream,
                                                 .host_thread = -1}));
}

/* Into the busiest stream, behind the kernel that runs, in the order of time; none where nothing ran. */
static void test_places_in_a_trace(void) {
    static const struct {
        int64_t passed, at; /* -1: nowhere */
        int32_t device, stream;
    } ROWS[] = {{60, 60, 0, 7},   {25, 30, 0, 7}, {5, 5, 0, 7},   {10, 10, 0, 7}, {30, 30, 0, 7},
                {100, 100, 0, 7}, {12, 40, 1, 3}, {41, 41, 1, 3}, {9, -1, 2, 0}};
    fl_kernel_trace t = {0};
    fl_trace_marks m = {0};
    const uint32_t kind = fl_trace_add_kind(&t, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){1, 1, 1});
    add_op(&t, kind, 0, 7, 40, 50);
    add_op(&t, kind, 0, 7, 10, 20);
    add_op(&t, kind, 0, 7, 20, 30);
    add_op(&t, kind, 0, 2, 0, 90);
    add_op(&t, kind, 1, 3, 10, 40);
    const size_t ops = t.op_count, rows = sizeof ROWS / sizeof *ROWS;
    for (size_t i = 0; i < rows; i++)
        CU_ASSERT(!fl_trace_marks_add(&m, ROWS[i].passed, ROWS[i].device, 0, NULL));
    CU_ASSERT(!fl_trace_marks_place(&m, &t, NULL) && t.op_count == ops + rows - 1);
    for (size_t i = 0; i < rows; i++) {
        size_t found = 0;
        for (size_t k = ops; k < t.op_count; k++)
            found += t.ops[k].device == ROWS[i].device && t.ops[k].stream == ROWS[i].stream &&
                     t.ops[k].start_ns == ROWS[i].at && t.ops[k].end_ns == ROWS[i].at &&
                     !strcmp(t.names[t.kinds[t.ops[k].kind].name], "[iteration]");
        FL_CHECK(ROWS[i].at < 0 ? !found : found > 0, "marker %zu", i);
    }
    fl_trace_marks_free(&m);
    fl_kernel_trace_free(&t);
}

FL_SUITE("live_marks", {"slots", test_slots}, {"damaged slots", test_damaged_slots}, {"threads", test_threads},
         {"every call of NVTX", test_every_call}, {"registered again", test_registered_again},
         {"names as given", test_names_as_given}, {"a thread without a GPU", test_without_a_current_gpu},
         {"hostile rings", test_hostile}, {"wakes", test_wakes}, {"foreign files", test_foreign_files},
         {"forks", test_fork}, {"NVIDIA's header", test_nvidias_header}, {"places in a trace", test_places_in_a_trace})
