/* Parses options. */
#include "harness/base/cli/inside.h"

#include "harness/base/cli/cli.h"
#include "traces/io/io.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *fl_command_name;
const fl_command_reader *fl_command_read_by;
void (*fl_command_read_all)(fl_command_reader reader);

fl_status fl_texts_add(fl_texts *t, const char *text, fl_diag *d) {
    if (fl_grow(&t->item, &t->room, t->count + 1, sizeof *t->item))
        return fl_no_memory(d, "the arguments");
    t->item[t->count++] = text;
    return FL_OK;
}

void fl_texts_free(fl_texts *t) {
    free(t->item);
    *t = (fl_texts){0};
}

enum { OPTIONS_ROOM = 128, CHOICES_ROOM = 16 };

static const char *dashes(const char *name) { return name[1] ? "--" : "-"; }

static const fl_option *find_option(const fl_option *option, size_t count, const char *name, size_t size, bool letter) {
    for (size_t i = 0; i < count; i++)
        if (strlen(option[i].name) == size && !memcmp(option[i].name, name, size) && (size == 1) == letter)
            return &option[i];
    return NULL;
}

/* The commands that have an option, as a text: "compare, grid". */
typedef struct owners {
    const char *name;
    char text[160];
    size_t count;
} owners;

static void take_owner(void *to, const fl_command_help *help, const fl_option *option, size_t count) {
    owners *o = to;
    const bool shown = o->count < 4; /* more of them would hide the rest of the message */
    for (size_t i = 0; i < count; i++)
        if (!strcmp(option[i].name, o->name)) {
            const size_t at = strlen(o->text);
            (void)snprintf(o->text + at, shown ? sizeof o->text - at : 0, "%s%s", o->count ? ", " : "", help->name);
            o->count++;
            return;
        }
}

static const char *find_owners(const char *name, owners *o) {
    const char *running = fl_command_name;
    *o = (owners){.name = name};
    if (fl_command_read_all && !fl_command_read_by)
        fl_command_read_all((fl_command_reader){take_owner, o});
    fl_command_name = running;
    return o->count ? o->text : NULL;
}

bool fl_is_among(const char *name, const char *names) {
    const size_t n = strlen(name);
    for (const char *at = names; n && (at = strstr(at, name)); at += n)
        if ((at == names || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

/* Names that users of other tools type, and the options that are meant. */
static const char *const guesses[][2] = {{"o", "output out csv save export"},
                                         {"policy", "policies grid values param params range"},
                                         {"platform", "platforms gpu device board hardware"},
                                         {"bound", "bounds slowdown max-slowdown max-loss limit tolerance"},
                                         {"threads", "jobs parallel workers"},
                                         {"fail-if", "threshold max-regression gate"},
                                         {"bless", "update record baseline"}};

/* The option of the command that is meant, where it is another name of it, or begins like it. NULL: unknown. */
static const char *find_guessed(const char *name, const fl_option *option, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const size_t n = strlen(name), m = strlen(option[i].name), least = n < m ? n : m;
        if (least > 2 && !strncmp(name, option[i].name, least) && n + 1 >= m && n <= m + 1)
            return option[i].name;
        for (size_t k = 0; k < sizeof guesses / sizeof *guesses; k++)
            if (!strcmp(guesses[k][0], option[i].name) && fl_is_among(name, guesses[k][1]))
                return option[i].name;
    }
    return NULL;
}

/* argument: after its dashes. */
static fl_status unknown(const char *dash, const char *argument, size_t size, const fl_option *option, size_t count,
                         fl_diag *d) {
    const char *names[OPTIONS_ROOM], *near = NULL;
    char name[128];
    size_t n = 0;
    snprintf(name, sizeof name, "%.*s", (int)size, argument);
    for (size_t i = 0; i < count && n + 1 < OPTIONS_ROOM; i++)
        names[n++] = option[i].name;
    names[n++] = "help";
    near = fl_nearest(name, names, n);
    owners o;
    const char *guessed = find_guessed(name, option, count), *other = find_owners(name, &o);
    near = guessed ? guessed : near;
    if (!strcmp(name, "resume"))
        return fl_refuse(d, "unknown option '%s%s': a grid continues when it starts again with the same -o", dash,
                         name);
    if (other)
        return fl_refuse(d, "%s has no option '%s%s'; %s%s ha%s it%s%s%s%s%s (foldline %s --help)", fl_command_name,
                         dash, name, other, o.count > 4 ? " and others" : "", o.count > 1 ? "ve" : "s",
                         strcmp(name, "set")
                             ? ""
                             : "; here parameters follow the policy, with A/B for two values: --policy NAME:P=A/B",
                         guessed ? "; did you mean '" : "", guessed ? dashes(guessed) : "", guessed ? guessed : "",
                         guessed ? "'?" : "", fl_command_name);
    if (near)
        return fl_refuse(d, "unknown option '%s%s', did you mean '%s%s'?", dash, name, dashes(near), near);
    return fl_refuse(
        d, "unknown option '%s%s', see --help%s", dash, name,
        find_option(option, count, "policy", 6, false) ? "; parameters follow the policy: --policy NAME:P=V" : "");
}

/* 0.05 or 5%; above 1 only as a percentage. */
static fl_status share(const fl_option *o, const char *text, double *value, fl_diag *d) {
    char what[80];
    bool percent = false;
    if (!fl_share_parse(text, value, &percent) || *value < o->min || (percent && *value > o->max))
        return fl_refuse(d, "%s%s '%s', expected a number from %.15g to %.15g, as 0.05 or 5%%", dashes(o->name),
                         o->name, text, o->min, o->max);
    (void)snprintf(what, sizeof what, "%s%s ", dashes(o->name), o->name);
    return *value > 1 && !percent ? fl_share_refuse(what, *value, d) : FL_OK;
}

static fl_status number(const fl_option *o, const char *text, double *value, fl_diag *d) {
    char *end;
    if (o->type == FL_OPTION_SHARE)
        return share(o, text, value, d);
    errno = 0;
    *value = strtod(text, &end);
    bool whole =
        o->type != FL_OPTION_INT || (*value == (double)(int64_t)*value && strspn(text, "+-0123456789") == strlen(text));
    if (end == text || *end || errno || !(*value >= o->min && *value <= o->max) || !whole)
        return fl_refuse(d, "%s%s '%s', expected a%s number from %.15g to %.15g", dashes(o->name), o->name, text,
                         o->type == FL_OPTION_INT ? " whole" : "", o->min, o->max);
    return FL_OK;
}

static bool was_given[OPTIONS_ROOM]; /* by the command line that was parsed last, by index of the option */

fl_status fl_command_allow(const fl_option *option, size_t count, bool only, const char *names, const char *how,
                           fl_diag *d) {
    for (size_t i = 0; i < count && i < OPTIONS_ROOM; i++)
        if (was_given[i] && fl_is_among(option[i].name, names) != only)
            return fl_refuse(d, "%s%s has no effect %s, see --help", dashes(option[i].name), option[i].name, how);
    return FL_OK;
}

/* One of the values that the row lists, as "real|ideal|off" does. */
static fl_status choose(const fl_option *o, const char *text, fl_diag *d) {
    char room[256], what[80], *save = NULL;
    const char *name[CHOICES_ROOM];
    size_t count = 0;
    snprintf(room, sizeof room, "%s", o->value);
    for (char *at = strtok_r(room, "|", &save); at && count < CHOICES_ROOM; at = strtok_r(NULL, "|", &save)) {
        name[count++] = at;
        if (!strcmp(at, text)) {
            *(const char **)o->into = text;
            return FL_OK;
        }
    }
    snprintf(what, sizeof what, "%s%s", dashes(o->name), o->name);
    return fl_fail_unknown(d, NULL, what, text, name, count);
}

static fl_status set_option(const fl_option *o, const char *text, fl_diag *d) {
    double value = 0;
    fl_status s = FL_OK;
    switch (o->type) {
    case FL_OPTION_FLAG:
        *(bool *)o->into = true;
        break;
    case FL_OPTION_TEXT:
    case FL_OPTION_OUTPUT:
        *(const char **)o->into = text;
        break;
    case FL_OPTION_CHOICE:
        s = choose(o, text, d);
        break;
    case FL_OPTION_LIST:
        s = fl_texts_add(o->into, text, d);
        break;
    case FL_OPTION_REAL:
    case FL_OPTION_SHARE:
        if (!(s = number(o, text, &value, d)))
            *(double *)o->into = value;
        break;
    case FL_OPTION_INT:
        if (!(s = number(o, text, &value, d)))
            *(int64_t *)o->into = (int64_t)value;
        break;
    }
    return s;
}

/* ---- outputs must not be inputs ---- */

bool fl_same_file(const char *a, const char *b) {
    struct stat x, y;
    return !fl_is_standard(a) && !fl_is_standard(b) && !stat(a, &x) && !stat(b, &y) && S_ISREG(x.st_mode) &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* An argument that is a file, or names one: NAME:table=FILE. */
static bool names_file(const char *argument, const char *file) {
    if (fl_same_file(argument, file))
        return true;
    for (const char *at = strchr(argument, '='); at; at = strchr(at + 1, '=')) {
        char text[4096];
        const size_t size = strcspn(at + 1, ",");
        snprintf(text, sizeof text, "%.*s", (int)(size < sizeof text ? size : 0), at + 1);
        if (*text && fl_same_file(text, file))
            return true;
    }
    return false;
}

static const char *in_texts(const fl_texts *t, const char *file) {
    for (size_t i = 0; i < t->count; i++)
        if (names_file(t->item[i], file))
            return t->item[i];
    return NULL;
}

static fl_status check_outputs(const fl_option *option, size_t count, const fl_texts *rest, fl_diag *d) {
    for (size_t i = 0; i < count; i++) {
        const fl_option *o = &option[i];
        const char *file = o->type == FL_OPTION_OUTPUT ? *(const char *const *)o->into : NULL, *twice;
        if (!file || fl_is_standard(file))
            continue;
        twice = in_texts(rest, file);
        for (size_t k = 0; k < count && !twice; k++) {
            const char *text = option[k].type == FL_OPTION_TEXT || (option[k].type == FL_OPTION_OUTPUT && k != i)
                                   ? *(const char *const *)option[k].into
                                   : NULL;
            if (option[k].type == FL_OPTION_OUTPUT && text && !strcmp(text, file))
                twice = text; /* even if the file does not exist */
            else if (option[k].type == FL_OPTION_LIST)
                twice = in_texts(option[k].into, file);
            else if (text && names_file(text, file))
                twice = text;
        }
        if (twice)
            return fl_refuse(d, "%s%s '%s' is the same file as '%s', expected another", dashes(o->name), o->name, file,
                             twice);
    }
    return FL_OK;
}

fl_status fl_args_spare(const fl_option *option, size_t count, const char *input, fl_diag *d) {
    for (size_t i = 0; input && i < count; i++) {
        const char *out = option[i].type == FL_OPTION_OUTPUT ? *(const char *const *)option[i].into : NULL;
        if (out && fl_same_file(input, out))
            return fl_fail(d, FL_BAD_INPUT, out, 0, 0, "is an input, expected another file to write");
    }
    return FL_OK;
}

/* ---- "-": the standard input and output ---- */

/* An output file. regress declares its -o as a text, because it may be the baseline that regress also reads. */
static bool is_written(const fl_option *o) {
    return o->type == FL_OPTION_OUTPUT || (o->type == FL_OPTION_TEXT && !strcmp(o->name, "o"));
}

/* Like in_texts: the argument itself, or the file that it names. */
static size_t standard_in(const char *argument) {
    const size_t n = strlen(argument);
    size_t times = fl_is_standard(argument) || (n > 1 && !strcmp(argument + n - 2, "=-"));
    for (const char *at = strstr(argument, "=-,"); at; at = strstr(at + 1, "=-,"))
        times++;
    return times;
}

static size_t standard_in_all(const fl_texts *t) {
    size_t times = 0;
    for (size_t i = 0; i < t->count; i++)
        times += standard_in(t->item[i]);
    return times;
}

/* Only one argument may read the standard input. The standard output holds one file and nothing else. */
static fl_status check_standard(const fl_option *option, size_t count, const fl_texts *rest, fl_diag *d) {
    const fl_option *out = NULL, *json = NULL;
    size_t in = standard_in_all(rest);
    for (size_t i = 0; i < count; i++) {
        const fl_option *o = &option[i];
        const bool text = o->type == FL_OPTION_TEXT || o->type == FL_OPTION_OUTPUT;
        const char *value = text ? *(const char *const *)o->into : NULL;
        if (o->type == FL_OPTION_FLAG && !strcmp(o->name, "json") && *(const bool *)o->into)
            json = o;
        else if (o->type == FL_OPTION_LIST)
            in += standard_in_all(o->into);
        else if (value && !is_written(o))
            in += standard_in(value);
        if (!value || !is_written(o) || !fl_is_standard(value))
            continue;
        if (out)
            return fl_refuse(d, "%s%s and %s%s are both '-', expected one file on the standard output",
                             dashes(out->name), out->name, dashes(o->name), o->name);
        out = o;
    }
    if (in > 1)
        return fl_refuse(d, "'-' is read %zu times, expected the standard input once", in);
    if (out && json)
        return fl_refuse(d, "%s%s '-' and --json, expected one of them on the standard output", dashes(out->name),
                         out->name);
    return out ? fl_stdout_claim(d) : FL_OK;
}

fl_status fl_args_parse(int argc, char **argv, const fl_option *option, size_t count, fl_texts *rest,
                        fl_help_wanted *help, fl_diag *d) {
    bool ended = false;
    *help = FL_HELP_NONE;
    memset(was_given, false, sizeof was_given);
    fl_status s = FL_OK;
    for (int i = 0; !s && i < argc; i++) {
        const char *a = argv[i];
        if (ended || a[0] != '-' || !a[1]) {
            s = fl_texts_add(rest, a, d);
            continue;
        }
        if (!strcmp(a, "--")) {
            ended = true;
            continue;
        }
        if (!strcmp(a, "--help") || !strcmp(a, "-h")) {
            const bool all = i + 1 < argc && !strcmp(argv[i + 1], "all");
            *help = all ? FL_HELP_ALL : FL_HELP_SHORT;
            i += all;
            continue;
        }
        bool letter = a[1] != '-';
        const char *name = a + (letter ? 1 : 2), *equals = letter ? NULL : strchr(name, '=');
        size_t size = equals ? (size_t)(equals - name) : strlen(name);
        const fl_option *o = find_option(option, count, name, size, letter);
        if (!o) {
            s = unknown(letter ? "-" : "--", name, size, option, count, d);
            continue;
        }
        if (o - option < OPTIONS_ROOM)
            was_given[o - option] = true;
        if (o->type == FL_OPTION_FLAG) {
            s = equals ? fl_refuse(d, "--%s takes no value", o->name) : set_option(o, NULL, d);
        } else if (equals) {
            s = set_option(o, equals + 1, d);
        } else if (i + 1 >= argc) {
            s = fl_refuse(d, "%s%s: nothing follows, expected %s", dashes(o->name), o->name, o->value);
        } else {
            s = set_option(o, argv[++i], d);
        }
    }
    if (s || *help || (s = check_outputs(option, count, rest, d)))
        return s;
    return check_standard(option, count, rest, d);
}
