/* What the files of harness/cmd share. Other modules include the public header alone. */
#pragma once

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stddef.h>

/* The rows of all commands and their parts (commands.h), for dispatch, manual pages and completions. */

typedef struct fl_command_row {
    const char *name, *summary; /* a command, or a part of one: "fit policy odpp" */
    const char *words;          /* what users may call it, with blanks between */
    int (*run)(int argc, char **argv);
} fl_command_row;

extern const fl_command_row *fl_command_rows; /* fl_command_rows_count; NULL before fl_commands_open */
extern size_t fl_command_rows_count;

/* Refuse a name that no part of the command has and, with `topics`, no topic of help (FL_BAD_INPUT). */
fl_status fl_part_unknown(const char *what, const char *name, const char *command, bool topics, fl_diag *d);

/* Return true if the row is a part of the command itself, not a part of its part. "" is the program. */
bool fl_part_of(const fl_command_row *row, const char *command);
/* Return the last word of the row's name. */
const char *fl_part_name(const fl_command_row *row);
/* Write a line for each part of the command. */
void fl_parts_text(const char *command, char *text, size_t room);

/* Hand the rows of every command and part to the reader. */
void fl_command_rows_read(fl_command_reader reader);

/* Write the completion of a shell. */
fl_status fl_completion_bash(FILE *out, fl_diag *d);
fl_status fl_completion_zsh(FILE *out, fl_diag *d);

/* Prints the list of commands. */
void fl_pages_list(const fl_page *page);

/* Writes into the folder: man1/foldline.1 and one page per command, bash/foldline, zsh/_foldline. Makes what folders
 * are missing. FL_IO; what was written so far stays. */
fl_status fl_pages_write(const char *folder, fl_diag *d);

/* Print a row for each format that is read: tool and versions, what it gives, what it lacks. */
void fl_formats_print(const fl_page *page);
/* The same as JSON. */
void fl_formats_tell(void);

/* The topics of `foldline help`. */

extern const char *const fl_topics[]; /* fl_topics_count names */
extern const size_t fl_topics_count;

/* Prints a topic on the standard output. *known: there is such a topic; the status is then that of printing it. */
fl_status fl_topic_print(const char *name, bool *known, fl_diag *d);
