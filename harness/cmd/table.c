/* The table of all commands. It names every command, so only main and suites call this file. */
#include "harness/cmd/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/cli/commands.h"
#include "harness/cmd/cmd.h"

#include <stdbool.h>

#define COMMAND_ROW(name, summary, words) {#name, summary, words, fl_cmd_##name},
#define PART_ROW(name, ident, summary, words) {name, summary, words, fl_cmd_##ident},

static const fl_command_row rows[] = {FL_COMMANDS(COMMAND_ROW) FL_COMMAND_PARTS(PART_ROW)};

void fl_commands_open(void) {
    fl_command_rows = rows;
    fl_command_rows_count = sizeof rows / sizeof *rows;
    fl_command_read_all = fl_command_rows_read;
}
