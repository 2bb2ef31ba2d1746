/* The help, the manual page and the completions of every command and fit say what the rows of its options say. */
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "harness/base/cli/cli.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/inside.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MOST = 40, COLUMNS_MOST = 80, MOST_USED = 5 };

/* What the program prints, 80 columns wide, malloc'd. */
static char *printed(const char *arguments) {
    char command[2048];
    size_t size;
    snprintf(command, sizeof command, "COLUMNS=%d '%s' %s >'%s'", COLUMNS_MOST, FL_PROGRAM, arguments,
             fl_temp_path("printed"));
    FL_CHECK(system(command) == 0, "foldline %s fails", arguments);
    return fl_temp_slurp(fl_temp_path("printed"), &size);
}

static size_t lines_of(const char *text, size_t *widest) {
    size_t lines = 0;
    *widest = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n") + (at[strcspn(at, "\n")] != '\0')) {
        const size_t n = strcspn(at, "\n");
        *widest = n > *widest ? n : *widest;
        lines++;
    }
    return lines;
}

/* The part of a file from one text to the next, malloc'd; "" where there is none. */
static char *section(const char *text, const char *from, const char *to) {
    const char *start = text ? strstr(text, from) : NULL, *end = start ? strstr(start, to) : NULL;
    return start ? strndup(start, end ? (size_t)(end - start) : strlen(start)) : strdup("");
}

/* roff without the marks before dashes */
static void plain(char *text) {
    char *to = text;
    for (const char *at = text; *at; at++)
        if (!(at[0] == '\\' && at[1] == '-'))
            *to++ = *at;
    *to = '\0';
}

typedef struct files { /* of help -o */
    const char *folder;
    char *bash, *zsh;
} files;

static void check_rows(const files *f, const char *name, const fl_option *option, size_t count, const char *some,
                       const char *all) {
    char from[128], path[1024], text[256];
    size_t size, most = 0;
    snprintf(path, sizeof path, "%s/man1/foldline-%s.1", f->folder, name);
    for (char *at = strrchr(path, '/'); *at; at++)
        *at = *at == ' ' ? '-' : *at;
    char *manual = fl_temp_slurp(path, &size);
    FL_CHECK(manual != NULL, "%s: no manual page %s", name, path);
    manual = manual ? manual : strdup("");
    plain(manual);
    snprintf(from, sizeof from, "  '%s')\n", name);
    char *bash = section(f->bash, from, "    ;;\n");
    snprintf(from, sizeof from, "  '%s') options=", name);
    char *zsh = section(f->zsh, from, ") ;;\n");
    for (size_t i = 0; i < count; i++) {
        const char *dashes = option[i].name[1] ? "--" : "-", *o = option[i].name;
        most += (option[i].group & FL_MOST_USED) != 0;
        snprintf(text, sizeof text, "%s%s", dashes, o);
        FL_CHECK(strstr(some, text) != NULL, "%s --help does not name %s", name, text);
        fl_args_left(&option[i], text + 4, sizeof text - 4);
        memcpy(text, "\n  ", 3);
        memmove(text + 3, text + 4, strlen(text + 4) + 1);
        FL_CHECK(strstr(all, text) != NULL, "%s --help all does not explain %s", name, text);
        snprintf(text, sizeof text, "\\fB%s%s", dashes, o);
        FL_CHECK(strstr(manual, text) != NULL, "%s: the manual page lacks %s%s", name, dashes, o);
        snprintf(text, sizeof text, "%s%s ", dashes, o);
        FL_CHECK(strstr(bash, text) != NULL, "%s: bash does not complete %s", name, text);
        if (option[i].type == FL_OPTION_CHOICE) {
            snprintf(text, sizeof text, "%s%s) list='%s' ;;", dashes, o, option[i].value);
            for (char *at = strchr(text, '\''); *at; at++)
                *at = *at == '|' ? ' ' : *at;
            FL_CHECK(strstr(bash, text) != NULL, "%s: bash lacks %s", name, text);
        }
        snprintf(text, sizeof text, "'*%s%s[", dashes, o);
        FL_CHECK(strstr(zsh, text) != NULL, "%s: zsh does not complete %s%s", name, dashes, o);
    }
    FL_CHECK(most <= MOST_USED, "%s has %zu options that are used most, expected five at most", name, most);
    free(manual);
    free(bash);
    free(zsh);
}

/* -o is the main output of every command; no command has another name for it. */
static void check_outputs(const char *name, const fl_option *option, size_t count) {
    static const char *const other[] = {"csv", "out", "output"};
    bool writes = false, main = false;
    for (size_t i = 0; i < count; i++) {
        writes |= option[i].type == FL_OPTION_OUTPUT;
        main |= !strcmp(option[i].name, "o");
        for (size_t k = 0; k < FL_COUNT(other); k++)
            FL_CHECK(strcmp(option[i].name, other[k]) != 0, "%s has --%s, expected -o", name, other[k]);
    }
    FL_CHECK(main || !writes, "%s writes files and has no -o", name);
}

static void check_command(void *to, const fl_command_help *help, const fl_option *option, size_t count) {
    char arguments[128];
    size_t widest = 0;
    snprintf(arguments, sizeof arguments, "%s --help", help->name);
    char *some = printed(arguments);
    snprintf(arguments, sizeof arguments, "%s --help all", help->name);
    char *all = printed(arguments);
    if (some && all) {
        const size_t lines = lines_of(some, &widest);
        FL_CHECK(lines <= LINES_MOST && widest <= COLUMNS_MOST, "%s --help: %zu lines of %zu columns", help->name,
                 lines, widest);
        (void)lines_of(all, &widest);
        FL_CHECK(widest <= COLUMNS_MOST, "%s --help all: %zu columns", help->name, widest);
        FL_CHECK(!strcmp(some, all) || strstr(some, "--help all"), "%s --help does not say how to see the rest",
                 help->name);
        check_rows(to, help->name, option, count, some, all);
        check_outputs(help->name, option, count);
    }
    free(some);
    free(all);
}

static void test_every_command(void) {
    char arguments[1200], path[1100];
    size_t size;
    files f = {.folder = fl_temp_path("pages")};
    f.folder = strdup(f.folder);
    snprintf(arguments, sizeof arguments, "help -o '%s'", f.folder);
    free(printed(arguments));
    snprintf(path, sizeof path, "%s/bash/foldline", f.folder);
    f.bash = fl_temp_slurp(path, &size);
    snprintf(path, sizeof path, "%s/zsh/_foldline", f.folder);
    f.zsh = fl_temp_slurp(path, &size);
    fl_commands_open();
    fl_command_rows_read((fl_command_reader){check_command, &f});
    char *usage = printed("--help");
    for (size_t i = 0; usage && i < fl_command_rows_count; i++) {
        const fl_command_row *row = &fl_command_rows[i];
        snprintf(arguments, sizeof arguments, "\n  %s ", row->name);
        FL_CHECK((strstr(usage, arguments) != NULL) == fl_part_of(row, ""), "foldline --help and %s", row->name);
        snprintf(arguments, sizeof arguments, ":%s:", row->name);
        FL_CHECK(f.bash && strstr(f.bash, arguments) && f.zsh && strstr(f.zsh, arguments),
                 "the completions do not know %s", row->name);
    }
    free(usage);
    free(f.bash);
    free(f.zsh);
    free((char *)(uintptr_t)f.folder);
}

/* Values of plot, of a policy's parameters, and of --help. */
static void test_values(void) {
    static const struct {
        const char *line, *wants; /* wants: a line of the replies */
    } rows[] = {
        {"foldline plot par", "pareto"},
        {"foldline run x.csv --policy assure:th", "theta="},
        {"foldline run x.csv --policy assure:", "theta="},
        {"foldline compare --policy assure:theta=0.9,probe_m", "0.9,probe_mhz="},
        {"foldline run x.csv --policy assure --set the", "theta="},
        {"foldline compare --wall id", "ideal"},
        {"foldline compare --help a", "all"},
        {"foldline fit policy od", "odpp"},
    };
    char arguments[1200];
    char *folder = strdup(fl_temp_path("completion"));
    snprintf(arguments, sizeof arguments, "help -o '%s'", folder);
    free(printed(arguments));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(
            arguments, sizeof arguments,
            "bash --norc -c '. %s/bash/foldline; COMP_LINE=\"%s\" COMP_POINT=${#COMP_LINE}; w=${COMP_LINE//:/ : }; "
            "w=${w/theta=/theta = }; COMP_WORDS=($w); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _foldline; "
            "printf \"%%s\\n\" \"${COMPREPLY[@]}\"' 2>/dev/null | grep -qx -- '%s'",
            folder, rows[i].line, rows[i].wants);
        FL_CHECK(system(arguments) == 0, "%s<TAB> does not offer %s", rows[i].line, rows[i].wants);
    }
    free(folder);
}

FL_SUITE("help", {"every command", test_every_command}, {"values", test_values})
