/* Which parts of a node are simulated, and how: what a user may switch on, off or make ideal to see what it does. */
#pragma once

#include "harness/base/cli/args.h"
#include "harness/base/json/json.h"
#include "models/laws/device.h"

typedef struct fl_node_choice {
    const char *wall;     /* "real", "ideal" or "off"; NULL = real */
    bool heat;            /* heat is off unless asked for: it makes time matter */
    bool no_contention;   /* no interference between kernels that share the bandwidth */
    bool no_cpu;          /* host time as recorded, no CPU power */
    bool no_gating;       /* an idle GPU keeps its power */
    int64_t units;        /* seed of the variation between units; 0 = all alike */
    const char *hosts;    /* FL_HOSTS_ONE or FL_HOSTS_PER_GPU; NULL = one */
    const char *records;  /* "cost", "free" or "both"; NULL = cost */
    const char *actuator; /* from a call that sets a clock until it is in force, "20ms" or "0"; NULL = the platform's */
    double gpu_budget_w;  /* of all GPUs together; 0 = the platform's */
    double cpu_power;     /* CPU power by this factor; 0 = 1 */
    double bus_share;     /* an APU's bus reaches this share of its peak; 0 = as the platform says */
    double bus_spread;    /* and this share of the peak less or more, anew each period; 0 = no wider */
} fl_node_choice;

#define FL_RECORDS_BOTH "both"
#define FL_HOSTS_ONE "one"
#define FL_HOSTS_PER_GPU "per-gpu"

/* Applies it to a platform's node. The devices of a varied node are its GPUs' own. FL_BAD_INPUT for an unknown word, or
 * a part that the platform does not describe. */
fl_status fl_node_choose(fl_node_spec *node, const fl_node_choice *c, fl_diag *d);

/* Fills what *c leaves open from *rest. */
void fl_node_choice_merge(fl_node_choice *c, const fl_node_choice *rest);
/* The keys of an experiment that was checked (harness/input/experiment/keys.h); what is set already stays. */
fl_status fl_node_choice_read(const fl_json *root, fl_node_choice *c, fl_diag *d);

/* clang-format off */
#define FL_NODE_OPTIONS(c)                                                                                             \
    {"wall", "HOW", FL_OPTION_TEXT, &(c).wall, 0, 0, "power wall: real, ideal or off (real)"},                         \
    {"heat", NULL, FL_OPTION_FLAG, &(c).heat, 0, 0, "simulates heat: temperature, leakage, thermal limit"},            \
    {"no-interference", NULL, FL_OPTION_FLAG, &(c).no_contention, 0, 0,                                                \
     "kernels that share the bandwidth lose nothing by it"},                                                           \
    {"no-cpu", NULL, FL_OPTION_FLAG, &(c).no_cpu, 0, 0, "leaves the host CPU out"},                                    \
    {"no-gating", NULL, FL_OPTION_FLAG, &(c).no_gating, 0, 0, "an idle GPU is never power-gated"},                     \
    {"units", "SEED", FL_OPTION_INT, &(c).units, 1, 9e15, "makes the GPUs differ, as units of one model do"},          \
    {"records", "HOW", FL_OPTION_TEXT, &(c).records, 0, 0,                                                             \
     "kernel records: cost (they take time, as the platform states), free, or both (to compare) (cost)"},              \
    {"cpu-power-scale", "X", FL_OPTION_REAL, &(c).cpu_power, 0.01, 100, "multiplies the CPU's power"},                 \
    {"bus-share", "X", FL_OPTION_REAL, &(c).bus_share, 0.01, 1, "share of its peak that an APU's bus reaches"},        \
    {"bus-spread", "X", FL_OPTION_REAL, &(c).bus_spread, 0, 0.5, "by how much of the peak that share varies"},         \
    {"actuator", "TIME", FL_OPTION_TEXT, &(c).actuator, 0, 0,                                                          \
     "time from setting a GPU's clock until it takes effect, such as 20ms, or 0"},                                     \
    {"setting-hosts", "HOW", FL_OPTION_TEXT, &(c).hosts, 0, 0,                                                         \
     "who reads and sets the GPUs: one process, all in turn, or per-gpu (one; of a pipeline per-gpu)"},                \
    {"gpu-budget", "W", FL_OPTION_REAL, &(c).gpu_budget_w, 1, 1e7, "power budget of all GPUs, divided into limits"}
/* clang-format on */
