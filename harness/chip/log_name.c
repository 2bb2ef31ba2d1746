/* What the name of a log says: the program, and the clock of its run. */
#include "harness/chip/chip.h"
#include "harness/chip/inside.h"

#include "traces/io/io.h"
#include "traces/io/records.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CLOCK_LEAST 50 /* MHz; no number below it is a clock */
#define CLOCK_MOST 10000
#define STEP 16 /* MHz; the number in a name is the clock of the run, to one step of a ladder */

/* Words that name a setting or a tool, and no program. */
static bool is_setting(const char *word, size_t size) {
    static const char *const known[] = {"mhz",   "default", "locked", "lock", "clock", "clocks", "clk", "base",
                                        "boost", "capped",  "cap",    "auto", "none",  "stock",  "lgc", "sm",
                                        "freq",  "f",       "run",    "log",  "gpu",   "nvidia", "smi", "dcgmi",
                                        "high",  "low",     "mid",    "top",  "max",   "min"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == size && !strncasecmp(word, known[i], size))
            return true;
    return false;
}

/* The length of a file's name without its endings (.csv, .telemetry.csv.gz, ...). */
static size_t stem(const char *base, size_t size) {
    static const char *const ending[] = {".csv", ".txt", ".log", ".out", ".tsv", ".dat", ".json", ".gz", ".telemetry"};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        const size_t n = strlen(ending[i]);
        if (size > n && !strncasecmp(base + size - n, ending[i], n))
            return stem(base, size - n);
    }
    return size;
}

/* The end of a run of letters, or of digits, from `at` on. */
static size_t token(const char *s, size_t at, size_t size) {
    const bool digits = isdigit((unsigned char)s[at]);
    size_t to = at;
    while (to < size &&
           (digits ? isdigit((unsigned char)s[to]) : isalpha((unsigned char)s[to]) || (unsigned char)s[to] >= 0x80))
        to++;
    return to;
}

static bool is_token(char c) { return isalnum((unsigned char)c) || (unsigned char)c >= 0x80; }

/* Whether the number from..to of a name is marked as a clock: "@1050", "1050MHz", "1050_mhz". */
static bool is_marked(const char *s, size_t from, size_t to, size_t size) {
    const size_t next = to < size && strchr("_- ", s[to]) ? to + 1 : to;
    const bool unit = next + 3 <= size && !strncasecmp(s + next, "mhz", 3);
    return unit || (from > 0 && s[from - 1] == '@');
}

static double number(const char *s, size_t from) { return strtod(s + from, NULL); }

/* Adds what a name says of the program to out, which has room for it. */
static void add_program(char *out, const char *s, size_t size, const fl_log_run *run) {
    bool nth = false; /* a number that follows counts the runs of a program */
    for (size_t i = 0, to; i < size; i = to) {
        to = i + 1;
        if (!is_token(s[i]))
            continue;
        to = token(s, i, size);
        const bool counts = nth && isdigit((unsigned char)s[i]);
        nth = *out && to - i == 3 && !strncasecmp(s + i, "run", 3);
        if (counts)
            continue;
        const double x = isdigit((unsigned char)s[i]) ? number(s, i) : 0;
        if (x > 0 && (is_marked(s, i, to, size) ||
                      (x >= CLOCK_LEAST && x >= run->sm_low_mhz - STEP && x <= run->sm_high_mhz + STEP)))
            continue;
        if (is_setting(s + i, to - i))
            continue;
        if (*out && i > 0 && !is_token(s[i - 1]))
            strncat(out, s + i - 1, 1);
        strncat(out, s + i, to - i);
    }
}

double fl_log_named_mhz(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t size = stem(base, strlen(base));
    for (size_t i = 0, to; i < size; i = to) {
        to = is_token(base[i]) ? token(base, i, size) : i + 1;
        if (isdigit((unsigned char)base[i]) && is_marked(base, i, to, size) && number(base, i) >= CLOCK_LEAST &&
            number(base, i) <= CLOCK_MOST)
            return number(base, i);
    }
    return NAN;
}

char *fl_log_program(const char *path, const fl_head *head, const fl_log_run *run, bool folder) {
    const char *said = fl_head_get(head, "workload"), *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *out = calloc(strlen(path) + (said ? strlen(said) : 0) + 16, 1);
    if (!out)
        return NULL;
    if (said && *said)
        return strcpy(out, said);
    const char *up = slash;
    while (up && up > path && up[-1] != '/')
        up--;
    if (folder && up)
        add_program(out, up, (size_t)(slash - up), run);
    char *own = out + strlen(out);
    if (*out)
        *own++ = '/';
    add_program(own, base, stem(base, strlen(base)), run);
    if (!*own && own > out)
        own[-1] = '\0';
    return *out ? out : strcpy(out, FL_LOG_ANY_PROGRAM);
}

fl_status fl_log_clocks(const char *text, size_t logs, double *mhz, fl_diag *d) {
    size_t n = 0;
    for (size_t i = 0; i < logs; i++)
        mhz[i] = NAN;
    for (const char *at = text; at; n++) {
        char *end = NULL;
        const double x = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(x >= CLOCK_LEAST && x <= CLOCK_MOST))
            return fl_refuse(d, "--sm-mhz %s: expected clocks of %d to %d MHz, such as 1410 or 1050,1410", text,
                             CLOCK_LEAST, CLOCK_MOST);
        if (n < logs)
            mhz[n] = x;
        at = *end ? end + 1 : NULL;
    }
    if (text && n == 1)
        for (size_t i = 1; i < logs; i++)
            mhz[i] = mhz[0];
    if (text && n != 1 && n != logs)
        return fl_refuse(d, "--sm-mhz has %zu clocks, expected one for all logs, or one for each of %zu", n, logs);
    return FL_OK;
}
