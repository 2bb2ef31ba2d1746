/* Command-line options as rows. The same rows parse, check and print the help. */
#pragma once

#include "harness/base/cli/page.h"
#include "traces/io/diag.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum fl_option_type {
    FL_OPTION_FLAG,   /* bool */
    FL_OPTION_TEXT,   /* const char * */
    FL_OPTION_OUTPUT, /* const char *: a file that will be written */
    FL_OPTION_LIST,   /* fl_texts: the option may be given several times */
    FL_OPTION_REAL,   /* double, min to max */
    FL_OPTION_SHARE,  /* the same, also as a percentage: 0.05 or 5%; values above 1 only as a percentage
                         (harness/base/cli/share.h) */
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

/* Parses options anywhere on the line, as --name value or --name=value; "--" ends them. The other arguments go to
 * *rest. The function sets *help if it finds --help. FL_BAD_INPUT: an unknown option (the message offers the nearest
 * one), or an output that is a file which any other argument names: this prevents a command from overwriting its input
 * or writing a file twice. "-" may be the standard input once, and the standard output of one file. Standard output is
 * then reserved for that file (traces/io/standard.h), and --json together with it is refused. */
fl_status fl_args_parse(int argc, char **argv, const fl_option *option, size_t count, fl_texts *rest, bool *help,
                        fl_diag *d);
/* True where both paths exist and are one regular file, whatever links lead to it. */
bool fl_same_file(const char *a, const char *b);
/* The left column of the help for an option: "--sweep FILE". */
void fl_args_left(const fl_option *o, char *buf, size_t size);
/* Prints the examples of a command (harness/base/cli/examples.h) under a heading; nothing where it has none. */
void fl_args_examples(const fl_page *page, const char *command);
/* What stands before the name of a command in its help and its errors: "foldline ". The tools of the tests that have
 * options of this kind set their own, before they parse any. */
extern const char *fl_args_prefix;
/* Prints the help, in lines of the terminal's width, with the examples at its end. */
void fl_args_help(FILE *out, const fl_command_help *c, const fl_option *option, size_t count);
void fl_texts_free(fl_texts *t);
fl_status fl_texts_add(fl_texts *t, const char *text, fl_diag *d);
