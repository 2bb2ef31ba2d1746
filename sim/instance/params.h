/* The parameter struct of a policy, filled from its rows and the layers of settings over them. */
#pragma once

#include "policies/policy.h"
#include "traces/io/diag.h"

#include <stdbool.h>

typedef struct fl_setting { /* one parameter as someone gave it */
    const char *name;       /* of the parameter */
    const char *text;       /* its text form; NULL where table is given */
    const fl_table *table;  /* LIST and TABLE only; borrowed until the instance is closed */
} fl_setting;

typedef struct fl_layer { /* settings of one origin; a later layer overrides an earlier one */
    const char *origin;   /* for diagnostics: "platform v100-163w", "--set" */
    const fl_setting *setting;
    size_t count;
} fl_layer;

/* On FL_OK, *out is a struct of policy->param_size bytes with tables of its own; free it with fl_params_free.
 * FL_BAD_INPUT with policy, parameter and origin in the message; *out is then NULL. */
fl_status fl_params_resolve(void **out, const fl_policy *policy, const fl_layer *layer, size_t layer_count, fl_diag *d);

/* A second struct that shares nothing with the first. NULL where memory is short. */
void *fl_params_copy(const fl_policy *policy, const void *params);

/* NULL is allowed. */
void fl_params_free(const fl_policy *policy, void *params);

/* The value of one row in text form, cut to size. Returns buf. */
char *fl_params_text(const fl_policy *policy, const void *params, uint32_t index, char *buf, size_t size);

/* The value of a LIST or TABLE row; cells and keys belong to params. */
fl_table fl_params_table(const fl_policy *policy, const void *params, uint32_t index);

/* Columns of numbers of a TABLE row; *keyed says whether its first column is the text key ("key:kernel|sm_mhz" is
 * keyed, with one column of numbers). Names are not copied: *columns, where not NULL, is the row's text after "key:".
 */
uint32_t fl_param_columns(const fl_param *row, bool *keyed, const char **columns);
