/* What is done with the rows of all commands: names, parts, dispatch. */
#include "harness/cmd/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/cmd/cmd.h"
#include "policies/registry/registry.h"
#include "traces/io/io.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_ROOM = 64 };

const fl_command_row *fl_command_rows;
size_t fl_command_rows_count;

const char *const fl_topics[] = {"experiment", "experiments", "traces", "platforms", "policies"};
const size_t fl_topics_count = sizeof fl_topics / sizeof *fl_topics;

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

/* The command or part that users call by another name: by a word of its row, or by the name of a part alone. A word of
 * a command and of one of its parts means the part. */
static const char *find_meant(const char *name, const char *command) {
    for (size_t i = 0; i < fl_command_rows_count; i++) {
        const fl_command_row *row = &fl_command_rows[i];
        if (fl_part_of(row, command) ? !fl_is_among(name, row->words) : *command || strcmp(fl_part_name(row), name))
            continue;
        for (size_t k = 0; !*command && k < fl_command_rows_count; k++)
            if (fl_part_of(&fl_command_rows[k], row->name) && fl_is_among(name, fl_command_rows[k].words))
                return fl_command_rows[k].name;
        return *command ? fl_part_name(row) : row->name;
    }
    return NULL;
}

/* The names of parts of the command, or (parts) of all parts. */
static size_t list_names(const char *command, bool parts, const char *names[NAMES_ROOM]) {
    size_t count = 0;
    for (size_t i = 0; i < fl_command_rows_count && count < NAMES_ROOM; i++)
        if (parts ? strchr(fl_command_rows[i].name, ' ') != NULL : fl_part_of(&fl_command_rows[i], command))
            names[count++] = fl_part_name(&fl_command_rows[i]);
    return count;
}

fl_status fl_part_unknown(const char *what, const char *name, const char *command, bool topics, fl_diag *d) {
    const char *names[NAMES_ROOM], *part[NAMES_ROOM];
    size_t count = list_names(command, false, names);
    for (size_t i = 0; topics && i < fl_topics_count && count < NAMES_ROOM; i++)
        names[count++] = fl_topics[i];
    for (size_t i = 0; i < fl_policies_count; i++)
        if (!strcmp(fl_policies[i]->name, name))
            return fl_refuse(d, "no %s '%s'; it is a policy: foldline list policies %s", what, name, name);
    const char *meant = find_meant(name, command), *near = NULL;
    if (!meant && !*command && !fl_nearest(name, names, count) &&
        (near = fl_nearest(name, part, list_names(command, true, part))))
        meant = find_meant(near, command);
    return meant ? fl_refuse(d, "no %s '%s', did you mean '%s'?", what, name, meant)
                 : fl_fail_unknown(d, NULL, what, name, names, count);
}

fl_status fl_command_unknown(const char *name, fl_diag *d) { return fl_part_unknown("command", name, "", false, d); }

void fl_parts_text(const char *command, char *text, size_t room) {
    size_t used = 0;
    for (size_t i = 0; i < fl_command_rows_count && used < room; i++)
        if (fl_part_of(&fl_command_rows[i], command))
            used += (size_t)snprintf(text + used, room - used, "  %s  %s\n", fl_part_name(&fl_command_rows[i]),
                                     fl_command_rows[i].summary);
}
