#include "harness/base/cli/command.h"
#include "harness/base/json/json_out.h"
#include "harness/base/cli/commands.h"
#include "harness/live/guard/restore.h"

#include <stdio.h>

static const fl_command_help help = {
    "restore", "", "Restores the clocks and limits after a controller that ended without restoring them.",
    "The command reads the records of prior values in $FOLDLINE_STATE or /var/lib/foldline. Without a record it does "
    "nothing, so you may run it at any time and as often as you like. It refuses a GPU that a live controller holds: "
    "stop that controller first. It uses a record only if no other user can have written it (this user owns folder and "
    "file, and neither is a link) and if foldline can have written every line. It reports any other record and "
    "restores the rest."};

static void print_json(const fl_restore_result *r) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "records", (double)r->records);
    cJSON_AddNumberToObject(root, "restored", (double)r->restored);
    cJSON_AddNumberToObject(root, "failed", (double)r->failed);
    fl_json_tell(root);
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
        printf("%zu not restored; the message below explains the first, foldline doctor explains each\n", r.failed);
    return fl_command_close("restore", s, &d, option, FL_COUNT(option), &rest);
}
