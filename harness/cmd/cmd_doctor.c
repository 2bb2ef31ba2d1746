#include "harness/base/command.h"
#include "harness/base/grid.h"
#include "harness/cmd/commands.h"
#include "harness/input/spec.h"
#include "harness/live/cpu_host.h"
#include "harness/live/locks.h"
#include "harness/live/privilege.h"
#include "harness/live/offers.h"
#include "harness/live/reach.h"
#include "harness/live/vendor/vendors.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const fl_command_help help = {
    "doctor", "[--vendor NAME] [--gpus LIST] [--policy NAME]",
    "Says what this user may read and set on each GPU, why not, and what would change that.",
    "Reads only. NVML cannot read a clock lock that somebody else set, ROCm SMI no set of allowed clocks: restoring "
    "after\ncontrol takes them off. Intel's and AMD's GPUs: unproven on hardware."};

static bool nvidia(const fl_gpus *g) { return !strcmp(g->back->vendor, "nvidia"); }

/* NVIDIA's driver asks for CAP_SYS_ADMIN, not for a user id; the others' libraries write files of root. */
static bool may_administrate(const fl_gpus *g) { return nvidia(g) ? fl_privilege_admin() : geteuid() == 0; }

static void tell_signals(const fl_gpus *g, uint32_t i, fl_diag *d) {
    fl_gpu_sample s = {0};
    fl_diag gone = {0};
    const uint64_t all = FL_BIT(FL_GPU_SIGNAL_COUNT) - 1;
    fl_status status = g->back->read(g->self, i, all, 0, &s, &gone);
    usleep(120000); /* differences of counters, and profiling values, need two readings */
    if (!status)
        status = g->back->read(g->self, i, all, 120000000, &s, &gone);
    if (status) {
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
    printf(" (no call, or not supported by this GPU)\n");
}

static void tell_control(const fl_gpus *g, uint32_t i, int control, const char *name, bool may) {
    const char *hindrance = g->back->hindrance(g->self, i, control);
    if (hindrance)
        printf("  %-11s cannot be set: %s\n", name, hindrance);
    else if (!may)
        printf("  %-11s not by this user: needs %s. Administrator: run foldline live as root (see "
               "foldline.service)\n",
               name,
               !nvidia(g)               ? "root"
               : fl_privilege_initial() ? "CAP_SYS_ADMIN"
                                        : "CAP_SYS_ADMIN of the host, not of a user namespace");
    else /* only a set would show whether the board takes it */
        printf("  %-11s may be set, if the board supports it\n", name);
}

static void tell_controls(const fl_gpus *g, uint32_t i, bool may) {
    fl_gpu_facts f;
    char text[256];
    if (g->back->facts(g->self, i, &f, NULL))
        return;
    tell_control(g, i, FL_SET_SM_MHZ, "SM clock", may);
    if (f.sm.count)
        printf("              %u clocks, %g to %g MHz\n", f.sm.count, fl_ladder_min(f.sm), fl_ladder_max(f.sm));
    tell_control(g, i, FL_SET_MEM_MHZ, "memory", may);
    tell_control(g, i, FL_SET_POWER_LIMIT_W, "power limit", may);
    const double limit_w = g->back->limit_w(g->self, i);
    if (!isnan(limit_w))
        printf("              %g W now, %g to %g W, %g W by default\n", limit_w, f.power_min_w, f.power_max_w,
               f.power_default_w);
    for (unsigned n = 0; g->back->note(g->self, i, n, text, sizeof text); n++)
        printf("  note        %s\n", text);
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

/* The last death of a controller that its guardian saw: nobody may have been there to read it. */
static void tell_guardian(void) {
    char line[512], last[512] = "";
    int fd;
    fl_diag d = {0};
    const char *state = fl_state_folder();
    if (fl_state_file(state, "guardian", ".log", O_RDONLY, &fd, &d) == FL_BAD_INPUT)
        printf("guardian: %s: %s\n", d.file, d.message);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (f && fgets(line, sizeof line, f))
        memcpy(last, line, sizeof last);
    if (*last) {
        char when[32] = "";
        char *text = last;
        const time_t at = (time_t)strtoll(last, &text, 10);
        struct tm t;
        if (gmtime_r(&at, &t))
            strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &t);
        text[strcspn(text, "\n")] = '\0';
        printf("guardian: last on %s,%s (%s/guardian.log)\n", when, text, state);
    }
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
}

/* What a policy would miss here. */
static fl_status tell_policy(const fl_policy *p, const fl_gpus *g, fl_diag *d) {
    fl_cpu_host *cpu = NULL;
    fl_reach r = {0};
    const char *root = getenv("FOLDLINE_ROOT");
    fl_status s = fl_gpus_simulated(g) ? FL_OK : fl_cpu_host_open(&cpu, root ? root : "", p->host_needs, d);
    const fl_offer offer = fl_offer_of(p, g->back->vendor);
    if (!s)
        s = fl_reach_of(&offer.here, g, cpu, offer.records, &r, d);
    fl_cpu_host_close(cpu);
    if (s)
        return s;
    char text[512];
    fl_offer_text(&offer, text, sizeof text);
    printf("policy %s\n  %-11s %s\n  signals     %s%s%s\n", p->name, g->back->vendor, text,
           *r.signals ? "cannot be read here: " : "all there", r.signals,
           r.blind      ? "; it has nothing to decide on"
           : *r.signals ? "; it may never decide"
                        : "");
    printf("  controls    %s%s\n", *r.controls ? "cannot be set here: " : "all there", r.controls);
    return FL_OK;
}

static fl_status tell_gpus(const fl_gpus *g, const fl_policy *policy, fl_diag *d) {
    fl_status first = FL_OK;
    const bool may = may_administrate(g);
    printf("%s: library %s, driver %s%s\n", g->back->vendor, g->back->library(g->self), g->back->driver(g->self),
           fl_gpus_simulated(g) ? ", simulated by foldline" : "");
    for (uint32_t i = 0; i < g->back->count(g->self); i++) {
        fl_gpu_facts f = {.name = "GPU"};
        fl_diag gone = {0};
        g->back->facts(g->self, i, &f, NULL);
        printf("GPU %u: %s, %s\n", g->back->index(g->self, i), f.name, g->back->unit(g->self, i));
        tell_signals(g, i, &gone);
        tell_controls(g, i, may);
        tell_state(g->back->unit(g->self, i));
        if (gone.status && !first)
            *d = gone;
        first = first ? first : gone.status;
    }
    return first || !policy ? first : tell_policy(policy, g, d);
}

/* Each vendor that was not ruled out. One that is not here is no failure unless all are missing. */
static fl_status tell_vendors(const char *only, const char *list, const fl_policy *policy, fl_diag *d) {
    char missing[sizeof d->message] = "";
    const bool all = !only || !strcmp(only, "auto");
    fl_status first = FL_OK;
    bool any = false;
    for (size_t i = 0; i < (all ? fl_vendor_count() : 1); i++) {
        fl_gpus g = {0};
        fl_diag why = {0}, silent;
        fl_status s = fl_vendor_open(&g, all ? fl_vendor_name(i) : only, list, &silent, &why);
        const size_t at = strlen(missing);
        if (!s) {
            any = true;
            s = silent.status == FL_BAD_INPUT ? FL_OK : tell_gpus(&g, policy, &why);
            if (!s && silent.status) {
                why = silent;
                s = silent.status;
            }
        } else if (s == FL_HARDWARE) {
            snprintf(missing + at, sizeof missing - at, "%s%.300s", *missing ? "; " : "", why.message);
            s = FL_OK;
        }
        if (s && !first)
            *d = why;
        first = first ? first : s;
        fl_gpus_close(&g);
    }
    if (any && *missing)
        printf("none of the others: %s\n", missing);
    return first || any ? first : fl_error(d, FL_HARDWARE, "%s", missing);
}

int fl_cmd_doctor(int argc, char **argv) {
    fl_texts rest = {0};
    const char *gpus = NULL, *vendor = NULL, *policy = NULL;
    fl_spec spec = {0};
    const fl_option option[] = {
        {"vendor", "NAME", FL_OPTION_TEXT, &vendor, 0, 0, "nvidia, intel or amd; auto = all of them (auto)"},
        {"gpus", "LIST", FL_OPTION_TEXT, &gpus, 0, 0, "indices or UUIDs joined by commas (all)"},
        {"policy", "SPEC", FL_OPTION_TEXT, &policy, 0, 0, "says what that policy would miss here"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_status s = rest.count ? fl_refuse(&d, "'%s': expected options only", rest.item[0]) : FL_OK;
    if (!s && policy)
        s = fl_spec_open(policy, &spec, &d);
    if (!s)
        s = tell_vendors(vendor, gpus, spec.policy, &d);
    if (s)
        status = fl_command_fail("doctor", &d);
    if (s != FL_BAD_INPUT) {
        tell_cpu();
        tell_guardian();
    }
    fl_spec_free(&spec);
    fl_texts_free(&rest);
    return status;
}
