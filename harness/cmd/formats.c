/* The page of formats: a row for each reader (traces/open/open.h). */
#include "harness/cmd/inside.h"

#include "harness/base/cli/cli.h"
#include "harness/base/json/json.h"
#include "traces/import/import.h"
#include "traces/open/open.h"

#include <stddef.h>
#include <stdio.h>

enum { COLUMN = 22, WORDS = 160 };

void fl_formats_print(const fl_page *page) {
    for (size_t i = 0; i < fl_readers_count; i++) {
        const fl_reader *r = fl_readers[i];
        char gives[WORDS], lacks[WORDS], text[3 * WORDS];
        fl_gives_text(r->gives, false, gives, sizeof gives);
        fl_gives_text(r->gives, true, lacks, sizeof lacks);
        fl_page_row(page, COLUMN, r->name, r->what);
        const char *missing = fl_reader_missing(r);
        snprintf(text, sizeof text, "%s; gives %s%s%s%s%s", r->tool, gives, *lacks ? "; lacks " : "", lacks,
                 missing ? "; not read: this build is without " : "", missing ? missing : "");
        fl_page_below(page, COLUMN, text);
    }
}

void fl_formats_tell(void) {
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "formats");
    for (size_t i = 0; i < fl_readers_count; i++) {
        const fl_reader *r = fl_readers[i];
        char words[WORDS];
        cJSON *row = fl_json_add_row(list);
        cJSON_AddStringToObject(row, "name", r->name);
        cJSON_AddStringToObject(row, "what", r->what);
        cJSON_AddStringToObject(row, "tool", r->tool);
        fl_gives_text(r->gives, false, words, sizeof words);
        cJSON_AddStringToObject(row, "gives", words);
        fl_gives_text(r->gives, true, words, sizeof words);
        cJSON_AddStringToObject(row, "lacks", words);
        cJSON_AddBoolToObject(row, "read", !fl_reader_missing(r));
    }
    fl_json_tell(root);
}
