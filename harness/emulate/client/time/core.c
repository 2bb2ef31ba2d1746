/* Virtual time inside a program: the clock page, requests to the server, waits, and lines of waiters. */
#include "harness/emulate/client/time/inside.h"

#include "harness/emulate/client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LOOKS_FREE 1000 /* looks at the clock without a sleep; each further one takes a microsecond */
#define LOOK_NS 1000
#define S_NS INT64_C(1000000000)

static fl_clock_page *page;
static bool tried;
static _Thread_local struct {
    bool in_core, ended, begun;
    unsigned looks;
} self __attribute__((tls_model("initial-exec")));

static _Noreturn void gone(void) {
    static const char text[] = "foldline emulate has gone: virtual time has ended\n";
    (void)!REAL(write)(2, text, sizeof text - 1);
    _exit(3);
}

static void leave_core(void) { self.in_core = false; }

int fl_time_ask(fl_ask *q, fl_answer *a) {
    self.in_core = true;
    const int r = fl_link_ask(q, a);
    if (r)
        gone();
    return a->result;
}

uint64_t fl_time_number(fl_ask *q) {
    fl_answer answer;
    uint64_t value = 0;
    (void)fl_time_ask(q, &answer);
    if (answer.size == sizeof value)
        memcpy(&value, answer.bytes, sizeof value);
    return value;
}

uint64_t fl_time_say(fl_ask_op op, uint32_t a, uint32_t b) {
    fl_ask q;
    memset(&q, 0, sizeof q);
    q.op = op;
    q.a = a;
    q.b = b;
    return fl_time_number(&q);
}

static void refuse(const char *call) {
    if (fl_time_on())
        fl_time_fail(call);
}

/* A Go program makes system calls past the C library: the server hears of all its calls from the kernel instead. */
static bool is_go(void) { return fl_image_of("/proc/self/exe") == FL_IMAGE_GO; }

static void attach(void) {
    char path[128];
    const char *folder = getenv(FL_EMULATE_VARIABLE);
    tried = true;
    if (!folder || is_go() || snprintf(path, sizeof path, "%s/" FL_EMULATE_CLOCK, folder) >= (int)sizeof path)
        return;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return;
    page = at;
    self.begun = true;
    fl_link_when_answered(leave_core);
    (void)fl_time_say(FL_TIME_HELLO, 0, 0);
    fl_raw_catch(refuse);
}

__attribute__((constructor(101))) static void start(void) {
    if (!tried)
        attach();
}

bool fl_time_on(void) {
    if (!tried)
        attach();
    return page && !self.ended && !self.in_core;
}

void fl_time_begin(uint64_t number) {
    self.ended = false;
    self.begun = true;
    self.looks = 0;
    (void)fl_time_say(FL_TIME_BEGIN, (uint32_t)number, 0);
    fl_raw_catch(refuse);
}

void fl_time_end(void) {
    fl_ask q;
    if (!fl_time_on())
        return;
    memset(&q, 0, sizeof q);
    q.op = FL_TIME_LEAVE;
    self.ended = true;
    if (fl_link_tell(&q))
        gone();
}

_Noreturn void fl_time_fail(const char *call) {
    fl_ask q;
    memset(&q, 0, sizeof q);
    q.op = FL_TIME_FAIL;
    strncpy(q.text, call, sizeof q.text - 1);
    fl_answer a;
    (void)fl_time_ask(&q, &a); /* the server ends the session */
    _exit(3);
}

static int64_t now_of_page(void) { return atomic_load_explicit(&page->now_ns, memory_order_relaxed); }

static int sleep_for(int64_t t) {
    fl_ask q;
    fl_answer a;
    memset(&q, 0, sizeof q);
    q.op = FL_TIME_SLEEP;
    q.wide = (uint64_t)t;
    return fl_time_ask(&q, &a);
}

static bool alone(int64_t t) {
    return !atomic_load_explicit(&page->owed, memory_order_relaxed) &&
           t < atomic_load_explicit(&page->horizon_ns, memory_order_relaxed);
}

int fl_time_sleep(int64_t t) {
    if (t > now_of_page()) /* sleeps that last nothing are looks */
        self.looks = 0;
    else if (++self.looks % LOOKS_FREE == 0)
        return sleep_for(t);
    if (alone(t)) { /* nobody else wants to run before: the clock is moved here */
        if (t > now_of_page())
            atomic_store(&page->now_ns, t);
        return FL_WOKEN_TIME;
    }
    return sleep_for(t);
}

void fl_time_spin(void) {
    if (++self.looks <= LOOKS_FREE)
        return;
    const int64_t t = now_of_page() + LOOK_NS;
    /* Now and then it gives way even where nobody's time has come: another may wait for what it did before it spins. */
    if (self.looks % LOOKS_FREE && alone(t))
        atomic_store(&page->now_ns, t);
    else
        (void)sleep_for(t);
}

int64_t fl_time_now(bool looking) {
    if (looking && atomic_load_explicit(&page->owed, memory_order_relaxed)) {
        (void)sleep_for(0); /* what its readings took */
        self.looks = 0;     /* time passes: it does not spin */
    }
    if (looking)
        fl_time_spin();
    return now_of_page();
}

static int wait_for(fl_time_look *look, void *of, int64_t until, bool interrupted, bool io) {
    bool again = false;
    while (!look(of)) {
        self.looks = 0; /* a lock that was free is no wait: whoever spins takes many */
        fl_ask q;
        fl_answer a;
        memset(&q, 0, sizeof q);
        q.op = FL_TIME_WAIT;
        q.a = again;
        q.b = io;
        q.wide = (uint64_t)until;
        const int woken = fl_time_ask(&q, &a);
        if (woken == FL_WOKEN_TIME)
            return look(of) ? 0 : ETIMEDOUT;
        if (woken == FL_WOKEN_SIGNAL && fl_link_signalled() && interrupted)
            return look(of) ? 0 : EINTR;
        again = woken == FL_WOKEN_LOOK;
    }
    return 0;
}

int fl_time_wait(fl_time_look *look, void *of, int64_t until, bool interrupted) {
    return wait_for(look, of, until, interrupted, false);
}
int fl_time_wait_io(fl_time_look *look, void *of, int64_t until) { return wait_for(look, of, until, true, true); }

bool fl_time_is_output(uint64_t dev, uint64_t ino) {
    return (page->out[0][0] == dev && page->out[0][1] == ino) || (page->out[1][0] == dev && page->out[1][1] == ino);
}

uint32_t fl_time_fdinfo(int fd, const char *key, uint32_t none) {
    char path[64], line[128];
    const size_t size = strlen(key);
    uint32_t value = none;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, size))
            value = (uint32_t)strtoul(line + size, NULL, 10);
    if (f)
        fclose(f);
    return value;
}

/* ---- clocks ---- */

int64_t fl_time_base(clockid_t clock) { return fl_virtual_base(clock, page->realtime_ns); }

struct timespec fl_time_spec(int64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / S_NS), .tv_nsec = (long)(ns % S_NS)};
}

static int64_t ns_of(const struct timespec *t) {
    return t->tv_sec >= FL_VIRTUAL_FOREVER / S_NS - 1 ? FL_VIRTUAL_FOREVER : (int64_t)t->tv_sec * S_NS + t->tv_nsec;
}

int64_t fl_time_of(clockid_t clock, const struct timespec *t) {
    const int64_t ns = t ? ns_of(t) : FL_VIRTUAL_FOREVER;
    return ns == FL_VIRTUAL_FOREVER ? ns : ns - fl_time_base(clock);
}

int64_t fl_time_after(const struct timespec *t) {
    const int64_t ns = t ? ns_of(t) : FL_VIRTUAL_FOREVER;
    const int64_t now = fl_time_now(true);
    return fl_virtual_after(now, ns);
}

/* ---- lines ---- */

static fl_line *lines;

void fl_line_join(fl_line *me, const void *key) {
    fl_line **at = &lines;
    while (*at)
        at = &(*at)->next;
    *me = (fl_line){.key = key};
    *at = me;
}

void fl_line_leave(fl_line *me) {
    for (fl_line **at = &lines; *at; at = &(*at)->next)
        if (*at == me) {
            *at = me->next;
            return;
        }
}

int fl_line_wake(const void *key, int most) {
    int n = 0;
    for (fl_line **at = &lines; *at && n < most;) {
        fl_line *l = *at;
        if (l->key != key) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        l->woken = true;
        n++;
    }
    return n;
}

bool fl_line_woken(void *me) { return ((const fl_line *)me)->woken; }
void fl_line_forget(void) { lines = NULL; }
