/* A share in the two forms that people write: 0.05 or 5%. */
#pragma once

#include "traces/io/diag.h"

#include <stdbool.h>

/* False where the text is neither form, apart from surrounding white space. *percent: the text was a percentage. */
bool fl_share_parse(const char *text, double *value, bool *percent);
/* A bound of 5 may mean 5 % or 500 %, so a value above 1 must say which. fl_share_text writes the sentence that asks
 * for it into buf and returns buf; the other function reports it as a refusal after `what`. */
enum { FL_SHARE_TEXT = 128 };
char *fl_share_text(double value, char buf[FL_SHARE_TEXT]);
fl_status fl_share_refuse(const char *what, double value, fl_diag *d);
