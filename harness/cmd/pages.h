/* What is made of the rows of all commands beside their help: manual pages, and completions of shells. */
#pragma once

#include "harness/cmd/pages_read.h"

/* Writes into the folder: man1/foldline.1 and one page per command, bash/foldline, zsh/_foldline. Makes what folders
 * are missing. FL_IO, FL_NO_MEMORY; what was written so far stays. */
fl_status fl_pages_write(const char *folder, fl_command_runner run, fl_diag *d);
