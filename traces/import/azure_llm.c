/* Azure's LLM inference traces (github.com/Azure/AzurePublicDataset, AzureLLMInferenceTrace_conv.csv and _code.csv;
 * CC-BY 4.0; Patel et al., "Splitwise: Efficient generative LLM inference using phase splitting", ISCA 2024). */
#include "traces/io/columns.h"
#include "traces/import/foreign.h"
#include "traces/import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_NS (INT64_C(26) * 86400 * 1000000000)

enum { TIMESTAMP, CONTEXT, GENERATED, COLUMNS };

static const char *const COLUMN[COLUMNS] = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"};

typedef struct loader {
    fl_requests r;
    size_t where[COLUMNS], width, left_out;
    int64_t first_ns;
} loader;

/* "2023-11-16 18:15:46.6805900", at most nine digits of a second; the later traces add "+00:00". */
static bool parse_time(const char *text, int64_t *ns) {
    int year, month, day, hour, minute, second, used = 0;
    int64_t fraction = 0;
    if (sscanf(text, "%4d-%2d-%2d%*1[ T]%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second, &used) != 6 ||
        !used || strspn(text, "0123456789-: T") < (size_t)used)
        return false;
    const char *t = text + used;
    if (*t == '.') {
        const size_t digits = strspn(t + 1, "0123456789");
        if (!digits || digits > 9)
            return false;
        for (size_t i = 0; i < 9; i++)
            fraction = fraction * 10 + (i < digits ? t[1 + i] - '0' : 0);
        t += 1 + digits;
    }
    if (!strcmp(t, "+00:00") || !strcmp(t, "Z"))
        t = "";
    if (*t || year < 1970 || year >= 2200 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 ||
        minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    *ns = fl_civil_ns(year, month, day, hour, minute, second, fraction);
    return true;
}

static fl_status on_row(void *user, const fl_csv_row *row, fl_diag *d) {
    loader *l = user;
    fl_requests *r = &l->r;
    int64_t t = 0, prompt = 0, output = 0;
    if (!l->width) {
        l->width = row->count;
        return fl_columns_find(row, COLUMN, COLUMNS, COLUMNS, l->where, d);
    }
    fl_status s = fl_foreign_width(row, l->width, d);
    if (!s && !parse_time(row->field[l->where[TIMESTAMP]].text, &t))
        s = FL_FIELD_FAIL(d, row, l->where[TIMESTAMP],
                          "TIMESTAMP is '%.40s', expected a time such as 2023-11-16 18:15:46.6805900",
                          row->field[l->where[TIMESTAMP]].text);
    if (!s)
        s = fl_field_int(row, l->where[CONTEXT], COLUMN[CONTEXT], 0, FL_REQUEST_TOKENS_MOST, &prompt, d);
    if (!s)
        s = fl_field_int(row, l->where[GENERATED], COLUMN[GENERATED], 0, FL_REQUEST_TOKENS_MOST, &output, d);
    if (s)
        return s;
    if (!prompt || !output) {
        l->left_out++;
        return FL_OK;
    }
    l->first_ns = r->count ? l->first_ns : t;
    if (t - l->first_ns < (r->count ? r->row[r->count - 1].t_ns : 0))
        return FL_FIELD_FAIL(d, row, l->where[TIMESTAMP],
                             "TIMESTAMP is '%.40s', before that of the row above, expected ascending times",
                             row->field[l->where[TIMESTAMP]].text);
    if (t - l->first_ns > LAST_NS)
        return FL_FIELD_FAIL(d, row, l->where[TIMESTAMP],
                             "TIMESTAMP is '%.40s', expected at most 26 days after the first",
                             row->field[l->where[TIMESTAMP]].text);
    const fl_request_row q = {.t_ns = t - l->first_ns,
                              .prompt_tokens = (uint32_t)prompt,
                              .output_tokens = (uint32_t)output,
                              .line = row->line < UINT32_MAX ? (uint32_t)row->line : 0,
                              .column = (uint32_t)row->field[l->where[CONTEXT]].column};
    return fl_requests_add(r, &q, d);
}

fl_status fl_requests_read_azure(const char *path, fl_requests *r, size_t *left_out, fl_diag *d) {
    static const fl_csv_options OPTIONS = {.trim = true};
    loader l = {0};
    fl_status s = (l.r.file = strdup(fl_input_name(path))) && (l.r.names = calloc(1, sizeof *l.r.names)) &&
                          (l.r.names[0] = strdup(""))
                      ? FL_OK
                      : fl_no_memory(d, path);
    l.r.name_count = l.r.name_room = l.r.names && l.r.names[0];
    if (!s)
        s = fl_csv_read(path, &OPTIONS, NULL, on_row, &l, d);
    if (!s && !l.r.count)
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "no requests with tokens, expected at least one row after the header");
    if (s)
        fl_requests_free(&l.r);
    *r = l.r;
    if (left_out)
        *left_out = s ? 0 : l.left_out;
    return s;
}

static bool is_header(const fl_cells *line) {
    return line->count == COLUMNS && fl_cells_have(line, COLUMN[TIMESTAMP]) && fl_cells_have(line, COLUMN[CONTEXT]) &&
           fl_cells_have(line, COLUMN[GENERATED]);
}

static bool azure_detect(const char *path, const char *head, size_t size) {
    (void)path;
    return fl_header_find(head, size, is_header) == 0;
}

static fl_status azure_read(const char *path, const fl_import_options *o, fl_imported *out, fl_diag *d) {
    (void)o;
    size_t left_out = 0;
    fl_status s = fl_requests_read_azure(path, &out->requests, &left_out, d);
    out->has_requests = !s;
    if (!s)
        fl_import_say(out, "no latencies, and the rate is that of the whole service, not of one server (--scale)");
    if (!s && left_out)
        fl_import_say(out, "%zu row%s without prompt or output tokens left out", left_out, left_out > 1 ? "s" : "");
    if (!s)
        s = fl_import_said(out, d);
    return s;
}

const fl_reader fl_reader_azure_llm = {"azure-llm", "requests of Azure's LLM inference traces", azure_detect,
                                       azure_read};
