/* libfoldline: recorded GPU work replayed under clock policies, for programs that embed it.
 *
 * A scene is a recorded workload on a platform. Open one from a file or from arrays, run policies over it, read energy,
 * time and a time line, and close it. A scene does not change once it is open: threads may run it side by side. The
 * library has no state of its own beside that, prints nothing and never ends the program.
 *
 * A function that can fail returns FOLDLINE_OK or the reason, and fills *e (NULL: not wanted). Times are in s, powers
 * in W, energies in J, clocks in MHz. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum foldline_status {
    FOLDLINE_OK,
    FOLDLINE_BAD_INPUT, /* a file, a name or a value is wrong */
    FOLDLINE_SYSTEM     /* a file cannot be read, or memory ran out */
} foldline_status;

typedef struct foldline_error {
    foldline_status status;
    char text[512]; /* "file:line:column: what, expected what" */
} foldline_error;

typedef struct foldline_scene foldline_scene;

/* Return the version, such as "1.0.0". The text is static. */
const char *foldline_version(void);
/* Return the name of a built-in policy by its index from 0 on; NULL beyond the last one. The text is static. */
const char *foldline_policy_name(size_t index);

typedef struct foldline_options { /* all 0: one GPU or as many as the work uses, seed 1 */
    const char *platform;         /* a name such as "a100", or a path to a platform file; required */
    const char *workload;         /* of a sweep or of programs: which one; NULL = the only one */
    const char
        *assume;   /* bottleneck of kernels nothing is known of: "compute", "balanced", "memory"; NULL = an error */
    uint32_t gpus; /* 0 = as many as the platform has, or the trace uses */
    uint64_t seed; /* of sensors and policies; 0 = 1 */
} foldline_options;

/* Open a scene from a file: a kernel trace of any format that foldline import reads, a sweep, or programs. The scene
 * copies what it needs; free it with foldline_close. */
foldline_status foldline_open(const char *file, const foldline_options *o, foldline_scene **scene, foldline_error *e);

typedef struct foldline_kernel { /* one that ran */
    const char *name;
    int64_t start_ns, end_ns;
    int32_t device, stream;
} foldline_kernel;

typedef struct foldline_kind { /* how the kernels of a name depend on clocks */
    const char *name;          /* "*" = any other kernel */
    double core, memory;       /* shares of its time that scale with the SM and with the memory clock, from 0 to 1 */
    double core_power, memory_power; /* shares of the board's core and memory power, from 0 to 1 */
} foldline_kind;

/* Open a scene from kernels that ran at the given clocks. kinds may be NULL where o->assume says what to take. */
foldline_status foldline_open_kernels(const foldline_kernel *kernel, size_t count, double sm_mhz, double mem_mhz,
                                      const foldline_kind *kind, size_t kinds, const foldline_options *o,
                                      foldline_scene **scene, foldline_error *e);
/* Accepts NULL. */
void foldline_close(foldline_scene *scene);

/* Write the first `room` SM clocks of the first GPU, ascending, into mhz. Return how many there are. */
size_t foldline_clocks(const foldline_scene *scene, double *mhz, size_t room);

struct fl_policy; /* foldline/policies/policy.h: a policy's descriptor, as of a plug-in */

typedef struct foldline_run_options {
    const char *policy;          /* "assure", "fixed:power_limit_w=200"; NULL = the driver's default */
    const struct fl_policy *own; /* a policy of the caller's program, in place of a name; NULL = none */
    double every_s;              /* spacing of the time line, 1e-9 s or more; 0 = none */
} foldline_run_options;

typedef struct foldline_point { /* of one GPU */
    double t_s;                 /* at the end of its interval */
    uint32_t gpu;
    double sm_mhz, mem_mhz, limit_w; /* in force at that time */
    double power_w;                  /* mean over the interval */
} foldline_point;

typedef struct foldline_result {
    double energy_j;      /* of the GPUs; on an APU of the node */
    double node_energy_j; /* with the host */
    double time_s;        /* until the work is done */
    double mean_power_w, peak_power_w;
    uint64_t kernels, switches; /* kernels that ran, changes of a clock */
    uint64_t faults;            /* commands of the policy that mean nothing on this machine */
    foldline_point *point;      /* points, by time, then by GPU; NULL without every_s */
    size_t points;
} foldline_result;

/* Run a policy over a scene to its end. Free the result with foldline_result_free, also after a failure. */
foldline_status foldline_run(const foldline_scene *scene, const foldline_run_options *o, foldline_result *r,
                             foldline_error *e);
/* Accepts a zeroed result. */
void foldline_result_free(foldline_result *r);

#ifdef __cplusplus
}
#endif
