/* A policy as it is asked for: its name, a label, and settings as pairs of texts. An experiment has these as values; on
 * the command line they are one text, NAME or NAME:parameter=value,parameter=value; CALLED= before it gives its rows a
 * name of their own. */
#pragma once

#include "harness/base/cli/args.h"
#include "sim/instance/instance.h"
#include "traces/pipeline/plan.h"

/* The columns of a table that a plan by instruction may stand for. Its file is FILE, or FILE#NUMBER of several plans.
 */
#define FL_SPEC_PLAN "gpu|count|sm_mhz"

/* What such a name is made of: it stands in tables, files and pages. */
#define FL_SPEC_CALLED "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-"

typedef struct fl_spec {
    char *label;   /* as it was written, or as an experiment calls it */
    fl_texts only; /* shell patterns of the workloads it is for; none = all. Texts borrowed */
    const fl_policy *policy;
    const char *twin_of; /* kernel records take no time for it, beside one of this label for which they do
                            (harness/study/trial/setup.h); NULL: none */
    const char *plugin;  /* path of the .so it is from; NULL = built in */
    fl_layer layer;      /* of the parameters given with it */
    char *text;          /* owns the name, and names and values of the layer */
    const char **file;   /* of TABLE parameters: their files, by setting; NULL where none */
    fl_table *table;     /* of TABLE parameters, read from the files named; by setting, cell NULL where none */
    fl_plans *plans;   /* of one that is a plan by instruction (traces/pipeline/plan.h) instead: see plan_layout.h; else NULL */
    size_t plan_place; /* which of them, */
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
