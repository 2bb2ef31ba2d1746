/* A share as people write it: 0.05, or 5%. */
#ifndef FL_SHARE_H
#define FL_SHARE_H

#include "traces/diag.h"

#include <stdbool.h>

/* False where the text is neither, white space around it aside. *percent: it was said in percent. */
bool fl_share_parse(const char *text, double *value, bool *percent);
/* A bound of 5 may be 5 % or 500 %: what is above 1 must say which. The sentence into buf, or as a refusal behind
 * `what`. fl_share_text returns buf. */
enum { FL_SHARE_TEXT = 128 };
char *fl_share_text(double value, char buf[FL_SHARE_TEXT]);
fl_status fl_share_refuse(const char *what, double value, fl_diag *d);

#endif
