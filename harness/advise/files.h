/* The subjects of advice: workloads from any files that the program reads, as settings that a model knows. */
#pragma once

#include "harness/advise/subject.h"
#include "harness/base/cli/args.h"

/* Reads a sweep; or logs of a program's runs, each at fixed clocks; or a recording of kernels, with or without a log of
 * the same run. FL_BAD_INPUT names what is missing. */
fl_status fl_advise_open(const fl_texts *files, const fl_advise_options *o, fl_advise_subjects *s, fl_diag *d);
