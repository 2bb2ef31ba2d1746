#include "harness/live/commands.h"
#include "harness/live/cpu_host.h"
#include "harness/live/gpu_host.h"
#include "harness/live/locks.h"
#include "harness/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const fl_command_help help = {
    "doctor", "[--gpus LIST]", "Says what this user may read and set on each GPU, why not, and what would change that.",
    "Reads only. A clock lock that somebody else set cannot be read: restoring after control takes it off."};

enum { CAP_SYS_ADMIN_BIT = 21 };

/* The drivers ask for CAP_SYS_ADMIN, not for a user id. */
static bool may_administrate(void) {
    char line[256];
    uint64_t caps = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "CapEff: %" SCNx64, &caps) == 1)
            break;
    if (f)
        fclose(f);
    return caps >> CAP_SYS_ADMIN_BIT & 1;
}

static void tell_signals(const fl_gpus *g, uint32_t i, fl_diag *d) {
    fl_gpu_sample s = {0};
    fl_diag gone = {0};
    const uint64_t all = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1;
    if (g->back->read(g->self, i, all, 0, &s, &gone)) {
        printf("  reads       nothing: %s\n", gone.message);
        *d = gone;
        return;
    }
    printf("  reads      ");
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        if (fl_gpu_known(&s, id)) {
            char text[32];
            const fl_row_info *row = fl_rows_at(FL_ROWS_GPU_SIGNAL, (size_t)id);
            printf(" %s=%s%s", row->name, fl_cell_text(s.value[id], text), row->unit);
        }
    printf("\n  cannot read");
    for (int id = 0; id < FL_GPU_SIGNAL_COUNT; id++)
        if (!fl_gpu_known(&s, id))
            printf(" %s", fl_rows_at(FL_ROWS_GPU_SIGNAL, (size_t)id)->name);
    printf(" (no call, or not supported by this GPU; profiling values need two readings 100 ms apart)\n");
}

static void tell_control(const char *name, const char *hindrance, bool may) {
    if (hindrance)
        printf("  %-11s cannot be set: %s\n", name, hindrance);
    else if (!may)
        printf("  %-11s not by this user: needs CAP_SYS_ADMIN. Administrator: run foldline live as root (see "
               "foldline.service)\n",
               name);
    else
        printf("  %-11s may be set\n", name);
}

static void tell_controls(const fl_gpus *g, uint32_t i, bool may) {
    const fl_nvml *n = fl_gpu_host_library(g);
    fl_nvml_device dev = fl_gpu_host_device(g, i);
    fl_gpu_facts f;
    int virtual_mode = 0, persistent = 1;
    unsigned mig = 0, pending = 0, mw = 0;
    const char *none = NULL;
    if (g->back->facts(g->self, i, &f, NULL))
        return;
    if (n->virtualization && !n->virtualization(dev, &virtual_mode) && virtual_mode == 2)
        none = "a virtual GPU; its host decides";
    tell_control("SM clock",
                 none          ? none
                 : !n->lock_sm ? "the library is too old to lock clocks"
                 : !f.sm.count ? "the GPU lists no clocks"
                               : NULL,
                 may);
    if (f.sm.count)
        printf("              %u clocks, %g to %g MHz\n", f.sm.count, fl_ladder_min(f.sm), fl_ladder_max(f.sm));
    tell_control("memory",
                 none              ? none
                 : !n->lock_mem    ? "the library is too old to lock memory clocks"
                 : f.mem.count < 2 ? "the GPU lists one memory clock only"
                                   : NULL,
                 may);
    tell_control("power limit",
                 none                            ? none
                 : f.power_max_w > f.power_min_w ? NULL
                                                 : "the GPU has no range of limits",
                 may);
    if (n->limit && !n->limit(dev, &mw))
        printf("              %g W now, %g to %g W, %g W by default\n", mw * 1e-3, f.power_min_w, f.power_max_w,
               f.power_default_w);
    if (n->mig && !n->mig(dev, &mig, &pending) && mig)
        printf("  note        MIG is on: utilisation is not reported, and clocks hold for all instances\n");
    if (n->persistence && !n->persistence(dev, &persistent) && !persistent)
        printf("  note        persistence mode is off: locks and limits end when the last client closes the GPU.\n"
               "              Administrator: nvidia-smi -pm 1, or keep a client open\n");
}

static void tell_state(const char *unit) {
    fl_record r;
    bool found = false;
    fl_diag d = {0};
    const pid_t holder = fl_lock_holder(fl_state_folder(), unit);
    if (holder)
        printf("  state       controlled by process %d\n", (int)holder);
    if (fl_record_read(fl_state_folder(), unit, &r, &found, &d))
        printf("  state       %s\n", d.message);
    else if (found && !holder)
        printf("  state       a controller left it without restoring: run foldline restore\n");
    fl_record_free(&r);
}

static void tell_cpu(void) {
    fl_cpu_host *c = NULL;
    fl_host_sample s = {0};
    fl_host_facts f;
    const char *root = getenv("FOLDLINE_ROOT");
    const uint64_t all = FL_BIT(FL_HOST_SIGNAL_COUNT) - 1;
    if (fl_cpu_host_open(&c, root ? root : "", all, NULL))
        return;
    fl_cpu_host_facts(c, &f);
    fl_cpu_host_read(c, &s);
    usleep(20000);
    fl_cpu_host_read(c, &s);
    printf("CPU: %s, %u cores\n  reads      ", f.name, f.cores);
    for (int id = 0; id < FL_HOST_SIGNAL_COUNT; id++)
        if (fl_host_known(&s, id))
            printf(" %s", fl_rows_at(FL_ROWS_HOST_SIGNAL, (size_t)id)->name);
    printf("\n");
    if (!fl_host_known(&s, FL_HOST_CPU_ENERGY_J))
        printf("  note        no energy: RAPL is missing or readable by root only. Administrator: chmod a+r "
               "/sys/class/powercap/intel-rapl:*/energy_uj\n");
    if (!fl_host_known(&s, FL_HOST_CPU_CYCLES))
        printf("  note        no cycles: Administrator: sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON\n");
    const struct {
        int control;
        const char *name;
    } CONTROLS[] = {{FL_SET_HOST_CPU_MHZ, "clock"},
                    {FL_SET_HOST_CPU_BOOST, "boost"},
                    {FL_SET_HOST_CPU_POWER_LIMIT_W, "power limit"}};
    for (size_t i = 0; i < sizeof CONTROLS / sizeof *CONTROLS; i++) {
        fl_record r = {0};
        fl_diag d = {0};
        bool writable = !fl_cpu_host_prior(c, FL_BIT(CONTROLS[i].control), &r, &d);
        for (size_t k = 0; k < r.count; k++)
            writable = writable && !access(r.prior[k].key, W_OK);
        if (d.status)
            printf("  %-11s cannot be set: %s\n", CONTROLS[i].name, d.message);
        else
            printf("  %-11s %s\n", CONTROLS[i].name, writable ? "may be set" : "not by this user: needs root");
        fl_record_free(&r);
    }
    tell_state("cpu");
    fl_cpu_host_close(c);
}

static fl_status tell_gpus(const char *list, fl_diag *d) {
    fl_gpus g = {0};
    char driver[80] = "unknown";
    const bool may = may_administrate();
    fl_diag missing;
    fl_status s = fl_gpu_host_open_working(&g, list, &missing, d);
    if (!s && missing.status == FL_BAD_INPUT) {
        fl_gpus_close(&g);
        *d = missing;
    }
    if (d->status)
        return d->status;
    const fl_nvml *n = fl_gpu_host_library(&g);
    if (n->driver)
        n->driver(driver, sizeof driver);
    printf("library %s, driver %s%s\n", n->path, driver, g.back->simulated(g.self) ? ", simulated by foldline" : "");
    for (uint32_t i = 0; i < g.back->count(g.self); i++) {
        fl_gpu_facts f = {.name = "GPU"};
        g.back->facts(g.self, i, &f, NULL);
        printf("GPU %u: %s, %s\n", fl_gpu_host_index(&g, i), f.name, g.back->unit(g.self, i));
        tell_signals(&g, i, d);
        tell_controls(&g, i, may);
        tell_state(g.back->unit(g.self, i));
    }
    fl_gpus_close(&g);
    if (!d->status)
        *d = missing;
    return d->status;
}

int fl_cmd_doctor(int argc, char **argv) {
    fl_texts rest = {0};
    const char *gpus = NULL;
    const fl_option option[] = {
        {"gpus", "LIST", FL_OPTION_TEXT, &gpus, 0, 0, "indices or UUIDs joined by commas (all)"},
    };
    int status = FL_EXIT_OK;
    if (!fl_begin(argc, argv, &help, option, 1, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_status s = rest.count ? fl_fail(&d, FL_BAD_INPUT, NULL, 0, 0, "'%s': expected options only", rest.item[0])
                             : tell_gpus(gpus, &d);
    if (s)
        status = fl_report("doctor", &d);
    if (s != FL_BAD_INPUT)
        tell_cpu();
    fl_texts_free(&rest);
    return status;
}
