/* MODULE harness/base/cli */
#pragma once

#include "policies/policy.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

/* Text for a reader, wrapped to a width: plain text for a terminal, roff for man(1). */

typedef struct fl_page {
    FILE *out;
    int width;  /* columns of a line, at most */
    int indent; /* columns to the left of everything except headings */
    bool roff;  /* output for man(1), which wraps the lines itself */
} fl_page;

/* Prints the text in lines of at most `width` columns, broken between words. The first line starts after `first`
 * columns, the others after `rest`, both behind the page's indent. Any run of blanks counts as one. A word that is
 * longer than a line is broken at a comma, a slash or the like. */
void fl_page_fill(const fl_page *p, int first, int rest, const char *text);
/* Prints the separation before a new paragraph: an empty line. */
void fl_page_gap(const fl_page *p);
/* The name of a section. */
void fl_page_heading(const fl_page *p, const char *name);
/* Prints a term in column 2 and its meaning in the given column. The meaning stands below the term where the page is
 * narrow or the term long. */
void fl_page_row(const fl_page *p, int column, const char *term, const char *text);
/* Prints a further line of the meaning of a row, in that column. */
void fl_page_below(const fl_page *p, int column, const char *text);

/* Prints a text of paragraphs and rows. An empty line ends a paragraph; a single line feed in a paragraph counts as a
 * blank. A line that begins with two blanks is a row: a term, two blanks or more, and its meaning. The meanings of
 * consecutive rows are aligned. A line that begins with four blanks or more continues the row above on a new line. */
void fl_page_text(const fl_page *p, const char *text);

/* Command-line options as rows. The same rows parse, check and print the help. */

typedef enum fl_option_type {
    FL_OPTION_FLAG,   /* bool */
    FL_OPTION_TEXT,   /* const char * */
    FL_OPTION_OUTPUT, /* const char *: a file that will be written */
    FL_OPTION_LIST,   /* fl_texts: the option may be given several times */
    FL_OPTION_REAL,   /* double, min to max */
    FL_OPTION_SHARE,  /* the same, also as a percentage: 0.05 or 5%; values above 1 only as a percentage
                         (harness/base/cli/cli.h) */
    FL_OPTION_INT     /* int64_t, min to max */
} fl_option_type;

enum { FL_ARGS_COLUMN = 27 }; /* column of the help in which an option's description begins */

typedef struct fl_texts {
    const char **item;
    size_t count, room;
} fl_texts;

typedef struct fl_option {
    const char *name;  /* without the dashes; one letter = -x */
    const char *value; /* name of its value in the help; NULL for a flag */
    fl_option_type type;
    void *into;
    double min, max;
    const char *help;
} fl_option;

/* A constant as text, so that a help line can show the default that the code uses. */
#define FL_AS_TEXT_OF(value) #value
#define FL_AS_TEXT(value) FL_AS_TEXT_OF(value)

typedef struct fl_command_help {
    const char *name, *usage, *summary; /* usage: what follows the name */
    const char *details;                /* paragraphs after the options; may be NULL */
} fl_command_help;

/* True where both paths exist and are one regular file, whatever links lead to it. */
bool fl_same_file(const char *a, const char *b);
/* The left column of the help for an option: "--sweep FILE". */
void fl_args_left(const fl_option *o, char *buf, size_t size);
/* Prints the examples of a command (harness/base/cli/inside.h) under a heading; nothing where it has none. */
void fl_args_examples(const fl_page *page, const char *command);

void fl_texts_free(fl_texts *t);
fl_status fl_texts_add(fl_texts *t, const char *text, fl_diag *d);

/* Shared by all commands: exit statuses, the form of an error message, and the parsing of options. */

enum { FL_EXIT_OK = 0, FL_EXIT_GATE = 1, FL_EXIT_USAGE = 2, FL_EXIT_SYSTEM = 3 };
#define FL_EXIT_STATUSES "0 done; 1 a gate did not hold; 2 bad usage or input; 3 hardware or system refused."

extern const char *fl_command_name; /* name of the running command; NULL before its options are parsed */

/* Where it is set, --help passes a command's rows to it and prints nothing: manual pages and completions use the same
 * rows as the help (harness/cmd/pages.c). */
typedef struct fl_command_reader {
    void (*take)(void *to, const fl_command_help *help, const fl_option *option, size_t count);
    void *to;
} fl_command_reader;
extern const fl_command_reader *fl_command_read_by;

/* Prints "foldline COMMAND: file:line:column: message" on stderr; command may be NULL. Returns the exit status for the
 * error: FL_EXIT_USAGE for bad input, else FL_EXIT_SYSTEM. */
int fl_command_fail(const char *command, const fl_diag *d);

/* Parses a command's options and answers --help. Returns true if the command has to continue. Otherwise *status is its
 * exit status, and nothing is left to free. */
bool fl_command_begin(int argc, char **argv, const fl_command_help *help, const fl_option *option, size_t count,
                      fl_texts *rest, int *status);
/* Frees the parsed arguments: the rest, and the lists among the options. */
void fl_command_end(const fl_option *option, size_t count, fl_texts *rest);
/* The end of a command without an exit status of its own: says why it failed, if it did, and frees the parsed
 * arguments. Returns the exit status. */
int fl_command_close(const char *command, fl_status s, const fl_diag *d, const fl_option *option, size_t count,
                     fl_texts *rest);

/* A table on a terminal: cells are text, each column is as wide as it needs to be, numbers are right-aligned. */

typedef struct fl_grid {
    char **cell; /* row by row */
    size_t columns, count, room;
} fl_grid;

/* Starts a table with a row of heads. The function copies them. */
fl_grid fl_grid_headed(const char *const *head, size_t columns);
#define FL_GRID_HEADED(head) fl_grid_headed(head, sizeof(head) / sizeof *(head))
/* Adds cells, row by row; a tab in the format stands between two of them. Where memory runs out, the table is missing
 * as a whole, never incomplete. */
void fl_grid_add(fl_grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the table and frees it. The first `left` columns are left-aligned. */
void fl_grid_print(fl_grid *g, size_t left, FILE *out);
void fl_grid_free(fl_grid *g);

/* A real in the shortest form that reads back the same, or "n/a"; into buf (32 bytes). Returns buf. */
char *fl_cell_text(double value, char *buf);

/* Where the kinds of a written trace or of written programs go. */

/* x.kinds.csv for x.programs.csv and for x.csv; the head of what is written names it. The caller frees *kinds. */
fl_status fl_kinds_beside(const char *path, fl_head *head, char **kinds, fl_diag *d);

/* The folders of the files that ship with foldline. The folder that the environment names comes first; then one
 * relative to the program, as installed (PREFIX/bin/foldline) or as built, so that either tree may be moved; then the
 * folder of the build. */

typedef enum fl_place_id {
    FL_PLACE_PLATFORMS, /* $FOLDLINE_SHARE/platforms */
    FL_PLACE_BOARDS,    /* $FOLDLINE_SHARE/boards */
    FL_PLACE_PLOTS,     /* $FOLDLINE_PLOTS */
    FL_PLACE_CLIENTS    /* $FOLDLINE_CLIENT_DIR: libraries that emulated and recorded programs load */
} fl_place_id;

/* Writes the path into buf and returns buf. Where no candidate exists, the path is the last candidate. */
const char *fl_place(fl_place_id id, char *buf, size_t size);

/* Names of the files that ship with foldline. */

/* The NAMEs of all NAME.json of a place, sorted. The caller frees each name and the array. FL_IO where the folder
 * cannot be read. */
fl_status fl_place_list(fl_place_id id, char ***names, size_t *count, fl_diag *d);
void fl_place_list_free(char **names, size_t count);

/* A share in the two forms that people write: 0.05 or 5%. */

/* False where the text is neither form, apart from surrounding white space. *percent: the text was a percentage. */
bool fl_share_parse(const char *text, double *value, bool *percent);
/* A bound of 5 may mean 5 % or 500 %, so a value above 1 must say which. fl_share_text writes the sentence that asks
 * for it into buf and returns buf; the other function reports it as a refusal after `what`. */
enum { FL_SHARE_TEXT = 128 };
char *fl_share_text(double value, char buf[FL_SHARE_TEXT]);
fl_status fl_share_refuse(const char *what, double value, fl_diag *d);

/* A policy's table parameter from a CSV file. The file's header names the columns that the policy's row declares, in
 * any order. */

fl_status fl_table_file_read(const char *path, const fl_param *row, fl_table *t, fl_diag *d);
void fl_table_file_free(fl_table *t); /* accepts a zeroed struct */

/* The width of the terminal, for text that a person reads. */

#define FL_TERMINAL_STANDARD 80 /* columns where nothing says how many */
#define FL_TERMINAL_LEAST 20    /* columns: a narrower terminal counts as this wide */

/* Columns of the terminal behind the stream; $COLUMNS where the stream is not a terminal; else FL_TERMINAL_STANDARD. */
int fl_terminal_width(FILE *stream);

/* Prints a message of one line; format ends without a line feed. On a terminal the line is broken between words, and
 * the further lines are indented by two columns. Elsewhere the message stays on one line, so that programs can read it.
 */
void fl_terminal_say(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A progress line on standard error for work that takes over a second, where standard error is a terminal. It shows the
 * share done and the time left, in one place, and disappears at the end. Logs and pipes never see it. */

/* Until fl_ticker_stop, the ticker shows pieces of work (traces/io/io.h) under the command's name. Where standard
 * output is a terminal too, it is held back until the end, so that the two do not mix. */
void fl_ticker_start(const char *command);
/* Removes the line for good; does nothing where there is none. */
void fl_ticker_stop(void);
/* Removes the line for the moment. Any code that writes to standard error calls it first. */
void fl_ticker_clear(void);

extern volatile sig_atomic_t fl_ticker_shown; /* for a signal handler: a line is visible */
#define FL_TICKER_AWAY "\r\033[K"             /* the sequence that removes it */

/* The version of foldline. */

/* "foldline 0.1.0 (1a2b3c4d5e6f)": the version and the commit of the build, where a repository told it, with "+" after
 * it where files had changed since. One line, whatever compiler built it. */
void fl_version_print(FILE *out);
