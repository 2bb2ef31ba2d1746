#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include "traces/io/inside.h"
#include "traces/io/io.h"
#include "traces/io/records.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Rows as text: line, then column=field for each; "torn" where so. */
typedef struct log_of_rows {
    char text[4096];
    size_t rows;
} log_of_rows;

static fl_status note_row(void *user, const fl_csv_row *row, fl_diag *d) {
    (void)d;
    log_of_rows *l = user;
    size_t used = strlen(l->text);
    l->rows++;
    used += (size_t)snprintf(l->text + used, sizeof l->text - used, "%lld%s", (long long)row->line,
                             row->torn ? "torn" : "");
    for (size_t i = 0; i < row->count && used < sizeof l->text; i++) {
        if (strlen(row->field[i].text) != row->field[i].size)
            used += (size_t)snprintf(l->text + used, sizeof l->text - used, "!size");
        used += (size_t)snprintf(l->text + used, sizeof l->text - used, " %lld=%s", (long long)row->field[i].column,
                                 row->field[i].text);
    }
    if (used < sizeof l->text - 1)
        memcpy(l->text + used, ";", 2);
    return FL_OK;
}

static void test_rows(void) {
    static const fl_csv_options PLAIN = {0}, TRIM = {.trim = true}, BARS = {.delimiter = '|'},
                                TABS = {.delimiter = '\t'}, SKIP = {.head_lines = 2},
                                HEAD = {.format = "foldline-test"};
    static const struct {
        const fl_csv_options *options;
        const char *in, *out;
    } ROWS[] = {
        {&PLAIN, "a,b\nc,d\n", "1 1=a 3=b;2 1=c 3=d;"},
        {&PLAIN, "a,b\nc,d", "1 1=a 3=b;2torn 1=c 3=d;"},
        {&PLAIN, "a,b\r\nc,d\r\n", "1 1=a 3=b;2 1=c 3=d;"},
        {&PLAIN, "a,b\r\nc,d\r", "1 1=a 3=b;2torn 1=c 3=d;"},
        {&PLAIN,
         "\xef\xbb\xbf"
         "a,b\n",
         "1 1=a 3=b;"},
        {&PLAIN, "a,,b,\n,\n", "1 1=a 3= 4=b 6=;2 1= 2=;"},
        {&PLAIN, "\n\na\n\nb\n", "3 1=a;5 1=b;"},
        {&PLAIN, "\"a,\"\"b\"\"\",c\n", "1 1=a,\"b\" 11=c;"},
        {&PLAIN, "\"\",\"\"\"\",x\n", "1 1= 4=\" 9=x;"},
        {&PLAIN, "\"a\nb\",c\nd\n", "1 1=a\nb 7=c;3 1=d;"},
        {&PLAIN, " a , \"b\" ,c \n", "1 1= a  6=b 11=c ;"},
        {&TRIM, " a , \"b\" ,c \t\n", "1 2=a 6=b 11=c;"},
        {&TRIM, "a b, ,c\n", "1 1=a b 6= 7=c;"},
        {&BARS, "a|b,c|\n", "1 1=a 3=b,c 7=;"},
        {&TABS, "a\t\tb \n\tc\n", "1 1=a 3= 4=b ;2 1= 2=c;"},
        {&SKIP, "say \"hi\nsecond\na,b\n", "3 1=a 3=b;"},
        {&PLAIN, "#a,b\n", "1 1=#a 4=b;"},
        {&HEAD, "# foldline-test 1\n# k: v\n#\n# a \"quote\na,b\n# c\n\"#x\",y\n", "5 1=a 3=b;7 1=#x 6=y;"},
        {&PLAIN, "a,\"b\nc\n", ""}, /* fails, see below */
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        log_of_rows l = {0};
        fl_diag d = {0};
        fl_status status = fl_csv_read(fl_temp_text("rows.csv", ROWS[i].in), ROWS[i].options, NULL, note_row, &l, &d);
        FL_CHECK((status == FL_OK) == (ROWS[i].out[0] != '\0'), "row %zu: status %d, %s", i, status, d.message);
        FL_CHECK(strcmp(l.text, ROWS[i].out) == 0, "row %zu: '%s', expected '%s'", i, l.text, ROWS[i].out);
    }
}

static void test_bad(void) {
    static const fl_csv_options PLAIN = {.trim = true}, HEAD = {.format = "foldline-test"},
                                LOOSE = {.format = "foldline-test", .head_optional = true};
    static const struct {
        const fl_csv_options *options;
        const char *in;
        size_t size; /* 0: to the NUL */
        int64_t line, column;
        const char *message;
    } ROWS[] = {
        {&PLAIN, "", 0, 0, 0, "empty"},
        {&PLAIN, "\xef\xbb\xbf", 0, 0, 0, "empty"},
        {&PLAIN, "\n\n", 0, 3, 0, "ends before the first row"},
        {&PLAIN, "a,b\nc,\0d\n", 9, 2, 3, "NUL byte"},
        {&PLAIN, "a\0", 2, 1, 2, "NUL byte"},
        {&PLAIN, "a,b\nc,d\"e,f\n", 0, 2, 4, "stray quote"},
        {&PLAIN, "a,b\nc,d\"e\",f\n", 0, 2, 4, "stray quote"},
        {&PLAIN, "a\n\"b\"c\n", 0, 2, 4, "stray quote"},
        {&PLAIN, "\"a,b\n\"c\",d\n", 0, 2, 2, "stray quote"},
        {&PLAIN, "a,b\nc,\"d\ne,f\n", 0, 2, 3, "quote is not closed before the file ends"},
        {&PLAIN, "a,\"", 0, 1, 3, "quote is not closed"},
        {&PLAIN, "a,b\rc,d\n", 0, 1, 4, "carriage return"},
        {&PLAIN, "a,b\n  \rW, \"x,,y\",z\n", 0, 2, 3, "carriage return"},
        {&PLAIN, "a,b\n  \rW, \"x,,y\",z, \"q", 0, 2, 3, "carriage return"},
        {&HEAD, "a,b\n", 0, 1, 1, "expected '# foldline-test 1' first"},
        {&HEAD,
         "\x7f"
         "ELF\2\1\1\n",
         0, 1, 1, "expected '# foldline-test 1' first"},
        {&HEAD, "# foldline-test 2\na\n", 0, 1, 1, "version '2' of foldline-test is not known, expected version 1"},
        {&HEAD, "# foldline-other 1\na\n", 0, 1, 1, "'foldline-other 1', expected 'foldline-test 1'"},
        {&HEAD, "# foldline-tes 1\na\n", 0, 1, 1, "expected 'foldline-test 1'"},
        {&HEAD, "## foldline-test 2\na\n", 0, 1, 1, "no format line here, expected '# foldline-test 1' as line 1"},
        {&LOOSE, "# Foldline-test 2\na\n", 0, 1, 1, "no format line here"},
        {&LOOSE, "# a: b\n#\tfoldline-test  2\na\n", 0, 2, 1, "no format line here"},
        {&HEAD, "# foldline-test 1\n# foldline-test 1\na\n", 0, 2, 1, "no format line here"},
        {&HEAD, "# foldline-test 1\n# a: 1\n# b: 2\n# a: 3\nx\n", 0, 4, 3, "'a' is given twice"},
        {&HEAD, "# foldline-test 1\n# a: 1\033[31m\nx\n", 0, 2, 7, "control character in the head"},
        {&HEAD, "# foldline-test 1\n# a: 1\n", 0, 3, 0, "ends before the first row"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        log_of_rows l = {0};
        fl_diag d = {0};
        fl_head h = {0};
        size_t size = ROWS[i].size ? ROWS[i].size : strlen(ROWS[i].in);
        const char *path = fl_temp_write("bad.csv", ROWS[i].in, size);
        fl_status status = fl_csv_read(path, ROWS[i].options, &h, note_row, &l, &d);
        FL_CHECK(status == FL_BAD_INPUT && d.status == status, "row %zu: status %d", i, status);
        FL_CHECK(d.line == ROWS[i].line && d.column == ROWS[i].column && strcmp(d.file, path) == 0,
                 "row %zu: %s:%lld:%lld: %s", i, d.file, (long long)d.line, (long long)d.column, d.message);
        FL_CHECK(strstr(d.message, ROWS[i].message), "row %zu: '%s'", i, d.message);
        fl_head_free(&h);
    }
}

static void test_places(void) {
    static const fl_csv_options PLAIN = {0};
    log_of_rows l = {0};
    fl_diag d = {0};
    FL_CHECK(fl_csv_read(fl_temp_path("absent.csv"), &PLAIN, NULL, note_row, &l, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "No such file"),
             "a missing file: %s", d.message);
    FL_CHECK(fl_csv_read(fl_temp_folder, &PLAIN, NULL, note_row, &l, &d) == FL_BAD_INPUT &&
                 strcmp(d.message, "is a directory, expected a file") == 0,
             "a directory: %s", d.message);
    FL_CHECK(fl_csv_read(fl_temp_folder, &PLAIN, NULL, note_row, &l, NULL) == FL_BAD_INPUT, "no diagnostic wanted");
}

static fl_status read_line_of(size_t size, bool newline, char fill, fl_diag *d) {
    static const fl_csv_options PLAIN = {0};
    char *text = malloc(size + 12);
    memcpy(text, "a,b\n", 4);
    memset(text + 4, fill, size);
    text[4] = fill == '"' ? '"' : 'y';
    text[4 + size] = '\n';
    memcpy(text + 5 + size, "c,d\n", 4);
    const char *path = fl_temp_write("long.csv", text, newline ? size + 9 : 4 + size);
    free(text);
    log_of_rows *l = calloc(1, sizeof *l);
    fl_status status = fl_csv_read(path, &PLAIN, NULL, note_row, l, d);
    free(l);
    return status;
}

static void test_long_lines(void) {
    for (int newline = 0; newline < 2; newline++) {
        fl_diag d = {0};
        FL_CHECK(read_line_of(FL_CSV_LINE_MAX, newline, 'x', &d) == FL_OK, "a line of the largest size: %s", d.message);
        FL_CHECK(read_line_of(FL_CSV_LINE_MAX + 1, newline, 'x', &d) == FL_BAD_INPUT && d.line == 2 && d.column == 1 &&
                     strcmp(d.message, "line is longer than 1048576 bytes") == 0,
                 "one byte more: line %lld: %s", (long long)d.line, d.message);
        FL_CHECK(read_line_of(3 * FL_CSV_LINE_MAX, newline, ',', &d) == FL_BAD_INPUT && d.line == 2, "%s", d.message);
    }
}

/* A line without end must be refused soon, whatever the size of the file: this one is 1 GiB, nightly 8 GiB, none of it
 * on the disk. */
static void test_endless(void) {
    static const fl_csv_options PLAIN = {0};
    const char *path = fl_temp_text("endless.csv", "");
    static char line[2 << 20];
    memset(line, 'x', sizeof line);
    int fd = open(path, O_WRONLY);
    const int64_t size = INT64_C(1) << (fl_nightly() ? 33 : 30);
    FL_CHECK(fd >= 0 && write(fd, line, sizeof line) == (ssize_t)sizeof line && ftruncate(fd, size) == 0,
             "cannot make the file");
    close(fd);
    log_of_rows l = {0};
    fl_diag d = {0};
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    FL_CHECK(fl_csv_read(path, &PLAIN, NULL, note_row, &l, &d) == FL_BAD_INPUT &&
                 strstr(d.message, "longer than 1048576"),
             "%s", d.message);
    getrusage(RUSAGE_SELF, &after);
    FL_CHECK(after.ru_utime.tv_sec - before.ru_utime.tv_sec < 2, "took too long");
    /* An open quote is told as such. */
    fd = open(path, O_WRONLY);
    FL_CHECK(write(fd, "a\nb,\"c", 6) == 6, "cannot write");
    close(fd);
    FL_CHECK(fl_csv_read(path, &PLAIN, NULL, note_row, &l, &d) == FL_BAD_INPUT && d.line == 2 && d.column == 3 &&
                 strstr(d.message, "quote is not closed within 1048576"),
             "%lld:%lld %s", (long long)d.line, (long long)d.column, d.message);
    unlink(path);
}

static fl_status stop_at_third(void *user, const fl_csv_row *row, fl_diag *d) {
    int *rows = user;
    ++*rows;
    return row->line == 3 ? fl_fail(d, FL_MODEL_FAULT, row->file, row->line, 1, "enough") : FL_OK;
}

static void test_stop(void) {
    static const fl_csv_options PLAIN = {0};
    int rows = 0;
    fl_diag d = {0};
    fl_status status = fl_csv_read(fl_temp_text("stop.csv", "1\n2\n3\n4\n5\n"), &PLAIN, NULL, stop_at_third, &rows, &d);
    FL_CHECK(status == FL_MODEL_FAULT && rows == 3 && strcmp(d.message, "enough") == 0, "status %d, %d rows", status,
             rows);
}

static fl_status check_number(void *user, const fl_csv_row *row, fl_diag *d) {
    fl_csv_row *copy = user;
    int64_t n;
    double x = 0;
    if (strcmp(row->field[0].text, "int") == 0)
        return fl_field_int(row, 1, "n", -5, 10, &n, d);
    if (strcmp(row->field[0].text, "real") == 0)
        return fl_field_real(row, 1, "x", 0, 1, &x, d);
    fl_status status = fl_field_real_or_nan(row, 1, "x", 0, HUGE_VAL, &x, d);
    copy->count = isnan(x) ? 1u : 0u;
    return status;
}

static void test_numbers(void) {
    static const fl_csv_options TRIM = {.trim = true};
    static const struct {
        const char *in, *message; /* NULL: good */
    } ROWS[] = {
        {"int, 10\n", NULL},
        {"int,-5\n", NULL},
        {"int, 11\n", "n is '11', expected a whole number from -5 to 10"},
        {"int,\n", "n is empty, expected a whole number from -5 to 10"},
        {"int,5.0\n", "n is '5.0', expected"},
        {"int,\"1,000\"\n", "n is '1,000', expected"},
        {"real,0.5\n", NULL},
        {"real,1.0001\n", "x is '1.0001', expected a number from 0 to 1"},
        {"real,nan\n", "x is 'nan', expected"},
        {"real,\n", "x is empty"},
        {"any,\n", NULL},
        {"any,-1\n", "x is '-1', expected a number of at least 0"},
        {"any,1e999\n", "x is '1e999', expected"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        fl_diag d = {0};
        fl_csv_row copy = {0};
        fl_status status = fl_csv_read(fl_temp_text("numbers.csv", ROWS[i].in), &TRIM, NULL, check_number, &copy, &d);
        FL_CHECK(status == (ROWS[i].message ? FL_BAD_INPUT : FL_OK), "row %zu: status %d", i, status);
        FL_CHECK(!ROWS[i].message || strstr(d.message, ROWS[i].message), "row %zu: '%s'", i, d.message);
        FL_CHECK(!ROWS[i].message || (d.line == 1 && d.column >= 5), "row %zu: column %lld", i, (long long)d.column);
        if (strcmp(ROWS[i].in, "any,\n") == 0)
            FL_CHECK(copy.count == 1, "an empty field is NAN");
    }
}

/* ---- random files against a plain model of the format ---- */

static uint64_t next(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

typedef struct table {
    char field[40][6][12];
    size_t fields[40], rows, at;
    bool wrong;
} table;

static fl_status compare_row(void *user, const fl_csv_row *row, fl_diag *d) {
    (void)d;
    table *t = user;
    t->wrong = t->wrong || t->at >= t->rows || row->count != t->fields[t->at];
    for (size_t i = 0; !t->wrong && i < row->count; i++)
        t->wrong = strcmp(row->field[i].text, t->field[t->at][i]) != 0;
    t->at++;
    return FL_OK;
}

static void test_random_tables(void) {
    static const char LETTERS[] = "ab \",\n#x\t\r";
    static const fl_csv_options PLAIN = {0}, TRIM = {.trim = true};
    for (uint64_t seed = 1; seed <= (fl_nightly() ? 300 : 60); seed++) {
        uint64_t state = seed;
        static table t;
        memset(&t, 0, sizeof t);
        t.rows = 1 + next(&state) % 40;
        const char *path = fl_temp_path("random.csv");
        FILE *f = fopen(path, "wb");
        for (size_t r = 0; f && r < t.rows; r++) {
            t.fields[r] = 2 + next(&state) % 5;
            for (size_t i = 0; i < t.fields[r]; i++) {
                size_t size = next(&state) % 11;
                for (size_t k = 0; k < size; k++)
                    t.field[r][i][k] = LETTERS[next(&state) % (sizeof LETTERS - 1)];
                if (i)
                    fputc(',', f);
                fl_csv_put(f, t.field[r][i]);
            }
            fputs(next(&state) % 2 ? "\n" : "\r\n", f);
        }
        fclose(f);
        fl_diag d = {0};
        fl_status status = fl_csv_read(path, seed % 2 ? &PLAIN : &TRIM, NULL, compare_row, &t, &d);
        FL_CHECK(status == FL_OK && !t.wrong && t.at == t.rows, "seed %llu: status %d, row %zu: %s",
                 (unsigned long long)seed, status, t.at, d.message);
    }
}

/* Lines without quotes are cut directly, others by libcsv: the same line must give the same fields both ways. */
static void test_two_ways(void) {
    static const char LETTERS[] = "ab  \t,|#\303";
    static const char DELIMITER[] = {0, '|', '\t', ' '};
    for (uint64_t seed = 1; seed <= (fl_nightly() ? 2000 : 200); seed++) {
        uint64_t state = seed;
        fl_csv_options options = {.delimiter = DELIMITER[next(&state) % 4], .trim = next(&state) % 2};
        char delimiter = options.delimiter ? options.delimiter : ',', line[40], text[100];
        size_t size = next(&state) % 30;
        for (size_t k = 0; k < size; k++)
            line[k] = LETTERS[next(&state) % (sizeof LETTERS - 1)];
        line[size] = '\0';
        log_of_rows plain = {0}, quoted = {0};
        fl_diag d = {0};
        snprintf(text, sizeof text, "%s%c%c%s", line, delimiter, 'x', seed % 3 ? "\n" : "\r\n");
        fl_status status = fl_csv_read(fl_temp_text("plain.csv", text), &options, NULL, note_row, &plain, &d);
        FL_CHECK(status == FL_OK, "seed %llu: %s", (unsigned long long)seed, d.message);
        snprintf(text, sizeof text, "%s%c\"x\"%s", line, delimiter, seed % 3 ? "\n" : "\r\n");
        status = fl_csv_read(fl_temp_text("quoted.csv", text), &options, NULL, note_row, &quoted, &d);
        FL_CHECK(status == FL_OK, "seed %llu: %s", (unsigned long long)seed, d.message);
        FL_CHECK(strcmp(plain.text, quoted.text) == 0, "seed %llu: '%s' and '%s'", (unsigned long long)seed, plain.text,
                 quoted.text);
    }
}

/* ---- output ---- */

static void test_output(void) {
    fl_diag d = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", fl_temp_text("out.txt", "old"));
    int files = fl_temp_count();
    size_t size = 0;
    fl_output *o = fl_output_open(path, &d);
    FL_CHECK(o != NULL, "%s", d.message);
    if (!o)
        return;
    fputs("new", fl_output_file(o));
    char *text = fl_temp_slurp(path, &size);
    FL_CHECK(text && strcmp(text, "old") == 0, "the old file stays until the end");
    free(text);
    FL_CHECK(fl_output_commit(o, &d) == FL_OK, "%s", d.message);
    text = fl_temp_slurp(path, &size);
    FL_CHECK(text && strcmp(text, "new") == 0, "the new text is there");
    free(text);
    FL_CHECK(fl_temp_count() == files, "no temporary file is left");

    o = fl_output_open(path, &d);
    if (o)
        fputs("never", fl_output_file(o));
    fl_output_abort(o);
    fl_output_abort(NULL);
    text = fl_temp_slurp(path, &size);
    FL_CHECK(text && strcmp(text, "new") == 0 && fl_temp_count() == files, "an abort leaves all as it was");
    free(text);

    char wrong[600];
    snprintf(wrong, sizeof wrong, "%s/none/x", fl_temp_folder);
    FL_CHECK(!fl_output_open(wrong, &d) && d.status == FL_IO && strstr(d.message, "No such file"), "%s", d.message);
    FL_CHECK(!fl_output_open(fl_temp_folder, &d) && d.status == FL_IO && strstr(d.message, "directory"), "%s",
             d.message);
    /* A link stays one, and what it points to is replaced. */
    char link[600];
    snprintf(link, sizeof link, "%s/link", fl_temp_folder);
    FL_CHECK(symlink(path, link) == 0 && (o = fl_output_open(link, &d)), "%s", d.message);
    if (o) {
        fputs("through", fl_output_file(o));
        struct stat s;
        FL_CHECK(fl_output_commit(o, &d) == FL_OK && lstat(link, &s) == 0 && S_ISLNK(s.st_mode), "%s", d.message);
        text = fl_temp_slurp(path, &size);
        FL_CHECK(text && strcmp(text, "through") == 0, "written through the link");
        free(text);
    }
}

/* A limit on file size stands in for a full disk: writing fails in the middle, with a reason. */
static void test_full_disk(void) {
    fl_diag d = {0};
    char path[512];
    size_t size = 0;
    snprintf(path, sizeof path, "%s", fl_temp_text("full.txt", "old"));
    int files = fl_temp_count();
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 100000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (int big = 0; big < 2; big++) { /* failing while written, and only at the end */
        fl_output *o = fl_output_open(path, &d);
        FL_CHECK(o != NULL, "%s", d.message);
        if (!o)
            return;
        setrlimit(RLIMIT_FSIZE, &small);
        for (int i = 0; i < (big ? 100000 : 20000); i++)
            fputs("0123456\n", fl_output_file(o));
        fl_status status = fl_output_commit(o, &d);
        setrlimit(RLIMIT_FSIZE, &before);
        FL_CHECK(status == FL_IO && strstr(d.message, "File too large"), "status %d: %s", status, d.message);
        char *text = fl_temp_slurp(path, &size);
        FL_CHECK(text && strcmp(text, "old") == 0 && fl_temp_count() == files, "the old file stays, the new one goes");
        free(text);
    }
    signal(SIGXFSZ, handler);
    struct stat s;
    if (stat("/dev/full", &s) == 0 && S_ISCHR(s.st_mode)) {
        fl_output *o = fl_output_open("/dev/full", &d);
        FL_CHECK(o != NULL, "%s", d.message);
        if (o) {
            fputs("x", fl_output_file(o));
            FL_CHECK(fl_output_commit(o, &d) == FL_IO && strstr(d.message, "No space left"), "%s", d.message);
        }
        FL_CHECK(stat("/dev/full", &s) == 0 && S_ISCHR(s.st_mode), "the device is still one");
    }
}

static void test_clean_up(void) {
    fl_temp_remove();
    FL_CHECK(fl_temp_folder[0] == '\0', "removed");
}

FL_SUITE("csv", {"rows", test_rows}, {"bad", test_bad}, {"places", test_places}, {"long lines", test_long_lines},
         {"endless", test_endless}, {"stop", test_stop}, {"numbers", test_numbers},
         {"random tables", test_random_tables}, {"two ways", test_two_ways}, {"output", test_output},
         {"full disk", test_full_disk}, {"clean up", test_clean_up})
