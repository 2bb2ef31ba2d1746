/* MODULE harness/input/policy */
#pragma once

#include "harness/base/cli/cli.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A policy as it is asked for: its name, a label, and settings as pairs of texts. An experiment has these as values; on
 * the command line they are one text, NAME or NAME:parameter=value,parameter=value; CALLED= before it gives its rows a
 * name of their own. */

typedef struct fl_spec {
    char *label;   /* as it was written, or as an experiment calls it */
    fl_texts only; /* shell patterns of the workloads it is for; none = all. Texts borrowed */
    const fl_policy *policy;
    const char *twin_of;    /* kernel records take no time for it, beside one of this label for which they do
                               (harness/study/trial/trial.h); NULL: none */
    const char *plugin;     /* path of the .so it is from; NULL = built in */
    fl_layer layer;         /* of the parameters given with it */
    char *text;             /* owns the name, and names and values of the layer */
    const char **file;      /* of TABLE parameters: their files, by setting; NULL where none */
    fl_table *table;        /* of TABLE parameters, read from the files named; by setting, cell NULL where none */
    fl_plans *plans;        /* of one that is a plan by instruction (traces/pipeline/pipeline.h) instead: see
                               harness/input/scene/scene.h; else NULL */
    size_t plan_place;      /* which of them, */
    const char *plan_param; /* and whose table it becomes */
} fl_spec;

/* Finds the policy and reads the files of table parameters. Names and texts of the layer are copied, and whatever they
 * hold is value; its origin is borrowed. FL_BAD_INPUT for a policy that is not known, a setting without a text (which
 * is told as not of the form parameter=value) and a bad table; other values are checked when an instance is opened.
 * Nothing is to be freed where it fails. */
fl_status fl_spec_open_values(const char *name, const char *label, const fl_layer *given, fl_spec *s, fl_diag *d);
/* The same from the text form, which is its own label unless it says what it is called. */
fl_status fl_spec_open(const char *text, fl_spec *s, fl_diag *d);
/* The same with further settings "parameter=value", which override those of the text. */
fl_status fl_spec_open_set(const char *text, const fl_texts *set, fl_spec *s, fl_diag *d);
void fl_spec_free(fl_spec *s);
/* True where the policy needs kernel records, or switches them. */
bool fl_spec_records(const fl_spec *s);

/* True where a run of so many steps shows nothing of a policy that decides by what it sees: at its first step there is
 * nothing to be seen yet. */
bool fl_spec_unstepped(const fl_spec *s, uint64_t steps);

/* A plug-in may crash, end the program or never return. Then the program ends with one line that names the policy, the
 * step and its time, and with FL_EXIT_SYSTEM. Results are written at the end of a run, so nothing is half-written.
 *
 * What is found: a signal of a fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS) within a call of a
 * policy, also on a stack that ran over; exit() within one, or the end of its thread; a call that takes more processor
 * time than the limit, or that waits ten times as long without using any. Loading a plug-in counts as a call. A timer
 * of each thread looks at the limit, so the policies see nothing of it, and results do not depend on it: it only ends
 * the program. What is outside a call is as it was before.
 */

/* For live control: a crash is told, and the program then ends by the signal, as it would have, so that its guardian
 * sees the same; the limit on time is the guardian's. To be called before a plug-in is opened. */
void fl_plugin_watch_live(void);

#define FL_STEP_LIMIT_S 60
extern double fl_step_limit_s; /* processor time of one call, in s */

/* The row for tables of options. */
#define FL_STEP_LIMIT_OPTION                                                                                           \
    {                                                                                                                  \
        "step-limit", "S", FL_OPTION_REAL, &fl_step_limit_s, 0.1, 1e6,                                                 \
            "processor time that one step of a plug-in may take before it counts as a loop, in s (" FL_AS_TEXT(        \
                FL_STEP_LIMIT_S) ")"                                                                                   \
    }

/* A policy by name: a built-in, or a path that ends in .so (it must then contain a '/' or exist), loaded with dlopen.
 */

/* FL_BAD_INPUT with the nearest name for an unknown built-in; for a plug-in the loader's reason, the missing symbol, or
 * the first ABI row that differs. A plug-in stays loaded for the life of the program. */
fl_status fl_policy_open(const char *name, const fl_policy **policy, fl_diag *d);
