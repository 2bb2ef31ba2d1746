/* `foldline synth`. */
#include "harness/cmd/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/input/platform/platform.h"
#include "models/laws/device.h"
#include "sim/synth/synth.h"
#include "traces/files/files.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "synth", "[WHAT] -o TRACE.csv [options]",
    "Generates a kernel trace and its kinds file (TRACE.kinds.csv) from a seed, or WHAT.",
    "The clocks of the recording are the default clocks of --platform (generic; for --apps rtx3080ti).\n\n"
    "WHAT is one of these; foldline synth WHAT --help says more.\n\n"};

typedef struct fl_mix {
    const char *kinds;
    uint64_t seed;
    double seconds, mean_us;
} fl_mix;

/* A synthetic trace, or that of a mix, and its kinds beside it: complete by themselves. */
static fl_status write_trace(const char *path, const fl_synth_options *o, const fl_mix *m, const char *platform,
                             fl_diag *d) {
    fl_platform p = {0};
    fl_kernel_trace t = {0};
    fl_kinds k = {0};
    char *kinds = NULL;
    fl_status s = fl_platform_open(platform, 0, &p, d);
    if (!s && m)
        s = fl_kinds_read(m->kinds, &k, d);
    if (!s) {
        const fl_device *dev = &p.node.device[p.node.gpu[0]];
        const double sm = dev->default_sm_mhz, mem = dev->default_mem_mhz;
        s = m ? fl_synth_mix(&k, m->seed, m->seconds, m->mean_us, sm, mem, &t, d)
              : fl_synth_trace(o, sm, mem, &t, &k, d);
    }
    if (!s)
        s = fl_kinds_beside(path, &t.head, &kinds, d);
    if (!s && (!m || strcmp(kinds, m->kinds) != 0))
        s = fl_kinds_write(kinds, &k, d);
    if (!s)
        s = fl_kernels_write(path, &t, d);
    if (!s)
        printf("written: %s (%zu kernels of %zu %s), %s\n", path, t.op_count, t.kind_count,
               m ? "programs" : "kernel classes", kinds);
    free(kinds);
    fl_kernel_trace_free(&t);
    fl_kinds_free(&k);
    fl_platform_free(&p);
    return s;
}

static fl_status write_apps(const char *path, uint32_t drawn, uint64_t seed, const char *platform, fl_diag *d) {
    fl_platform p = {0};
    fl_programs programs = {0};
    fl_kinds k = {0};
    char *kinds = NULL;
    fl_status s = fl_platform_open(platform, 0, &p, d);
    if (!s)
        s = fl_synth_apps(&p.node.device[p.node.gpu[0]], drawn, seed, &programs, &k, d);
    if (!s)
        s = fl_kinds_beside(path, &programs.head, &kinds, d);
    if (!s)
        s = fl_kinds_write(kinds, &k, d);
    if (!s)
        s = fl_programs_write(path, &programs, d);
    if (!s)
        printf("written: %s (%zu programs), %s (%zu kernel classes)\n", path, programs.program_count, kinds, k.count);
    free(kinds);
    fl_programs_free(&programs);
    fl_kinds_free(&k);
    fl_platform_free(&p);
    return s;
}

int fl_cmd_synth(int argc, char **argv) {
    char details[1024];
    fl_command_help own = help;
    const int used = snprintf(details, sizeof details, "%s", help.details);
    fl_parts_text("synth", details + used, sizeof details - (size_t)used);
    own.details = details;
    fl_synth_options o = fl_synth_standard;
    int64_t seed = 1, kernels = (int64_t)o.kernels, kinds = o.kinds, streams = o.streams, gpus = o.gpus;
    int64_t apps = -1;
    const char *output = NULL, *platform = NULL, *mix = NULL;
    double seconds = 60;
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &output, 0, 0, "the trace to write", FL_FOR_OUTPUT | FL_MOST_USED},
        {"seed", "N", FL_OPTION_INT, &seed, 0, 9e15, "seed (1)", FL_MOST_USED},
        {"kernels", "N", FL_OPTION_INT, &kernels, 1, 2e9, "kernels in all (10000)", FL_MOST_USED},
        {"kinds", "N", FL_OPTION_INT, &kinds, 1, 65535, "kernel classes (32)"},
        {"streams", "N", FL_OPTION_INT, &streams, 1, 256, "streams per GPU (1)", FL_MOST_USED},
        {"gpus", "N", FL_OPTION_INT, &gpus, 1, 1024, "GPUs (1)", FL_MOST_USED},
        {"mean-us", "X", FL_OPTION_REAL, &o.mean_us, 0.001, 1e9, "mean length of a kernel (200)"},
        {"gap-us", "X", FL_OPTION_REAL, &o.gap_us, 0, 1e9, "mean host time before a kernel (5)"},
        {"memory", "X", FL_OPTION_REAL, &o.memory, 0, 1, "share of memory-bound kernel classes (0.5)"},
        {"sm-demand", "X", FL_OPTION_REAL, &o.sm_demand, 0, 1,
         "share of the SMs a kernel uses; 0 = random for each kernel class (1)"},
        {"burst", "X", FL_OPTION_REAL, &o.burst, 1, 1e6, "kernels of one class in a row, mean (4)"},
        {"mix", "KINDS.csv", FL_OPTION_TEXT, &mix, 0, 0,
         "programs that run side by side: one process for each kernel class of the file"},
        {"seconds", "X", FL_OPTION_REAL, &seconds, 0.000001, 1e6, "of a mix: how long each program takes alone (60)"},
        {"apps", "N", FL_OPTION_INT, &apps, 0, 1000,
         "programs instead of a trace: the 17 applications of MF-GPOEO's Fig. 7 and N drawn like them"},
        {"launches", NULL, FL_OPTION_FLAG, &o.launches, 0, 0, "records launch times, one host thread per stream"},
        {"platform", "NAME", FL_OPTION_TEXT, &platform, 0, 0, "whose default clocks it is recorded at"},
    };
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &own, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    o.seed = (uint64_t)seed;
    o.kernels = (uint64_t)kernels;
    o.kinds = (uint32_t)kinds;
    o.streams = (uint32_t)streams;
    o.gpus = (uint32_t)gpus;
    fl_diag d = {0};
    if (!platform)
        platform = apps >= 0 ? "rtx3080ti" : "generic";
    fl_status s = !output || rest.count ? fl_refuse(&d, "expected options and -o TRACE.csv only")
                  : apps >= 0           ? write_apps(output, (uint32_t)apps, (uint64_t)seed, platform, &d)
                              : write_trace(output, &o, mix ? &(fl_mix){mix, (uint64_t)seed, seconds, o.mean_us} : NULL,
                                            platform, &d);
    return fl_command_close("synth", s, &d, option, sizeof option / sizeof *option, &rest);
}
