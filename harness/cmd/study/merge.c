#include "harness/base/cli/command.h"
#include "harness/base/json/json_out.h"
#include "harness/base/cli/commands.h"
#include "harness/study/grid/journal.h"
#include "harness/study/compare/provenance.h"
#include "harness/study/trial/row_columns.h"
#include "traces/io/writing.h"

#include <stdlib.h>

static const fl_command_help help = {
    "merge", "SHARD ... -o RESULTS.csv",
    "Joins the shards of a grid into one result, byte for byte what a single run would have written.",
    "The command refuses shards whose inputs, options or versions differ, missing jobs, and jobs that occur twice."};

static fl_status merge(const fl_texts *shards, const char *out, size_t *jobs, fl_diag *d) {
    fl_journal *j;
    fl_status s = fl_journal_merge(&j, shards->item, shards->count, d);
    fl_output *o = s ? NULL : fl_output_open(out, d);
    if (!s && !o)
        s = d->status;
    if (o) {
        fl_row_head(fl_output_file(o));
        s = fl_journal_write(j, fl_output_file(o), d);
        if (s)
            fl_output_abort(o);
        else
            s = fl_output_commit(o, d);
    }
    *jobs = s ? 0 : fl_journal_count(j);
    fl_journal_close(j);
    return s;
}

/* The shards have one provenance; it goes along, unless neither end has a place for it. */
static fl_status copy_provenance(const fl_texts *shards, const char *out, fl_diag *d) {
    const char *shard = shards->item[shards->count > 1 && fl_is_standard(shards->item[0])];
    if (fl_is_standard(shard) || fl_is_standard(out))
        return FL_OK;
    char *from = fl_provenance_path(shard);
    cJSON *tree = NULL;
    fl_status s = from ? fl_json_read(from, &tree, d) : fl_no_memory(d, NULL);
    if (!s)
        s = fl_provenance_write(out, tree, d);
    cJSON_Delete(tree);
    free(from);
    return s;
}

static void print_json(size_t shards, size_t jobs, const char *out) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "shards", (double)shards);
    cJSON_AddNumberToObject(root, "jobs", (double)jobs);
    cJSON_AddStringToObject(root, "file", out);
    fl_json_tell(root);
}

int fl_cmd_merge(int argc, char **argv) {
    fl_texts shards = {0};
    const char *out = NULL;
    bool json = false;
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &out, 0, 0, "the results"},
        {"json", NULL, FL_OPTION_FLAG, &json, 0, 0, "prints the result as JSON"},
    };
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, FL_COUNT(option), &shards, &status))
        return status;
    fl_diag d = {0};
    size_t jobs = 0;
    fl_status s = out && shards.count ? FL_OK : fl_refuse(&d, "expected shards and -o FILE, see --help");
    if (!s)
        s = merge(&shards, out, &jobs, &d);
    if (!s)
        s = copy_provenance(&shards, out, &d);
    if (!s && json)
        print_json(shards.count, jobs, out);
    else if (!s)
        printf("written: %s\n", out);
    return fl_command_close("merge", s, &d, option, FL_COUNT(option), &shards);
}
