#include "harness/base/command.h"
#include "harness/cmd/commands.h"
#include "harness/live/restore.h"

#include <stdio.h>

static const fl_command_help help = {
    "restore", "", "Puts clocks and limits back as they were before a controller that ended without doing so.",
    "Reads the records of prior values in $FOLDLINE_STATE or /var/lib/foldline; does nothing where there is none, so "
    "it "
    "may\nrun at any time and as often as one likes. A GPU that a live controller holds is refused: stop that "
    "first.\nA "
    "record is used only if this user alone may have written it (folder and file of this user, no link) and every line "
    "is\none that foldline writes; else it is told, and the others are restored."};

int fl_cmd_restore(int argc, char **argv) {
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, NULL, 0, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_restore_result r = {0};
    fl_status s = rest.count ? fl_refuse(&d, "'%s': expected no argument", rest.item[0]) : fl_restore_all(&r, &d);
    if (!s || r.restored || r.failed > 1)
        printf("%zu record%s, %zu restored\n", r.records, r.records == 1 ? "" : "s", r.restored);
    if (r.failed > 1)
        printf("%zu not restored; here is why of the first, foldline doctor says it of each\n", r.failed);
    if (s)
        status = fl_command_fail("restore", &d);
    fl_texts_free(&rest);
    return status;
}
