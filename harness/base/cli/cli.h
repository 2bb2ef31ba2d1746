/* The command line: options as rows, help texts, error messages, exit statuses, and what the program prints on a
 * terminal.
 *
 * A command describes itself by an fl_command_help and a table of fl_option. It calls fl_command_begin, which parses
 * the arguments, checks them and answers --help, and ends with fl_command_close or fl_command_end. The option rows
 * point at the caller's variables; texts are borrowed from argv, lists are freed at the end. fl_command_fail turns a
 * diagnostic into one line on stderr and an exit status.
 *
 * The header also has tables (fl_grid), wrapped text (fl_page), progress lines (fl_ticker), the folders of shipped
 * files (fl_place), and shares such as "5%". commands.h is the table of all commands. */
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
/* Prints the name of a section. */
void fl_page_heading(const fl_page *p, const char *name);
/* Prints the name of a part of a section. */
void fl_page_subheading(const fl_page *p, const char *name);
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
    FL_OPTION_CHOICE, /* const char *: one of the values that `value` lists, "real|ideal|off" */
    FL_OPTION_LIST,   /* fl_texts: the option may be given several times */
    FL_OPTION_REAL,   /* double, min to max */
    FL_OPTION_SHARE,  /* double, also as a percentage: 0.05 or 5%; values above 1 only as a percentage */
    FL_OPTION_INT     /* int64_t, min to max */
} fl_option_type;

/* The group of an option in the help, and whether it is among the most used: FL_FOR_OUTPUT | FL_MOST_USED. */
enum {
    FL_FOR_METHOD, /* how the result is computed */
    FL_FOR_INPUT,
    FL_FOR_MACHINE,
    FL_FOR_POLICIES,
    FL_FOR_SERVING,
    FL_FOR_OUTPUT,
    FL_FOR_GROUPS,
    FL_MOST_USED = 16 /* at most five of a command; a command without any has a flat list */
};

enum { FL_ARGS_COLUMN = 27 }; /* column of the help in which an option's description begins */

typedef struct fl_texts {
    const char **item;
    size_t count, room;
} fl_texts;

typedef struct fl_option {
    const char *name;  /* without the dashes; one letter = -x */
    const char *value; /* name of its value in the help, or its values with | between; NULL for a flag */
    fl_option_type type;
    void *into;
    double min, max;
    const char *help;
    int group;
} fl_option;

/* Rows of options that many commands have. */
/* clang-format off */
#define FL_JSON_OPTION(into)                                                                                           \
    {"json", NULL, FL_OPTION_FLAG, into, 0, 0, "prints the result as JSON", FL_FOR_OUTPUT}
#define FL_INTERVAL_OPTION(into)                                                                                       \
    {"interval", "S", FL_OPTION_REAL, into, 1e-6, 1e6,                                                                 \
     "time between rows that have no time stamps (dcgmi dmon -d)", FL_FOR_INPUT}
/* clang-format on */

/* A constant as text, so that a help line can show the default that the code uses. */
#define FL_AS_TEXT_OF(value) #value
#define FL_AS_TEXT(value) FL_AS_TEXT_OF(value)

typedef struct fl_command_help {
    const char *name, *usage, *summary; /* usage: what follows the name */
    const char *details;                /* paragraphs after the options; may be NULL */
} fl_command_help;

/* Return true if both paths exist and lead to one regular file, through whatever links. */
bool fl_same_file(const char *a, const char *b);
/* Refuse an output among the options that is the file `input` (FL_BAD_INPUT). input: a file that the command reads
 * because another input names it; NULL = none. Parsing the options checks the files that they name themselves. */
fl_status fl_args_spare(const fl_option *option, size_t count, const char *input, fl_diag *d);
/* Return true if the name is one of the names, which have blanks between. */
bool fl_is_among(const char *name, const char *names);
/* Write the left column of an option's help, "--platform NAME", into buf. */
void fl_args_left(const fl_option *o, char *buf, size_t size);
/* Print the rows of the options, by their groups, and --help. */
void fl_args_options(const fl_page *page, const fl_option *option, size_t count);
/* Print the examples of a command under a heading. Print nothing for a command without examples. */
void fl_args_examples(const fl_page *page, const char *command);

void fl_texts_free(fl_texts *t);
fl_status fl_texts_add(fl_texts *t, const char *text, fl_diag *d);

/* Begin and end of a command. */

enum { FL_EXIT_OK = 0, FL_EXIT_GATE = 1, FL_EXIT_USAGE = 2, FL_EXIT_SYSTEM = 3 };
#define FL_EXIT_STATUSES "0 done; 1 a gate did not hold; 2 bad usage or input; 3 hardware or system refused."

extern const char *fl_command_name; /* name of the running command; NULL before its options are parsed */

/* While this reader is set, --help passes the command's rows to it and prints nothing. Manual pages and completions
 * read the same rows as the help in this way (harness/cmd/pages.c). */
typedef struct fl_command_reader {
    void (*take)(void *to, const fl_command_help *help, const fl_option *option, size_t count);
    void *to;
} fl_command_reader;
extern const fl_command_reader *fl_command_read_by;
/* Passes the rows of all commands to a reader. The program sets it, so that a message can say which commands have an
 * option; NULL: unknown. */
extern void (*fl_command_read_all)(fl_command_reader reader);

/* Prints "foldline COMMAND: file:line:column: message" on stderr; command may be NULL. Returns the exit status for the
 * error: FL_EXIT_USAGE for bad input, else FL_EXIT_SYSTEM. */
int fl_command_fail(const char *command, const fl_diag *d);

/* Parses a command's options and answers --help. Returns true if the command has to continue. Otherwise *status is its
 * exit status, and nothing is left to free. */
bool fl_command_begin(int argc, char **argv, const fl_command_help *help, const fl_option *option, size_t count,
                      fl_texts *rest, int *status);
/* Refuse options that were given but have no effect. names: the only ones that have an effect, or (only false) those
 * that have none, with blanks between. how: "with --merge", for the message. */
fl_status fl_command_allow(const fl_option *option, size_t count, bool only, const char *names, const char *how,
                           fl_diag *d);
/* Frees the parsed arguments: the rest, and the lists among the options. */
void fl_command_end(const fl_option *option, size_t count, fl_texts *rest);
/* End a command that has no exit status of its own: print why it failed, if it did, and free the parsed arguments.
 * Return the exit status. */
int fl_command_close(const char *command, fl_status s, const fl_diag *d, const fl_option *option, size_t count,
                     fl_texts *rest);

/* A table on a terminal: cells are text, each column is as wide as it needs to be, numbers are right-aligned. */

typedef struct fl_grid {
    char **cell; /* row by row */
    size_t columns, count, room;
    char **term; /* a term and its meaning in turn, for the lines below the table */
    size_t terms, term_room;
    bool texts; /* the last column is left-aligned even with a head */
    bool folds; /* a table wider than the terminal breaks its first and last columns between words */
    bool lost;  /* memory ran out */
} fl_grid;

/* Add a column, before the first row: its head, and the line that defines it below the table, which an empty head does
 * not get. The functions copy their texts. */
void fl_grid_column(fl_grid *g, const char *head, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Add a line below the table: a term, such as a mark in a cell, and its meaning. */
void fl_grid_define(fl_grid *g, const char *term, const char *meaning);
/* Start a table whose heads say enough. The function copies them. */
fl_grid fl_grid_headed(const char *const *head, size_t columns);
#define FL_GRID_HEADED(head) fl_grid_headed(head, sizeof(head) / sizeof *(head))
/* Adds cells, row by row; a tab in the format stands between two of them. Where memory runs out, the table is missing
 * as a whole, never incomplete. */
void fl_grid_add(fl_grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Add a number with so many decimals, or "n/a". With digits below 0 it has -digits significant digits. mark: a text
 * behind a number. */
void fl_grid_number(fl_grid *g, double value, int digits, const char *mark);
/* Print the table, an empty line and the lines that define its terms, and free the table. The first `left` columns are
 * left-aligned, and so is a last column without a head, which holds remarks. */
void fl_grid_print(fl_grid *g, size_t left, FILE *out);
void fl_grid_free(fl_grid *g);

/* Write a real in the shortest form that reads back the same, or "n/a", into buf (32 bytes). Return buf. */
char *fl_cell_text(double value, char *buf);

/* Make the path of the kernel classes that go with a written trace or program file: x.kinds.csv for x.programs.csv and
 * for x.csv. Name it in the head of the written file. The caller frees *kinds. */
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

/* Write the path into buf and return buf. If no candidate exists, the path is the last candidate. */
const char *fl_place(fl_place_id id, char *buf, size_t size);

/* List the NAMEs of all NAME.json in a folder of shipped files, sorted. Free them with fl_place_list_free. FL_IO: the
 * folder cannot be read. */
fl_status fl_place_list(fl_place_id id, char ***names, size_t *count, fl_diag *d);
void fl_place_list_free(char **names, size_t count);

/* Parse a share in one of the two forms that people write, 0.05 or 5%; white space around it is allowed. *percent: the
 * text was a percentage. Return false if the text has neither form. */
bool fl_share_parse(const char *text, double *value, bool *percent);
/* A bound of 5 may mean 5 % or 500 %, so a value above 1 must say which. fl_share_text writes the sentence that asks
 * for it into buf and returns buf. fl_share_refuse reports that sentence as a refusal, after `what`. */
enum { FL_SHARE_TEXT = 128 };
char *fl_share_text(double value, char buf[FL_SHARE_TEXT]);
fl_status fl_share_refuse(const char *what, double value, fl_diag *d);

/* Read a policy's table parameter from a CSV file. The file's header names the columns that the policy's row declares,
 * in any order. */
fl_status fl_table_file_read(const char *path, const fl_param *row, fl_table *t, fl_diag *d);
void fl_table_file_free(fl_table *t); /* accepts a zeroed struct */

/* Text that a person reads on a terminal. */

#define FL_TERMINAL_STANDARD 80 /* columns where nothing says how many */
#define FL_TERMINAL_LEAST 20    /* columns: a narrower terminal counts as this wide */

/* Return the columns of the terminal behind the stream. If the stream is not a terminal, return $COLUMNS, else
 * FL_TERMINAL_STANDARD. */
int fl_terminal_width(FILE *stream);

/* Prints a message of one line; format ends without a line feed. On a terminal the line is broken between words, and
 * the further lines are indented by two columns. Elsewhere the message stays on one line, so that programs can read it.
 */
void fl_terminal_say(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --strict, for every command that reads recordings. */
/* clang-format off */
#define FL_STRICT_OPTION                                                                                               \
    {"strict", NULL, FL_OPTION_FLAG, &fl_left_strict, 0, 0,                                                            \
     "refuses a file at its first row without a value or that contradicts, instead of counting such rows", FL_FOR_INPUT}
/* clang-format on */

/* Prints notes on a file on standard error: the given ones, and what a reader left out. */
void fl_notes_tell(const char *path, char *const *note, size_t count);
/* Print on standard error what a reader left out of the file at path. If the same file is opened several times in a
 * row, print it once. */
void fl_left_tell(const char *path, const fl_left_out *left);

/* A progress line on standard error for work that takes over a second. It shows the share done and the time left. On a
 * terminal it stays in one place, and disappears at the end. Elsewhere it is a line each ten seconds. */

/* Until fl_ticker_stop, the ticker shows pieces of work (traces/io/io.h) under the command's name. Where standard
 * output is a terminal too, it is held back until the end, so that the two do not mix. */
void fl_ticker_start(const char *command);
/* Removes the line for good; does nothing where there is none. */
void fl_ticker_stop(void);
/* Set what the command prints if INT, TERM or HUP ends it. Takes the text; NULL: nothing. */
void fl_ticker_last_words(char *text);
/* Removes the line for the moment. Any code that writes to standard error calls it first. */
void fl_ticker_clear(void);

extern volatile sig_atomic_t fl_ticker_shown; /* for a signal handler: a line is visible */
#define FL_TICKER_AWAY "\r\033[K"             /* the sequence that removes it */

/* Print the version, and the commit if the build saw a repository: "foldline 1.0.0 (1a2b3c4d5e6f)". A "+" after the
 * commit means that files had changed since. A second line names the optional libraries of the build. */
void fl_version_print(FILE *out);
