/* Command-line options as rows: the same rows parse, check and print the help. */
#ifndef FL_ARGS_H
#define FL_ARGS_H

#include "harness/base/page.h"
#include "traces/diag.h"

#include <stdbool.h>
#include <stdio.h>

typedef enum fl_option_type {
    FL_OPTION_FLAG,   /* bool */
    FL_OPTION_TEXT,   /* const char * */
    FL_OPTION_OUTPUT, /* const char *: a file that will be written */
    FL_OPTION_LIST,   /* fl_texts: may be given several times */
    FL_OPTION_REAL,   /* double, min to max */
    FL_OPTION_SHARE,  /* the same, also said in percent: 0.05 or 5%; above 1 only so (harness/base/share.h) */
    FL_OPTION_INT     /* int64_t, min to max */
} fl_option_type;

enum { FL_ARGS_COLUMN = 27 }; /* where the help says what an option does */

typedef struct fl_texts {
    const char **item;
    size_t count, room;
} fl_texts;

typedef struct fl_option {
    const char *name;  /* without the dashes; one letter = -x */
    const char *value; /* what its value is called in the help; NULL for a flag */
    fl_option_type type;
    void *into;
    double min, max;
    const char *help;
} fl_option;

/* A constant as a text: how a help tells the standard value that the code uses. */
#define FL_AS_TEXT_OF(value) #value
#define FL_AS_TEXT(value) FL_AS_TEXT_OF(value)

typedef struct fl_command_help {
    const char *name, *usage, *summary; /* usage: what follows the name */
    const char *details;                /* paragraphs after the options; may be NULL */
} fl_command_help;

/* Options may stand anywhere, as --name value or --name=value; "--" ends them. The rest goes to *rest. *help is set
 * where --help was given. FL_BAD_INPUT with the nearest option for an unknown one, and where an output is a file that
 * any other argument names: nothing is read and written over, or written twice. "-" is the standard input once, and the
 * standard output of one file: then that is kept for it (traces/standard.h), and --json beside it is refused. */
fl_status fl_args_parse(int argc, char **argv, const fl_option *option, size_t count, fl_texts *rest, bool *help,
                        fl_diag *d);
/* True where both are there and one regular file, whatever the ways to it. */
bool fl_same_file(const char *a, const char *b);
/* How the help calls an option: "--sweep FILE". */
void fl_args_left(const fl_option *o, char *buf, size_t size);
/* The examples of a command (harness/base/examples.h) under a heading; nothing where it has none. */
void fl_args_examples(const fl_page *page, const char *command);
/* The help, in lines of the terminal's width, with the examples at its end. */
void fl_args_help(FILE *out, const fl_command_help *c, const fl_option *option, size_t count);
void fl_texts_free(fl_texts *t);
fl_status fl_texts_add(fl_texts *t, const char *text, fl_diag *d);

#endif
