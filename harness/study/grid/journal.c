/* The journal of a grid. */
#include "harness/study/grid/inside.h"

#include "harness/base/work/work.h"
#include "harness/study/grid/grid.h"
#include "traces/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "# foldline-journal 1 "

typedef struct job_rows {
    char *text; /* its lines, one after the other; NULL: not done */
} job_rows;

struct fl_journal {
    char *path;
    char key[65];
    int fd; /* -1: in memory only */
    size_t jobs, done;
    job_rows *job;
    pthread_mutex_t lock;
    time_t synced;
};

static fl_status io(const fl_journal *j, const char *what, fl_diag *d) {
    return fl_fail(d, FL_IO, j->path, 0, 0,
                   "cannot %s: %s; the rows written so far are kept, run the command again to continue", what,
                   fl_reason(errno));
}

/* CRC-32 (IEEE 802.3), bit by bit: rows are short beside what made them. */
static uint32_t crc(const char *text, size_t size) {
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        c ^= (unsigned char)text[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~c;
}

static size_t lines_of(const char *text) {
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* ---- reading ---- */

typedef struct half { /* of a job whose lines are being gathered */
    size_t job, rows, seen;
    char *text;
    size_t size;
} half;

static void add_line(half *h, const char *text, size_t size) {
    h->text = fl_must(realloc(h->text, h->size + size + 2));
    memcpy(h->text + h->size, text, size);
    h->size += size;
    h->text[h->size++] = '\n';
    h->text[h->size] = 0;
}

/* "JOB ROW ROWS CRC TEXT". False where the line is not whole. */
static bool parse(const char *line, size_t size, size_t *job, size_t *row, size_t *rows, const char **text) {
    uint32_t sum;
    int at = 0;
    if (sscanf(line, "%zu %zu %zu %8" SCNx32 "%n", job, row, rows, &sum, &at) != 4 || !at || line[at] != ' ')
        return false;
    *text = line + at + 1;
    return crc(*text, size - (size_t)(at + 1)) == sum;
}

/* The lines of `text`, whole ones only; *good is the offset behind the last job that is complete, *last the line at
 * which it stopped. fresh: a job that is there already is an error. */
static fl_status take_lines(fl_journal *j, const char *path, char *text, size_t *good, size_t *last, bool fresh,
                            fl_diag *d) {
    half h = {.job = SIZE_MAX};
    fl_status s = FL_OK;
    char *line = strchr(text, '\n');
    size_t number = *last = 1;
    *good = line ? (size_t)(line + 1 - text) : 0;
    for (line = line ? line + 1 : text + strlen(text); *line;) {
        char *end = strchr(line, '\n');
        size_t job, row, rows;
        const char *rest;
        *last = ++number;
        if (!end)
            break; /* torn */
        *end = 0;
        if (!parse(line, (size_t)(end - line), &job, &row, &rows, &rest) || job >= j->jobs || row > rows)
            break;
        if (fresh && row <= 1 && j->job[job].text) {
            s = fl_fail(d, FL_BAD_INPUT, path, (int64_t)number, 0,
                        "job %zu occurs twice, expected each job in one shard only", job);
            break;
        }
        if (row <= 1) {
            free(h.text);
            h = (half){.job = job, .rows = rows, .text = fl_must(calloc(1, 1))};
        } else if (job != h.job || rows != h.rows || row != h.seen + 1) {
            break;
        }
        h.seen = row;
        if (rows)
            add_line(&h, rest, strlen(rest));
        line = end + 1;
        if (h.seen == h.rows) {
            j->done += !j->job[job].text;
            free(j->job[job].text);
            j->job[job].text = h.text;
            h = (half){.job = SIZE_MAX};
            *good = (size_t)(line - text);
        }
    }
    free(h.text);
    return s;
}

static fl_status read_all(const char *path, char **text, fl_diag *d) {
    size_t size = 0;
    fl_status s = fl_gunzip_text(path, SIZE_MAX / 2, text, &size, d);
    if (!s && memchr(*text, 0, size)) {
        free(*text);
        *text = NULL;
        s = fl_fail(d, FL_BAD_INPUT, path, 0, 0, "not a journal, expected a complete text file");
    }
    return s;
}

static bool parse_head(const char *text, char *key, size_t *jobs) {
    int at = 0;
    char number[20] = "";
    if (strncmp(text, MAGIC, sizeof MAGIC - 1) != 0 ||
        sscanf(text + sizeof MAGIC - 1, "%64[0-9a-f] %19[0-9]%n", key, number, &at) != 2 ||
        text[sizeof MAGIC - 1 + (size_t)at] != '\n')
        return false;
    *jobs = strtoul(number, NULL, 10); /* 19 digits fit */
    return true;
}

static fl_status no_journal(const char *path, fl_diag *d) {
    return fl_fail(d, FL_BAD_INPUT, path, 1, 1, "not a journal of this version, expected '" MAGIC "KEY JOBS'");
}

/* Only what begins like a shard is read: another file may have no end. */
static fl_status check_begin(const char *path, fl_diag *d) {
    char text[sizeof MAGIC] = "";
    size_t got = 0;
    fl_gunzip *g = fl_gunzip_open(path, d);
    fl_status s = g ? fl_gunzip_read(g, text, sizeof MAGIC - 1, &got, d) : d->status;
    fl_gunzip_close(g);
    return s || !strcmp(text, MAGIC) ? s : no_journal(path, d);
}

static fl_status check_head(const fl_journal *j, const char *path, const char *text, fl_diag *d) {
    char key[65] = "";
    size_t jobs = 0;
    if (!parse_head(text, key, &jobs))
        return no_journal(path, d);
    if (strcmp(key, j->key) != 0 || jobs != j->jobs)
        return fl_fail(d, FL_BAD_INPUT, path, 1, 0,
                       "begun with other inputs, other options or another version of foldline, expected the same; "
                       "remove the file to start over");
    return FL_OK;
}

/* ---- opening ---- */

static fl_status write_all(const fl_journal *j, const char *text, size_t size, fl_diag *d) {
    while (size) {
        const ssize_t n = write(j->fd, text, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return io(j, "write", d);
        text += n;
        size -= (size_t)n;
    }
    return FL_OK;
}

static fl_status load(fl_journal *j, fl_diag *d) {
    struct stat st;
    char *text = NULL, head[sizeof MAGIC + 100];
    const int n = snprintf(head, sizeof head, MAGIC "%s %zu\n", j->key, j->jobs);
    size_t good = 0, last;
    if (fstat(j->fd, &st))
        return io(j, "read", d);
    fl_status s = FL_OK;
    if (st.st_size) {
        s = read_all(j->path, &text, d);
        /* Killed within its first line; whatever else has no line is somebody's file. */
        if (!s && !strncmp(head, text, strlen(text)) && !strchr(text, '\n'))
            good = 0;
        else if (!s && !(s = check_head(j, j->path, text, d)))
            s = take_lines(j, j->path, text, &good, &last, false, d);
        free(text);
    }
    if (!s && (off_t)good < st.st_size && ftruncate(j->fd, (off_t)good))
        s = io(j, "cut off what a kill left half-written", d);
    if (s || good)
        return s;
    return write_all(j, head, (size_t)n, d);
}

fl_status fl_journal_open(fl_journal **out, const char *path, const char *key, size_t jobs, fl_diag *d) {
    fl_journal *j = fl_must(calloc(1, sizeof *j));
    *out = NULL;
    j->fd = -1;
    j->jobs = jobs;
    j->job = fl_must(calloc(jobs + 1, sizeof *j->job));
    j->path = path ? fl_must(strdup(path)) : NULL;
    snprintf(j->key, sizeof j->key, "%s", key);
    pthread_mutex_init(&j->lock, NULL);
    fl_status s = FL_OK;
    if (path) {
        j->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (j->fd < 0)
            s = fl_fail(d, FL_IO, path, 0, 0, "cannot create: %s", fl_reason(errno));
        else if (flock(j->fd, LOCK_EX | LOCK_NB))
            s = fl_fail(d, FL_IO, path, 0, 0, "another foldline process is writing this file");
        else
            s = load(j, d);
    }
    if (s)
        fl_journal_close(j);
    else
        *out = j;
    return s;
}

void fl_journal_close(fl_journal *j) {
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    for (size_t i = 0; i < j->jobs; i++)
        free(j->job[i].text);
    free(j->job);
    free(j->path);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

bool fl_journal_has(const fl_journal *j, size_t job) { return job < j->jobs && j->job[job].text; }
size_t fl_journal_count(const fl_journal *j) { return j->done; }

/* ---- writing ---- */

/* The journal lines of a job. malloc'd. */
static char *lines(size_t job, const char *rows, size_t *size) {
    fl_text t;
    const size_t count = lines_of(rows);
    FILE *f = fl_must(fl_text_open(&t));
    if (!count)
        fprintf(f, "%zu 0 0 %08" PRIx32 " \n", job, crc("", 0));
    for (size_t i = 1; *rows; i++) {
        const char *end = strchr(rows, '\n');
        const size_t length = (size_t)(end - rows);
        fprintf(f, "%zu %zu %zu %08" PRIx32 " %.*s\n", job, i, count, crc(rows, length), (int)length, rows);
        rows = end + 1;
    }
    return fl_must(fl_text_close(&t, size));
}

fl_status fl_journal_sync(fl_journal *j, fl_diag *d) {
    if (j->fd >= 0 && fdatasync(j->fd))
        return io(j, "write to disk", d);
    j->synced = time(NULL);
    return FL_OK;
}

fl_status fl_journal_add(fl_journal *j, size_t job, const char *rows, fl_diag *d) {
    size_t size;
    char *text = lines(job, rows, &size), *copy = fl_must(strdup(rows));
    fl_must_have(!fl_memory_failed()); /* while the rows were made */
    pthread_mutex_lock(&j->lock);
    fl_status s = j->fd >= 0 ? write_all(j, text, size, d) : FL_OK;
    if (!s) {
        j->done += !j->job[job].text;
        free(j->job[job].text);
        j->job[job].text = copy;
        copy = NULL;
    }
    if (!s && time(NULL) > j->synced)
        s = fl_journal_sync(j, d);
    pthread_mutex_unlock(&j->lock);
    free(text);
    free(copy);
    return s;
}

void fl_journal_write(fl_journal *j, FILE *file) {
    for (size_t i = 0; i < j->jobs; i++)
        if (j->job[i].text)
            fputs(j->job[i].text, file);
}

void fl_journal_write_shard(fl_journal *j, FILE *file) {
    fprintf(file, MAGIC "%s %zu\n", j->key, j->jobs);
    for (size_t i = 0; i < j->jobs; i++) {
        size_t size;
        char *text = j->job[i].text ? lines(i, j->job[i].text, &size) : NULL;
        if (text)
            fputs(text, file);
        free(text);
    }
}

/* ---- shards ---- */

static fl_status take_shard(fl_journal *j, const char *path, char *text, fl_diag *d) {
    size_t good, last;
    const size_t size = strlen(text);
    fl_status s = check_head(j, path, text, d);
    if (!s)
        s = take_lines(j, path, text, &good, &last, true, d);
    if (!s && good != size)
        s = fl_fail(d, FL_BAD_INPUT, path, (int64_t)last, 0, "no complete job in the file, expected a finished shard");
    return s;
}

/* The first shard says how many jobs there are. It is believed as far as the bytes of all shards reach, since a job
 * takes more than one: nothing is allocated for more. */
static fl_status open_for(fl_journal **out, const char *const *path, char *const *text, size_t count, fl_diag *d) {
    char key[65] = "";
    size_t jobs = 0, bytes = 0;
    if (!parse_head(text[0], key, &jobs))
        return no_journal(path[0], d);
    for (size_t i = 0; i < count; i++)
        bytes += strlen(text[i]);
    if (jobs > bytes)
        return fl_fail(d, FL_BAD_INPUT, path[0], 1, 0,
                       "states %zu jobs in %zu bytes of shards: jobs are missing, expected every shard", jobs, bytes);
    return fl_journal_open(out, NULL, key, jobs, d);
}

fl_status fl_journal_merge(fl_journal **out, const char *const *path, size_t count, fl_diag *d) {
    char **text = fl_must(calloc(count + 1, sizeof *text));
    fl_journal *j = NULL;
    fl_status s = FL_OK;
    for (size_t i = 0; !s && i < count; i++)
        s = check_begin(path[i], d);
    for (size_t i = 0; !s && i < count; i++)
        s = read_all(path[i], &text[i], d);
    if (!s)
        s = open_for(&j, path, text, count, d);
    for (size_t i = 0; !s && i < count; i++)
        s = take_shard(j, path[i], text[i], d);
    if (!s && j->done < j->jobs)
        s = fl_refuse(d, "%zu of %zu jobs are missing, expected every shard", j->jobs - j->done, j->jobs);
    for (size_t i = 0; i < count; i++)
        free(text[i]);
    free(text);
    if (s)
        fl_journal_close(j);
    *out = s ? NULL : j;
    return s;
}
