/* The rows of all commands, `foldline help`, and the commands that are names of their parts alone. */
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

enum { NAMES_ROOM = 64 };

/* ---- the rows of all commands ---- */

#define COMMAND_ROW(name, summary) {#name, summary, fl_cmd_##name},
#define PART_ROW(name, ident, summary) {name, summary, fl_cmd_##ident},

const fl_command_row fl_command_rows[] = {FL_COMMANDS(COMMAND_ROW) FL_COMMAND_PARTS(PART_ROW)};
const size_t fl_command_rows_count = sizeof fl_command_rows / sizeof *fl_command_rows;

bool fl_part_of(const fl_command_row *row, const char *command) {
    const size_t n = strlen(command);
    return n ? !strncmp(row->name, command, n) && row->name[n] == ' ' && !strchr(row->name + n + 1, ' ')
             : !strchr(row->name, ' ');
}

const char *fl_part_name(const fl_command_row *row) {
    const char *blank = strrchr(row->name, ' ');
    return blank ? blank + 1 : row->name;
}

/* The words of a row's name with which the arguments begin; 0: they begin otherwise. */
static int words_of(const char *name, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        const size_t n = strlen(argv[i]);
        if (strncmp(name, argv[i], n) != 0 || (name[n] && name[n] != ' '))
            return 0;
        if (!name[n])
            return i + 1;
        name += n + 1;
    }
    return 0;
}

bool fl_command_run(int argc, char **argv, int *status) {
    const fl_command_row *found = NULL;
    int most = 0;
    for (size_t i = 0; i < fl_command_rows_count; i++) {
        const int words = words_of(fl_command_rows[i].name, argc, argv);
        found = words > most ? &fl_command_rows[i] : found;
        most = words > most ? words : most;
    }
    if (found)
        *status = found->run(argc - most, argv + most);
    return found != NULL;
}

/* Refuse a name that no part of the command has, and no topic of help. */
static fl_status unknown_part(const char *what, const char *name, const char *command, bool topics, fl_diag *d) {
    const char *names[NAMES_ROOM];
    size_t count = 0;
    for (size_t i = 0; i < fl_command_rows_count && count < NAMES_ROOM; i++)
        if (fl_part_of(&fl_command_rows[i], command))
            names[count++] = fl_part_name(&fl_command_rows[i]);
    for (size_t i = 0; topics && i < fl_topics_count && count < NAMES_ROOM; i++)
        names[count++] = fl_topics[i];
    return fl_fail_unknown(d, NULL, what, name, names, count);
}

fl_status fl_command_unknown(const char *name, fl_diag *d) { return unknown_part("command", name, "", false, d); }

/* ---- commands that are the names of their parts alone ---- */

void fl_parts_text(const char *command, char *text, size_t room) {
    size_t used = 0;
    for (size_t i = 0; i < fl_command_rows_count && used < room; i++)
        if (fl_part_of(&fl_command_rows[i], command))
            used += (size_t)snprintf(text + used, room - used, "  %s  %s\n", fl_part_name(&fl_command_rows[i]),
                                     fl_command_rows[i].summary);
}

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
    const fl_status s = rest.count ? unknown_part(command, rest.item[0], command, false, &d)
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
    "  foldline help experiments          every key: type, unit, standard, what it does\n"
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
    (void)unknown_part("topic", topic->item[0], "", true, &d);
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
