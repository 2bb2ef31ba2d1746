/* `foldline help`, and the commands that are names of their parts alone. */
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

/* ---- commands that are the names of their parts alone ---- */

static int name_parts(const char *command, const char *summary, int argc, char **argv) {
    char details[4096];
    const int used =
        snprintf(details, sizeof details, "WHAT is one of these; foldline %s WHAT --help says more.\n\n", command);
    fl_parts_text(command, details + used, sizeof details - (size_t)used);
    const fl_command_help own = {command, "WHAT ...", summary, details};
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &own, NULL, 0, &rest, &status))
        return status;
    fl_diag d = {0};
    const fl_status s = rest.count ? fl_part_unknown(command, rest.item[0], command, false, &d)
                                   : fl_refuse(&d, "expected WHAT, see foldline %s --help", command);
    return fl_command_close(command, s, &d, NULL, 0, &rest);
}

int fl_cmd_fit(int argc, char **argv) {
    return name_parts("fit", "Fits models and parameters of policies to measurements.", argc, argv);
}

int fl_cmd_fit_policy(int argc, char **argv) {
    return name_parts("fit policy", "Fits what one policy needs: a model, a table, weights or a parameter.", argc,
                      argv);
}

int fl_cmd_list(int argc, char **argv) {
    return name_parts("list", "Lists the policies or the platforms, or says everything about one.", argc, argv);
}

/* ---- `foldline help` ---- */

static const fl_command_help help_of_help = {
    "help", "[COMMAND | experiments | traces | platforms | policies]",
    "Shows the full help of a command, the keys of an experiment, or a topic.",
    "  foldline help                      the commands\n"
    "  foldline help compare              as foldline compare --help\n"
    "  foldline help traces               what they are, and the formats that are read\n"
    "  foldline help experiments          every key: type, unit, default, what it does\n"
    "  foldline help experiments --schema  the same as a JSON Schema, for editors and checks"};

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

/* The page of a command, also of a part of it: help fit device. */
static int page_of(const fl_texts *topic) {
    static char wanted[] = "--help";
    char *argv[8];
    int argc = 0, status = FL_EXIT_OK;
    const size_t all = topic->count > 1 && !strcmp(topic->item[topic->count - 1], "all");
    for (size_t i = 0; i + all < topic->count && i < 5; i++)
        argv[argc++] = (char *)(uintptr_t)topic->item[i];
    argv[argc++] = wanted;
    if (all)
        argv[argc++] = (char *)(uintptr_t)topic->item[topic->count - 1];
    argv[argc] = NULL;
    if (fl_command_run(argc, argv, &status))
        return status;
    fl_diag d = {0};
    (void)fl_part_unknown("topic", topic->item[0], "", true, &d);
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
        {"o", "DIR", FL_OPTION_TEXT, &folder, 0, 0,
         "writes the manual pages of all commands and the completions of bash and zsh into this folder"}};
    if (!fl_command_begin(argc, argv, &help_of_help, option, FL_COUNT(option), &topic, &status))
        return status;
    fl_diag d = {0};
    const char *name = topic.count ? topic.item[0] : "";
    const bool experiment = !strncmp(name, "experiment", 10) && (!name[10] || !strcmp(name + 10, "s"));
    if (folder && (topic.count || schema))
        (void)fl_refuse(&d, "-o DIR writes all pages, expected no topic and no --schema");
    else if (schema && !experiment)
        (void)fl_refuse(&d, "--schema exists only for experiments, expected foldline help experiments --schema");
    else if (experiment && topic.count > 1)
        (void)fl_refuse(&d, "'%s' after %s, expected nothing", topic.item[1], name);
    else if (folder)
        (void)fl_pages_write(folder, &d);
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
