/* The help of a command, from the rows of its options. */
#include "harness/base/cli/inside.h"

#include "harness/base/cli/cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_USED = FL_FOR_GROUPS, SECTIONS, GROUP_COLUMN = 12 };

/* The sections of a help, in order. */
static const struct {
    int id;
    const char *title;
} section[SECTIONS] = {{MOST_USED, "most used"},      {FL_FOR_INPUT, "input"},     {FL_FOR_MACHINE, "machine"},
                       {FL_FOR_POLICIES, "policies"}, {FL_FOR_SERVING, "serving"}, {FL_FOR_METHOD, "method"},
                       {FL_FOR_OUTPUT, "output"}};

static int section_of(const fl_option *o) { return o->group & FL_MOST_USED ? MOST_USED : o->group; }

static size_t rows_of(const fl_option *option, size_t count, int id) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += section_of(&option[i]) == id;
    return n;
}

void fl_args_left(const fl_option *o, char *buf, size_t size) {
    (void)snprintf(buf, size, "%s%s%s%s", o->name[1] ? "--" : "-", o->name, o->value ? " " : "",
                   o->value ? o->value : "");
}

static void put_row(const fl_page *page, const fl_option *o) {
    char left[256];
    fl_args_left(o, left, sizeof left);
    fl_page_row(page, FL_ARGS_COLUMN, left, o->help);
}

void fl_args_options(const fl_page *page, const fl_option *option, size_t count) {
    const bool flat = !rows_of(option, count, MOST_USED);
    if (flat && !page->roff)
        fl_page_heading(page, "options:");
    for (size_t k = 0; k < SECTIONS; k++) {
        if (!flat && rows_of(option, count, section[k].id))
            fl_page_subheading(page, section[k].title);
        for (size_t i = 0; i < count; i++)
            if (flat ? !k : section_of(&option[i]) == section[k].id)
                put_row(page, &option[i]);
    }
    fl_page_row(page, FL_ARGS_COLUMN, "--help", "this text");
}

static void put_examples(const fl_page *page, const char *command, int most) {
    const char *const *example = fl_examples_of(command);
    if (!example)
        return;
    fl_page_heading(page, page->roff ? "EXAMPLES" : most > 1 ? "examples:" : "example:");
    for (int i = 0; i < most; i++) {
        if (i && page->roff)
            fl_page_gap(page);
        fl_page_command(page, 2, example[i]);
    }
}

void fl_args_examples(const fl_page *page, const char *command) { put_examples(page, command, FL_EXAMPLES_EACH); }

const char *fl_args_prefix = "foldline ";

static void put_begin(const fl_page *page, const fl_command_help *c) {
    char text[1024];
    (void)snprintf(text, sizeof text, "%s%s %s", fl_args_prefix, c->name, c->usage);
    fl_page_fill(page, 0, 4, text);
    fl_page_gap(page);
    fl_page_fill(page, 0, 0, c->summary);
}

static void put_whole(const fl_page *page, const fl_command_help *c, const fl_option *option, size_t count) {
    put_begin(page, c);
    fl_args_options(page, option, count);
    if (c->details) {
        fl_page_gap(page);
        fl_page_text(page, c->details);
    }
    fl_args_examples(page, c->name);
}

/* The options used most, and the names of the others by their groups. */
static void put_short(const fl_page *page, const fl_command_help *c, const fl_option *option, size_t count) {
    char names[2048], text[160];
    put_begin(page, c);
    const bool flat = !rows_of(option, count, MOST_USED);
    fl_page_heading(page, flat ? "options:" : "most used:");
    for (size_t i = 0; i < count; i++)
        if (flat || section_of(&option[i]) == MOST_USED)
            put_row(page, &option[i]);
    if (!flat)
        fl_page_heading(page, "others:");
    for (size_t k = 1; !flat && k < SECTIONS; k++) {
        size_t used = 0;
        for (size_t i = 0; i < count && used < sizeof names; i++)
            if (section_of(&option[i]) == section[k].id)
                used += (size_t)snprintf(names + used, sizeof names - used, "%s%s ", option[i].name[1] ? "--" : "-",
                                         option[i].name);
        if (used)
            fl_page_row(page, GROUP_COLUMN, section[k].title, names);
    }
    fl_page_gap(page);
    (void)snprintf(text, sizeof text, "%s%s --help all explains every option and says more.", fl_args_prefix, c->name);
    fl_page_fill(page, 0, 0, text);
    put_examples(page, c->name, 1);
}

void fl_args_help(FILE *out, const fl_command_help *c, const fl_option *option, size_t count, bool all) {
    fl_page page = {.out = out, .width = fl_terminal_width(out)};
    char *text = NULL;
    size_t size = 0, lines = 0;
    FILE *memory = all ? NULL : open_memstream(&text, &size);
    if (memory) {
        page.out = memory;
        put_whole(&page, c, option, count);
        page.out = out;
        if (!fclose(memory))
            for (const char *at = text; (at = strchr(at, '\n')); at++)
                lines++;
    }
    free(text);
    if (lines > FL_HELP_LINES)
        put_short(&page, c, option, count);
    else
        put_whole(&page, c, option, count);
}
