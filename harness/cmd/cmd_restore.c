#include "harness/base/command.h"
#include "harness/base/json_out.h"
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

static void print_json(const fl_restore_result *r) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "records", (double)r->records);
    cJSON_AddNumberToObject(root, "restored", (double)r->restored);
    cJSON_AddNumberToObject(root, "failed", (double)r->failed);
    fl_json_print(root, stdout);
    cJSON_Delete(root);
}

int fl_cmd_restore(int argc, char **argv) {
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    bool json = false;
    const fl_option option[] = {
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints the result as JSON"},
    };
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &rest, &status))
        return status;
    fl_diag d = {0};
    fl_restore_result r = {0};
    fl_status s = rest.count ? fl_refuse(&d, "'%s': expected no argument", rest.item[0]) : fl_restore_all(&r, &d);
    const bool told = !s || r.restored || r.failed;
    if (json && told)
        print_json(&r);
    else if (!s || r.restored || r.failed > 1)
        printf("%zu record%s, %zu restored\n", r.records, r.records == 1 ? "" : "s", r.restored);
    if (r.failed > 1 && !json)
        printf("%zu not restored; here is why of the first, foldline doctor says it of each\n", r.failed);
    return fl_command_close("restore", s, &d, option, FL_COUNT(option), &rest);
}
