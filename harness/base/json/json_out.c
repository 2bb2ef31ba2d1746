#include "harness/base/json/json_out.h"

#include "traces/io/writing.h"
#include "traces/io/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void fl_json_add_real(cJSON *object, const char *key, double value) {
    if (isfinite(value))
        cJSON_AddNumberToObject(object, key, value);
    else
        cJSON_AddNullToObject(object, key);
}

cJSON *fl_json_add_row(cJSON *array) {
    cJSON *row = cJSON_CreateObject();
    cJSON_AddItemToArray(array, row);
    return row;
}

void fl_json_add_texts(cJSON *object, const char *key, char *const *text, size_t count) {
    cJSON *array = cJSON_AddArrayToObject(object, key);
    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(array, cJSON_CreateString(text[i]));
}

void fl_json_add_notes(cJSON *array, char *text) {
    static const char begin[] = "note: ";
    char *rest = NULL;
    if (!text)
        fl_memory_lost();
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        const bool is_note = !strncmp(line, begin, sizeof begin - 1);
        cJSON_AddItemToArray(array, cJSON_CreateString(line + (is_note ? sizeof begin - 1 : 0)));
    }
}

static void add_option(cJSON *object, const fl_option *o) {
    const char *const *text = o->into;
    const fl_texts *list = o->into;
    switch (o->type) {
    case FL_OPTION_FLAG:
        cJSON_AddBoolToObject(object, o->name, *(const bool *)o->into);
        break;
    case FL_OPTION_TEXT:
    case FL_OPTION_OUTPUT:
        cJSON_AddItemToObject(object, o->name, *text ? cJSON_CreateString(*text) : cJSON_CreateNull());
        break;
    case FL_OPTION_LIST:
        fl_json_add_texts(object, o->name, (char *const *)list->item, list->count);
        break;
    case FL_OPTION_REAL:
    case FL_OPTION_SHARE:
        fl_json_add_real(object, o->name, *(const double *)o->into);
        break;
    case FL_OPTION_INT:
        cJSON_AddNumberToObject(object, o->name, (double)*(const int64_t *)o->into);
        break;
    }
}

void fl_json_add_options(cJSON *object, const fl_option *option, size_t count) {
    for (size_t i = 0; i < count; i++)
        add_option(object, &option[i]);
}

fl_status fl_json_write(const char *path, const cJSON *tree, fl_diag *d) {
    char *text = fl_json_text(tree, true);
    fl_output *o = text ? fl_output_open(path, d) : NULL;
    fl_status s = !text ? fl_no_memory(d, path) : o ? FL_OK : d ? d->status : FL_IO;
    if (o) {
        fprintf(fl_output_file(o), "%s\n", text);
        s = fl_output_commit(o, d);
    }
    free(text);
    return s;
}

char *fl_json_text(const cJSON *tree, bool lines) {
    char *text = lines ? cJSON_Print(tree) : cJSON_PrintUnformatted(tree);
    if (!text)
        fl_memory_lost();
    if (!fl_memory_failed())
        return text;
    free(text);
    return NULL;
}

void fl_json_print(const cJSON *tree, FILE *out) {
    char *text = fl_json_text(tree, true);
    if (text)
        fprintf(out, "%s\n", text);
    free(text);
}

void fl_json_tell(cJSON *tree) {
    fl_json_print(tree, stdout);
    cJSON_Delete(tree);
}
