/* A policy as it is asked for on the command line: NAME, or NAME:parameter=value,parameter=value. */
#ifndef FL_SPEC_H
#define FL_SPEC_H

#include "harness/base/args.h"
#include "sim/instance.h"

typedef struct fl_spec {
    char *label;   /* as it was written, or as an experiment calls it */
    fl_texts only; /* shell patterns of the workloads it is for; none = all. Texts borrowed */
    const fl_policy *policy;
    const char *plugin; /* path of the .so it is from; NULL = built in */
    fl_layer layer;     /* of the parameters given with it */
    char *text;         /* owns names and values of the layer */
    const char **file;  /* of TABLE parameters: their files, by setting; NULL where none */
    fl_table *table;    /* of TABLE parameters, read from the files named; by setting, cell NULL where none */
} fl_spec;

/* Finds the policy, splits the settings and reads the files of table parameters. */
fl_status fl_spec_open(const char *text, fl_spec *s, fl_diag *d);
/* The same with further settings "parameter=value", which go before those of the text. */
fl_status fl_spec_open_set(const char *text, const fl_texts *set, fl_spec *s, fl_diag *d);
void fl_spec_free(fl_spec *s);

#endif
