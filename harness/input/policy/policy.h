/* A policy as a user names it: a built-in or a plug-in, with the settings of its parameters.
 *
 * fl_spec_open parses NAME:parameter=value and finds the policy. The fl_spec owns its texts, tables and plans until
 * fl_spec_free; the policy itself stays loaded for the life of the program. FL_BAD_INPUT: an unknown policy (the
 * message offers the nearest), a malformed setting, or a wrong table file. Opening an instance checks the values.
 *
 * A plug-in is code from outside. The module watches every call into it, so that a crash or an endless loop ends the
 * program with one line that names the policy, instead of a half-written result. */
#pragma once

#include "harness/base/cli/cli.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "traces/pipeline/pipeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A policy with a label and its settings as pairs of texts. An experiment gives these as JSON values. On the command
 * line they are one text: NAME or NAME:parameter=value,parameter=value, with LABEL= before it to name its rows. */

typedef struct fl_spec {
    char *label;   /* the name of its rows: the text as written, or the experiment's label */
    fl_texts only; /* shell patterns of the workloads it runs on; none = all. Texts borrowed */
    const fl_policy *policy;
    const char *twin_of;    /* label of the same policy with activity records at their cost; they are free for this
                               one. NULL: no such pair */
    const char *plugin;     /* path of its .so; NULL = built in */
    fl_layer layer;         /* of the parameters given with it */
    char *text;             /* owns the name, and names and values of the layer */
    char **file;            /* of TABLE parameters: their files, by setting; NULL where none */
    fl_table *table;        /* of TABLE parameters, read from the files named; by setting, cell NULL where none */
    fl_plans *plans;        /* the plans of the file that a table parameter names, if that file has plans by instruction
                               (traces/pipeline/pipeline.h); fl_plan_lay makes a table of one. NULL: no such file */
    size_t plan_place;      /* index of the plan */
    const char *plan_param; /* the parameter that its table becomes */
} fl_spec;

/* Find the policy and read the files of table parameters. The function copies names and texts of the layer without
 * interpreting them, and borrows its origin. from: the file that names the policy, to whose folder the paths of a
 * plug-in and of tables are relative; NULL = the working folder. FL_BAD_INPUT: an unknown policy, a setting without a
 * text (reported as not of the form parameter=value), or a bad table. Opening an instance checks the other values.
 * After a failure nothing is to be freed. */
fl_status fl_spec_open_values(const char *name, const char *label, const fl_layer *given, const char *from, fl_spec *s,
                              fl_diag *d);
/* Find the length of LABEL in LABEL=NAME:...; 0: there is none. FL_BAD_INPUT: it has other characters than a name. */
fl_status fl_spec_name(const char *text, size_t *called, fl_diag *d);
/* Open a spec from the text form. Without LABEL= the text is its own label. Errors as fl_spec_open_values. */
fl_status fl_spec_open(const char *text, fl_spec *s, fl_diag *d);
/* Open a spec from the text form as a file names it. from: as in fl_spec_open_values. */
fl_status fl_spec_open_named(const char *text, const char *from, fl_spec *s, fl_diag *d);
/* Open a spec from the text form with further settings "parameter=value", which override those of the text. */
fl_status fl_spec_open_set(const char *text, const fl_texts *set, fl_spec *s, fl_diag *d);
void fl_spec_free(fl_spec *s);
/* Return true if the policy needs activity records, or switches them on and off. */
bool fl_spec_records(const fl_spec *s);

/* Return true if a run of so many steps cannot show how the policy decides: at its first step a policy has no readings.
 */
bool fl_spec_unstepped(const fl_spec *s, uint64_t steps);

/* A plug-in may crash, end the program or never return. Then the program ends with one line that names the policy, the
 * step and its time, and with FL_EXIT_SYSTEM. Results are written at the end of a run, so nothing is half-written.
 *
 * The watch finds these: a fault signal (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS) within a call of a
 * policy, also after a stack overflow; exit() or the end of the thread within a call; a call that takes more processor
 * time than the limit, or that waits ten times as long without using any. Loading a plug-in counts as a call. Each
 * thread has a timer for the limit. Policies cannot see it and results do not depend on it. Outside such calls nothing
 * changes. */

/* Switch the watch to live control: it prints a crash, and the program then ends by the same signal, which its guardian
 * sees. The guardian limits the time. Call this before a plug-in is opened. */
void fl_plugin_watch_live(void);

#define FL_STEP_LIMIT_S 60
extern double fl_step_limit_s; /* processor time of one call, in s */

/* The row for tables of options. */
/* clang-format off */
#define FL_STEP_LIMIT_OPTION                                                                                           \
    {"step-limit", "S", FL_OPTION_REAL, &fl_step_limit_s, 0.1, 1e6,                                                    \
     "processor time of one step of a plug-in before it counts as a loop, in s "                                       \
     "(" FL_AS_TEXT(FL_STEP_LIMIT_S) ")", FL_FOR_POLICIES}
/* clang-format on */

/* Find a built-in policy by its name, or load a plug-in: a path that ends in .so and contains a '/' or exists. A
 * plug-in stays loaded for the life of the program. FL_BAD_INPUT: an unknown name (the message offers the nearest); for
 * a plug-in the loader's reason, the missing symbol, or the first ABI row that differs. */
fl_status fl_policy_open(const char *name, const fl_policy **policy, fl_diag *d);
