#include "traces/serving/requests.h"

#include "traces/io/writing.h"

#include <stdlib.h>

fl_status fl_requests_add(fl_requests *r, const fl_request_row *row, fl_diag *d) {
    if (r->count >= FL_REQUESTS_MOST)
        return fl_fail(d, FL_BAD_INPUT, r->file, row->line, 0, "more than %u requests, expected at most that number",
                       (unsigned)FL_REQUESTS_MOST);
    if (fl_grow(&r->row, &r->room, r->count + 1, sizeof *r->row))
        return fl_no_memory(d, r->file);
    r->row[r->count++] = *row;
    return FL_OK;
}

void fl_requests_free(fl_requests *r) {
    fl_head_free(&r->head);
    for (size_t i = 0; i < r->name_count; i++)
        free(r->names[i]);
    free(r->names);
    free(r->file);
    free(r->row);
    free(r->times);
    *r = (fl_requests){0};
}

int64_t fl_requests_scaled_ns(int64_t t_ns, double scale) {
    const double t = (double)t_ns / scale + 0.5;
    if (scale == 1)
        return t_ns;
    return t < 0x1p63 ? (int64_t)t : INT64_MAX;
}

/* ---- writing ---- */

enum { TIMES = 4 };

static const char *const TIME[TIMES] = {"queued_ns", "scheduled_ns", "first_token_ns", "last_token_ns"};

static int64_t time_of(const fl_request_times *t, int which) {
    const int64_t all[TIMES] = {t->queued_ns, t->scheduled_ns, t->first_token_ns, t->last_token_ns};
    return all[which];
}

static void put_name(FILE *file, const fl_requests *r, uint32_t name) {
    fputc(',', file);
    if (name)
        fl_csv_put(file, r->names[name]);
}

fl_status fl_requests_write(const char *path, const fl_requests *r, fl_diag *d) {
    fl_output *o;
    bool model = false, class = false, cached = false, time[TIMES] = {false};
    const fl_status s = fl_output_begin(path, "foldline-requests", &r->head, &o, d);
    if (s)
        return s;
    for (size_t i = 0; i < r->count; i++) {
        model |= r->row[i].model != 0;
        class |= r->row[i].class != 0;
        cached |= r->row[i].cached_tokens != 0;
        for (int k = 0; r->times && k < TIMES; k++)
            time[k] |= time_of(&r->times[i], k) != INT64_MIN;
    }
    FILE *file = fl_output_file(o);
    fprintf(file, "t_ns,prompt_tokens,output_tokens%s%s%s", model ? ",model" : "", class ? ",class" : "",
            cached ? ",cached_tokens" : "");
    for (int k = 0; k < TIMES; k++)
        if (time[k])
            fprintf(file, ",%s", TIME[k]);
    fputc('\n', file);
    for (size_t i = 0; i < r->count; i++) {
        const fl_request_row *q = &r->row[i];
        fl_put_int(file, q->t_ns);
        fputc(',', file);
        fl_put_int(file, q->prompt_tokens);
        fputc(',', file);
        fl_put_int(file, q->output_tokens);
        if (model)
            put_name(file, r, q->model);
        if (class)
            put_name(file, r, q->class);
        if (cached) {
            fputc(',', file);
            fl_put_int(file, q->cached_tokens);
        }
        for (int k = 0; k < TIMES; k++) {
            const int64_t t = time[k] ? time_of(&r->times[i], k) : INT64_MIN;
            if (time[k])
                fputc(',', file);
            if (t != INT64_MIN)
                fl_put_int(file, t);
        }
        fputc('\n', file);
    }
    return fl_output_commit(o, d);
}
