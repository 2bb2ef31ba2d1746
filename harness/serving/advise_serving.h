/* foldline advise of a request trace: how many servers, and which clock, for the least energy that meets the targets.
 */
#pragma once

#include "harness/input/scene/serving_choice.h"

/* Prints the advice, as JSON or for people. The requests are those of *c, or the one of `files`. FL_BAD_INPUT without a
 * platform, without a target, or where the requests are stated twice; a choice that meets no target is no error: the
 * text says that none does. */
fl_status fl_advise_serving(const fl_serving_choice *c, const fl_texts *files, const char *platform, bool json,
                            fl_diag *d);
