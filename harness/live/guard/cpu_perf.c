#include "harness/live/guard/cpu_perf.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    uint32_t type;
    uint64_t config;
} EVENT[] = {[FL_PERF_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
             [FL_PERF_UOPS_AMD] = {PERF_TYPE_RAW, 0x00c1},
             [FL_PERF_UOPS_INTEL] = {PERF_TYPE_RAW, 0x02c2}};

void fl_perf_open(fl_perf *k, uint32_t cores, fl_perf_event event) {
    if (!(k->fd = calloc(cores + 1, sizeof *k->fd)))
        return;
    for (uint32_t i = 0; i < cores; i++) {
        struct perf_event_attr a = {.type = EVENT[event].type, .size = sizeof a, .config = EVENT[event].config};
        long fd = syscall(SYS_perf_event_open, &a, -1, (int)i, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0)
            break;
        k->fd[k->count++] = (int)fd;
    }
    if (k->count < cores) /* a part of the CPUs would look like an idle machine */
        while (k->count)
            close(k->fd[--k->count]);
}

bool fl_perf_read(const fl_perf *k, double *sum) {
    *sum = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        uint64_t value;
        if (read(k->fd[i], &value, sizeof value) != sizeof value)
            return false;
        *sum += (double)value;
    }
    return k->count > 0;
}

void fl_perf_close(fl_perf *k) {
    while (k->count)
        close(k->fd[--k->count]);
    free(k->fd);
}
