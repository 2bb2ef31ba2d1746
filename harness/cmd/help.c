/* The list of commands, `foldline help` and `foldline fit`. */
#include "harness/cmd/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/base/json/json.h"
#include "harness/cmd/cmd.h"
#include "harness/input/experiment/experiment.h"
#include "policies/policy.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- `foldline fit` ---- */

#define LINE(name, summary) "  " #name "  " summary "\n"

static const fl_command_help help = {"fit", "WHAT ...", "Fits models and parameters of policies to measurements.",
                                     "WHAT is one of these; foldline fit WHAT --help says more.\n\n" FL_FITS(LINE)};

#define ROW(name, summary) {#name, summary, fl_cmd_fit_##name},

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} fits[] = {FL_FITS(ROW)};
enum { COUNT = sizeof fits / sizeof *fits };

int fl_cmd_fit(int argc, char **argv) {
    fl_diag d = {0};
    const char *name = argc > 0 ? argv[0] : NULL;
    const char *names[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        names[i] = fits[i].name;
        if (name && !strcmp(name, fits[i].name))
            return fits[i].run(argc - 1, argv + 1);
    }
    if (name && (!strcmp(name, "--help") || !strcmp(name, "-h"))) {
        int status = FL_EXIT_OK;
        fl_texts rest = {0};
        (void)fl_command_begin(1, argv, &help, NULL, 0, &rest, &status);
        return status;
    }
    const char *near = name ? fl_nearest(name, names, COUNT) : NULL;
    if (near)
        fl_refuse(&d, "foldline fit has no '%s', did you mean '%s'?", name, near);
    else if (name)
        fl_refuse(&d, "foldline fit has no '%s', see foldline fit --help", name);
    else
        fl_refuse(&d, "nothing to fit, see foldline fit --help");
    return fl_command_fail("fit", &d);
}

/* ---- `foldline help` ---- */

static const fl_command_help help_of_help = {
    "help", "[COMMAND | experiments | traces | platforms | policies]",
    "Shows the full help of a command, the keys of an experiment, or a topic.",
    "  foldline help                      the commands\n"
    "  foldline help compare              as foldline compare --help\n"
    "  foldline help traces               what they are, and the formats that are read\n"
    "  foldline help experiments          every key: type, unit, standard, what it does\n"
    "  foldline help experiments --schema  the same as a JSON Schema, for editors and checks"};

#define COMMAND_ROW(name, summary) {#name, summary, fl_cmd_##name},

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {FL_COMMANDS(COMMAND_ROW)};
enum { COMMANDS = sizeof commands / sizeof *commands, TOPICS_ROOM = 16 };

void fl_usage(FILE *out) {
    const fl_page page = {.out = out, .width = fl_terminal_width(out)};
    fl_page_fill(&page, 0, 0, FL_ABOUT);
    fl_page_gap(&page);
    fl_page_fill(&page, 0, 4, "usage: " FL_USAGE);
    fl_page_gap(&page);
    fl_pages_list(&page);
    fl_page_gap(&page);
    fl_page_fill(&page, 0, 0, FL_MORE_HELP);
    fl_page_gap(&page);
    fl_page_fill(&page, 0, 0, "Exit status: " FL_EXIT_STATUSES);
    fl_args_examples(&page, "");
}

bool fl_command_run(int argc, char **argv, int *status) {
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[0], commands[i].name)) {
            *status = commands[i].run(argc - 1, argv + 1);
            return true;
        }
    return false;
}

fl_status fl_command_unknown(const char *what, const char *name, bool topics, fl_diag *d) {
    const char *names[COMMANDS + TOPICS_ROOM];
    size_t count = 0;
    for (; count < COMMANDS; count++)
        names[count] = commands[count].name;
    for (size_t i = 0; topics && i < fl_topics_count && i < TOPICS_ROOM; i++)
        names[count++] = fl_topics[i];
    const char *near = fl_nearest(name, names, count);
    return near ? fl_refuse(d, "unknown %s '%s', did you mean '%s'?", what, name, near)
                : fl_refuse(d, "unknown %s '%s', see foldline --help", what, name);
}

/* The page of a command, also of a part of it: help fit device. */
static int page_of(const fl_texts *topic) {
    static char wanted[] = "--help";
    char *argv[8];
    int argc = 0, status = FL_EXIT_OK;
    for (size_t i = 0; i < topic->count && i < 6; i++)
        argv[argc++] = (char *)(uintptr_t)topic->item[i];
    argv[argc++] = wanted;
    argv[argc] = NULL;
    if (fl_command_run(argc, argv, &status))
        return status;
    fl_diag d = {0};
    (void)fl_command_unknown("topic", topic->item[0], true, &d);
    return fl_command_fail("help", &d);
}

static fl_status print_schema(void) {
    cJSON *tree = fl_keys_schema(&fl_experiment_keys, "an experiment of foldline");
    fl_json_tell(tree);
    return FL_OK;
}

int fl_cmd_help(int argc, char **argv) {
    fl_texts topic = {0};
    bool schema = false, known = false;
    const char *folder = NULL;
    int status = FL_EXIT_OK;
    const fl_option option[] = {
        {"schema", NULL, FL_OPTION_FLAG, &schema, 0, 0, "of an experiment: prints its JSON Schema"},
        {"write", "DIR", FL_OPTION_TEXT, &folder, 0, 0,
         "writes the manual pages of all commands and the completions of bash and zsh into this folder"}};
    if (!fl_command_begin(argc, argv, &help_of_help, option, FL_COUNT(option), &topic, &status))
        return status;
    fl_diag d = {0};
    const char *name = topic.count ? topic.item[0] : "";
    const bool experiment = !strncmp(name, "experiment", 10) && (!name[10] || !strcmp(name + 10, "s"));
    if (folder && (topic.count || schema))
        (void)fl_refuse(&d, "--write DIR writes all pages, expected no topic and no --schema");
    else if (schema && !experiment)
        (void)fl_refuse(&d, "--schema exists only for experiments, expected foldline help experiments --schema");
    else if (experiment && topic.count > 1)
        (void)fl_refuse(&d, "'%s' after %s, expected nothing", topic.item[1], name);
    else if (folder)
        (void)fl_pages_write(folder, fl_command_run, &d);
    else if (schema)
        (void)print_schema();
    else if (topic.count == 1)
        (void)fl_topic_print(name, &known, &d);
    if (d.status)
        status = fl_command_fail("help", &d);
    else if (topic.count && !known && !schema)
        status = page_of(&topic);
    else if (!topic.count && !folder)
        fl_usage(stdout);
    fl_command_end(option, FL_COUNT(option), &topic);
    return status;
}
