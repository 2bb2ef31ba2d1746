#include "harness/base/command.h"
#include "harness/base/json_out.h"
#include "harness/base/page.h"
#include "harness/base/terminal.h"
#include "harness/cmd/commands.h"
#include "harness/input/experiment_keys.h"
#include "sim/params.h"

#include <string.h>

static const fl_command_help help = {
    "help", "[COMMAND | experiment]", "Says everything about a command, or about the keys of an experiment.",
    "  foldline help                      the commands\n"
    "  foldline help compare              as foldline compare --help\n"
    "  foldline help experiment           every key: type, unit, standard, what it does\n"
    "  foldline help experiment --schema  the same as a JSON Schema, for editors and checks"};

#define ROW(name, summary) {#name, summary, fl_cmd_##name},

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {FL_COMMANDS(ROW)};
enum { COMMANDS = sizeof commands / sizeof *commands, COMMAND_COLUMN = 15 };

static const char about[] =
    "foldline replays recorded GPU kernel and power traces under clock policies: energy, makespan, regret.";
static const char after[] =
    "foldline COMMAND --help says everything about one of them, foldline help experiment everything about the keys of "
    "an experiment; foldline --version (-V) which one this is.";

void fl_usage(FILE *out) {
    const fl_page page = {.out = out, .width = fl_terminal_width(out)};
    fl_page_fill(&page, 0, 0, about);
    fl_page_gap(&page);
    fl_page_fill(&page, 0, 4, "usage: foldline COMMAND [options]");
    fl_page_gap(&page);
    for (int i = 0; i < COMMANDS; i++)
        fl_page_row(&page, COMMAND_COLUMN, commands[i].name, commands[i].summary);
    fl_page_gap(&page);
    fl_page_fill(&page, 0, 0, after);
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

fl_status fl_command_unknown(const char *what, const char *name, const char *more, fl_diag *d) {
    const char *names[COMMANDS + 1];
    size_t count = 0;
    for (; count < COMMANDS; count++)
        names[count] = commands[count].name;
    if (more)
        names[count++] = more;
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
    (void)fl_command_unknown("topic", topic->item[0], "experiment", &d);
    return fl_command_fail("help", &d);
}

static int experiment_page(bool schema) {
    if (!schema) {
        fl_keys_print(&fl_experiment_keys, stdout);
        return FL_EXIT_OK;
    }
    cJSON *tree = fl_keys_schema(&fl_experiment_keys, "an experiment of foldline");
    fl_json_print(tree, stdout);
    cJSON_Delete(tree);
    return FL_EXIT_OK;
}

int fl_cmd_help(int argc, char **argv) {
    fl_texts topic = {0};
    bool schema = false;
    int status = FL_EXIT_OK;
    const fl_option option[] = {
        {"schema", NULL, FL_OPTION_FLAG, &schema, 0, 0, "of an experiment: prints its JSON Schema"}};
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &topic, &status))
        return status;
    fl_diag d = {0};
    const bool experiment = topic.count && !strcmp(topic.item[0], "experiment");
    if (experiment && topic.count > 1)
        (void)fl_refuse(&d, "'%s' after experiment, expected nothing", topic.item[1]);
    else if (schema && !experiment)
        (void)fl_refuse(&d, "--schema: only an experiment has one");
    if (d.status)
        status = fl_command_fail("help", &d);
    else if (experiment)
        status = experiment_page(schema);
    else if (topic.count)
        status = page_of(&topic);
    else
        fl_usage(stdout);
    fl_command_end(option, FL_COUNT(option), &topic);
    return status;
}
