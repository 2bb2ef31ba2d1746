/* JSON of other tools, one value after the other, each as a tree (cJSON). */
#include "traces/import/inside.h"

#include "traces/import/import.h"
#include "traces/io/io.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MOST ((size_t)2 << 30)

typedef struct source {
    char *text;
    size_t size, at, counted;
    int64_t line, column; /* of byte `counted` */
} source;

static void count_to(source *x, size_t to) {
    for (; x->counted < to; x->counted++) {
        x->line += x->text[x->counted] == '\n';
        x->column = x->text[x->counted] == '\n' ? 1 : x->column + 1;
    }
}

/* Python writes NaN and Infinity, which are no JSON: they become empty texts, and so values that are not known. */
static void mend(char *text) {
    static const char *const word[] = {"-Infinity", "Infinity", "NaN"};
    bool quoted = false;
    for (char *at = text; *at; at++) {
        if (quoted && *at == '\\' && at[1]) {
            at++;
            continue;
        }
        quoted ^= *at == '"';
        for (size_t i = 0; !quoted && i < sizeof word / sizeof *word; i++) {
            const size_t size = strlen(word[i]);
            if (strncmp(at, word[i], size) != 0)
                continue;
            memset(at, ' ', size);
            at[0] = at[1] = '"';
            at += size - 1;
            break;
        }
    }
}

static cJSON *parse(source *x, size_t *end) {
    const char *at = NULL;
    cJSON *value = cJSON_ParseWithLengthOpts(x->text + x->at, x->size - x->at + 1, &at, false);
    *end = at ? (size_t)(at - x->text) : x->at;
    return value;
}

/* Appends what the writer of a file leaves out until it ends it. */
static bool close_text(source *x, const char *closing) {
    while (x->size && strchr(" \t\r\n,", x->text[x->size - 1]))
        x->size--;
    char *whole = realloc(x->text, x->size + strlen(closing) + 1);
    if (!whole)
        return false;
    memcpy(whole + x->size, closing, strlen(closing) + 1);
    x->text = whole;
    x->size += strlen(closing);
    return true;
}

fl_status fl_json_each(const char *path, const char *closing, fl_json_function take, void *user, int64_t *torn,
                       fl_diag *d) {
    source x = {.line = 1, .column = 1};
    size_t end, values = 0;
    fl_status s = fl_gunzip_text(path, FILE_MOST, &x.text, &x.size, d);
    if (!s && x.size >= 3 && !memcmp(x.text, "\xef\xbb\xbf", 3))
        x.at = 3;
    if (!s)
        mend(x.text);
    while (!s && x.at < x.size && x.text[x.at] != '{' && x.text[x.at] != '[') { /* what a tool says above it */
        const char *line = memchr(x.text + x.at, '\n', x.size - x.at);
        x.at = line ? (size_t)(line - x.text) + 1 : x.size;
        x.at += strspn(x.text + x.at, " \t");
    }
    if (!s && x.size && x.at == x.size)
        s = fl_fail(d, FL_BAD_INPUT, path, 1, 1, "no JSON, expected '{' or '['");
    for (; !s; x.at = end, values++) {
        x.at += strspn(x.text + x.at, " \t\r\n,");
        if (x.at >= x.size)
            break;
        cJSON *value = parse(&x, &end);
        if (!value && closing && !fl_memory_failed() && close_text(&x, closing)) {
            value = parse(&x, &end);
            closing = NULL;
            if (value && torn)
                *torn = -1;
        }
        count_to(&x, value ? x.at : end);
        if (value) {
            s = take(user, value, x.line, d);
        } else if (fl_memory_failed()) {
            s = fl_no_memory(d, path);
        } else if (torn && values && !memchr(x.text + x.at, '\n', x.size - x.at)) { /* the last line */
            *torn = x.line;
            break;
        } else {
            s = fl_fail(d, FL_BAD_INPUT, path, x.line, x.column, "this is no JSON, or it ends within a value");
        }
        cJSON_Delete(value);
    }
    if (!s && !values)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the file is empty");
    free(x.text);
    return s;
}

const char *fl_json_member_text(const cJSON *object, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

double fl_json_member_real(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}
