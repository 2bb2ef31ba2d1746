/* Completions of shells, of the shell that the names of the functions say. FL_IO where a platform's name cannot be
 * read.
 */
#pragma once

#include "harness/cmd/pages_read.h"

fl_status fl_completion_bash(FILE *out, fl_command_runner run, fl_diag *d);
fl_status fl_completion_zsh(FILE *out, fl_command_runner run, fl_diag *d);
