/* Programs that run under a command, and what each vendor's library offers a policy. */
#include "harness/live/host/host.h"

#include "harness/live/guard/guard.h"
#include "harness/log/log.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "sim/node/node.h"
#include "traces/io/io.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FL_PROGRAM_GRACE_NS INT64_C(5000000000)

/* ---- programs that run under a command ---- */

static void become(char *const *command, const char *const *environment, const sigset_t *mask) {
    const int ours[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD}; /* what we were started to ignore, it ignores too */
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!fl_stop_ignored(ours[i]))
            signal(ours[i], SIG_DFL);
    signal(SIGPIPE, SIG_DFL); /* ignored by fl_stop_listen */
    sigprocmask(SIG_SETMASK, mask, NULL);
    for (; *environment; environment += 2)
        if (setenv(environment[0], environment[1], 1)) {
            fprintf(stderr, "foldline record: cannot set %s: %s\n", environment[0], fl_reason(errno));
            _exit(127);
        }
    execvp(command[0], command);
    fprintf(stderr, "foldline record: cannot run %s: %s\n", command[0], fl_reason(errno));
    _exit(127);
}

fl_status fl_program_start(fl_program *p, char *const *command, const char *const *environment, fl_diag *d) {
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGHUP);
    sigprocmask(SIG_BLOCK, &stops, &before); /* until its handlers are its own, one sent to it would be ours and lost */
    p->pid = fork();
    if (!p->pid)
        become(command, environment, &before);
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (p->pid > 0)
        return FL_OK;
    p->pid = 0;
    return fl_error(d, FL_IO, "cannot start %s: %s", command[0], fl_reason(error));
}

bool fl_program_look(fl_program *p) {
    int status;
    if (!p->pid || p->ended)
        return p->ended;
    const int signal = fl_stop_hand_on();
    if (signal)
        kill(p->pid, signal);
    const int64_t now = p->limit_ns ? fl_clock_ns() : 0;
    if (p->limit_ns && now >= p->limit_ns) {
        kill(p->pid, p->asked ? SIGKILL : SIGTERM);
        p->asked = true;
        p->limit_ns = now + FL_PROGRAM_GRACE_NS;
    }
    if (waitpid(p->pid, &status, WNOHANG) == p->pid) {
        p->ended = true;
        p->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return p->ended;
}

int64_t fl_program_wake_ns(const fl_program *p, int64_t until_ns) {
    return p->pid && !p->ended && p->limit_ns && p->limit_ns < until_ns ? p->limit_ns : until_ns;
}

void fl_program_wait(fl_program *p) {
    while (p->pid && !fl_program_look(p))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); /* its end cuts it short */
}

/* ---- what a vendor's library offers a policy ---- */

/* The collector of activity records is CUPTI's, that of markers NVTX's (harness/live/collector). */
static bool collects(const char *vendor) { return !strcmp(vendor, "nvidia"); }

void fl_offer_of(fl_offer *o, const fl_policy *p, const char *vendor, bool markers) {
    const uint64_t collected = FL_BIT(FL_GPU_KERNELS) | (markers ? FL_BIT(FL_GPU_ITERATIONS) : 0),
                   counted = collects(vendor) ? collected : 0, reads = fl_vendor_reads(vendor) | counted,
                   host = fl_cpu_host_reads() | FL_HOST_KNOWS;
    *o = (fl_offer){.given = counted};
    o->here = fl_policy_where(p, reads, o->row);
    const fl_reads asked = fl_reads_of(p), here = fl_reads_of(&o->here);
    const bool records = asked.records || asked.gpu_needs & FL_BIT(FL_GPU_KERNELS);
    o->without = asked.gpu_uses & ~reads;
    o->gpu = here.gpu_needs & ~reads & ~FL_BIT(FL_GPU_KERNELS);
    o->host = asked.host_needs & ~host;
    o->instead_of = asked.gpu_needs & ~here.gpu_needs;
    o->stand_ins = asked.gpu_instead & ~here.gpu_instead;
    o->records = records && collects(vendor);
    o->markers = asked.gpu_needs & counted & FL_BIT(FL_GPU_ITERATIONS);
    o->no_records = records && !collects(vendor);
    o->may_mark = asked.gpu_uses & counted & FL_BIT(FL_GPU_ITERATIONS);
    o->may_record = !records && collects(vendor) && fl_takes_kernels(p);
    const uint64_t signals = asked.gpu | (asked.host_needs & ~FL_HOST_KNOWS);
    o->sees = !signals || here.gpu & reads || asked.host_needs & host & ~FL_HOST_KNOWS;
}

static void add_names(char *text, size_t size, fl_row_set set, uint64_t bits) {
    for (size_t i = 0; i < fl_rows_count(set); i++) {
        const size_t at = strlen(text);
        const char *comma = at && text[at - 1] != ' ' ? ", " : "";
        if (bits >> i & 1)
            snprintf(text + at, size - at, "%s%s", comma, fl_rows_at(set, i)->name);
    }
}

static void add_text(char *text, size_t size, const char *more) {
    const size_t at = strlen(text);
    snprintf(text + at, size - at, "%s", more);
}

void fl_offer_instead(const fl_offer *o, char *text, size_t size) {
    *text = '\0';
    if (!o->instead_of)
        return;
    add_names(text, size, FL_ROWS_GPU_SIGNAL, o->stand_ins);
    add_text(text, size, " instead of ");
    add_names(text, size, FL_ROWS_GPU_SIGNAL, o->instead_of);
}

void fl_offer_text(const fl_offer *o, char *text, size_t size) {
    const bool lacks = o->gpu || o->host || o->no_records;
    fl_offer_instead(o, text, size);
    if (lacks) {
        add_text(text, size, *text ? "; lacks " : "lacks ");
        add_names(text, size, FL_ROWS_GPU_SIGNAL, o->gpu);
        add_names(text, size, FL_ROWS_HOST_SIGNAL, o->host);
        if (o->no_records)
            add_text(text, size, o->gpu || o->host ? ", activity records" : "activity records");
        add_text(text, size, o->sees && !o->no_records ? ": may never decide" : ": cannot decide");
    } else if (!*text) {
        add_text(text, size, "all");
    }
    if (o->records)
        add_text(text, size, ", activity records by the collector");
    if (o->markers)
        add_text(text, size, ", markers by the collector");
    if (o->without) {
        add_text(text, size, lacks ? "; does without " : ", without ");
        add_names(text, size, FL_ROWS_GPU_SIGNAL, o->without);
    }
    if (o->may_record)
        add_text(text, size,
                 o->may_mark ? ", with activity records and markers if the collector runs"
                             : ", with activity records if the collector runs");
    if (fl_reads_of(&o->here).server_needs)
        add_text(text, size, ", a server's page by --server");
}
