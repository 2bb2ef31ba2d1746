/* What is made of the rows of all commands beside their help: manual pages, and completions of shells. */
#ifndef FL_PAGES_H
#define FL_PAGES_H

#include "harness/base/command.h"

/* Hands the rows of every command to reader, of those with parts (fit) each part's too: the help's own. */
void fl_pages_read(fl_command_reader reader);
/* The summary of a command as the list of commands has it, also of a part ("fit device"); NULL where there is none. */
const char *fl_pages_summary(const char *name);

/* Writes into the folder: man1/foldline.1 and one page per command, bash/foldline, zsh/_foldline. Makes what folders
 * are missing. FL_IO, FL_NO_MEMORY; what was written so far stays. */
fl_status fl_pages_write(const char *folder, fl_diag *d);
/* The completions, of the shell that the names of the functions say. FL_IO where a platform's name cannot be read. */
fl_status fl_completion_bash(FILE *out, fl_diag *d);
fl_status fl_completion_zsh(FILE *out, fl_diag *d);

#endif
