/* The decisions log of a controller whose disk stands still, loses steps, or is full: control goes on, or ends in order
 * and says why. The disk is a FIFO that nobody reads. */
#include "harness/live/host/host.h"
#include "harness/live/host/inside.h"
#include "policies/policy.h"
#include "policies/registry/registry.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "traces/io/records.h"
#include "tests/support/live_stub.h"

#include <sys/ioctl.h>

#define ARG(text) ((char *)(uintptr_t)(text))

static char fifo[512];

/* Its reading end, which holds 4 KiB. */
static int slow_disk(void) {
    snprintf(fifo, sizeof fifo, "%s", fl_temp_path("log.csv"));
    unlink(fifo);
    if (mkfifo(fifo, 0600))
        return -1;
    const int end = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    fcntl(end, F_SETPIPE_SZ, 4096);
    return end;
}

static int waiting(int end) {
    int bytes = 0;
    return ioctl(end, FIONREAD, &bytes) ? 0 : bytes;
}

/* All that comes, to the end; the caller frees it. */
static char *drain(int end, size_t *size) {
    char *text = malloc(1);
    *size = 0;
    fcntl(end, F_SETFL, 0);
    for (ssize_t got = 1; got > 0;) {
        text = realloc(text, *size + 4097);
        got = text ? read(end, text + *size, 4096) : 0;
        *size += got > 0 ? (size_t)got : 0;
    }
    if (text)
        text[*size] = '\0';
    return text;
}

/* Steps go on, far beyond what the disk takes; the guardian has nothing to say. Once it takes more, all is there. */
static void test_stalled_disk(void) {
    stub_reset(1);
    const int end = slow_disk();
    pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"),
                                          ARG("--control"), ARG("-o"), fifo, ARG("--grace-ms"), ARG("500"), NULL});
    UNTIL(waiting(end) > 3000);
    const unsigned reads = stub->reads;
    UNTIL(stub->reads > reads + 250); /* two of each step at most, and now and then one more */
    FL_CHECK(stub->reads > reads + 250, "%u readings, then %u: the disk holds control up", reads, stub->reads);
    kill(pid, SIGTERM);
    size_t size;
    char *text = drain(end, &size);
    const int status = exit_of(pid);
    FL_CHECK(status == 0, "exit status %d", status);
    int steps = 0;
    for (const char *at = text; at && (at = strstr(at, "\n")) != NULL; at++) {
        char row[32];
        snprintf(row, sizeof row, "%d,", steps);
        steps += !strncmp(at + 1, row, strlen(row));
    }
    FL_CHECK(steps > 100, "%d steps in the log", steps);
    CU_ASSERT(!stub->gpu[0].sm_max && left_behind(".record") == 0);
    free(text);
    close(end);
}

/* More than may wait is lost, and counted. */
static void test_lost_steps(void) {
    static const fl_decided none[FL_GPU_CONTROL_COUNT];
    const fl_decision decision = {.delay_ns = 1, .gpu_count = 1, .gpu = &none};
    fl_gpu_sample gpu = {0};
    fl_sample sample = {.gpu_count = 1, .gpu = &gpu};
    fl_live_log *l = NULL;
    fl_head head = {0};
    fl_diag d = {0};
    const int end = slow_disk();
    int go[2];
    size_t size;
    CU_ASSERT_FATAL(!pipe2(go, O_CLOEXEC));
    pid_t pid = fork(); /* who reads, once told to */
    if (!pid) {
        char byte;
        close(go[1]);
        if (!read(go[0], &byte, 1))
            drain(end, &size);
        _exit(0);
    }
    CU_ASSERT_FATAL(!fl_live_log_open(&l, fifo, &head, fl_policies[0], &d));
    fl_live_log_limit(l, 2000);
    for (; sample.step < 1000; sample.step++)
        CU_ASSERT(!fl_live_log_add(l, &sample, &decision, &d));
    close(go[1]);
    const fl_status s = fl_live_log_close(l, &d);
    FL_CHECK(s == FL_IO && strstr(d.message, " of 1000 steps are missing"), "status %d: %s", s, d.message);
    exit_of(pid);
    close(go[0]);
    close(end);
}

/* A disk that takes nothing more ends control in order. */
static void test_full_disk(void) {
    struct stat s;
    stub_reset(1);
    if (stat("/dev/full", &s) || !S_ISCHR(s.st_mode))
        return;
    const int status = FOLDLINE(ARG("live"), ARG("--policy"), ARG("assure"), ARG("--control"), ARG("-o"),
                                ARG("/dev/full"), ARG("--for"), ARG("120s"));
    size_t size;
    char *text = fl_temp_slurp(fl_temp_path("err.txt"), &size);
    FL_CHECK(status == 3 && text && strstr(text, "cannot write"), "exit status %d: %s", status, text ? text : "");
    CU_ASSERT(!stub->gpu[0].sm_max && left_behind(".record") == 0);
    free(text);
}

/* One that stands still for good: the GPUs are given back at the first TERM, and a second one ends the wait for it. */
static void test_disk_that_never_comes_back(void) {
    stub_reset(1);
    const int end = slow_disk();
    pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"),
                                          ARG("--control"), ARG("-o"), fifo, NULL});
    UNTIL(waiting(end) > 3000);
    const unsigned reads = stub->reads;
    UNTIL(stub->reads > reads + 20); /* there is more than the disk takes */
    kill(pid, SIGTERM);
    UNTIL(left_behind(".record") == 0);
    CU_ASSERT(!stub->gpu[0].sm_max && left_behind(".record") == 0);
    int status = 0;
    UNTIL(waitpid(pid, &status, WNOHANG) == pid || kill(pid, SIGTERM));
    FL_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "it waits for its log: status %d", status);
    kill(pid, SIGKILL);
    close(end);
}

/* Whoever reads the standard error has stopped: a notice does not hold up the step that it comes up in. */
static void test_nobody_reads_notices(void) {
    char block[4096] = {0};
    stub_reset(1);
    unlink(fl_temp_path("err.txt"));
    CU_ASSERT_FATAL(!mkfifo(fl_temp_path("err.txt"), 0600));
    const int reader = open(fl_temp_path("err.txt"), O_RDONLY | O_NONBLOCK | O_CLOEXEC),
              writer = open(fl_temp_path("err.txt"), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    while (write(writer, block, sizeof block) > 0) {
    }
    pid_t pid = foldline_start((char *[]){ARG("foldline"), ARG("live"), ARG("--policy"), ARG("assure"),
                                          ARG("--control"), ARG("--grace-ms"), ARG("500"), NULL});
    UNTIL(stub->reads > 3);
    stub->gpu[0].limit_mw = 123000; /* somebody else sets it: that is told */
    const unsigned reads = stub->reads;
    int status = 0;
    bool ended = false;
    UNTIL(stub->reads > reads + 15 || (ended = waitpid(pid, &status, WNOHANG) == pid));
    FL_CHECK(!ended, "it was ended in the step, status %d", status);
    if (!ended) {
        kill(pid, SIGTERM);
        size_t size;
        const int code = exit_of(pid);
        char *text = fl_temp_slurp(fl_temp_path("out.txt"), &size);
        FL_CHECK(!code && text && strstr(text, "1 notices were not written"), "exit status %d: %s", code,
                 text ? text : "");
        free(text);
    }
    close(reader);
    close(writer);
    unlink(fl_temp_path("err.txt"));
}

static const fl_case CASES[] = {{"a disk that stands still", test_stalled_disk},
                                {"lost steps", test_lost_steps},
                                {"a full disk", test_full_disk},
                                {"a disk that never comes back", test_disk_that_never_comes_back},
                                {"nobody reads notices", test_nobody_reads_notices}};

static void open_stub(void) {
    signal(SIGPIPE, SIG_IGN);
    stub_open(1);
}

FL_SUITE_OF("live_log", CASES, .program = foldline_main, .open = open_stub, .close = stub_close)
