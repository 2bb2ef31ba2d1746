/* Policies as they are asked for: the text form of the command line, and the values of an experiment. */
#include "harness/base/cli/cli.h"
#include "harness/input/experiment/experiment.h"
#include "harness/input/policy/policy.h"
#include "policies/policy.h"
#include "sim/instance/instance.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <stdlib.h>
#include <string.h>

/* The settings of a spec as one text: "name=value name=value". */
static const char *settings_of(const fl_spec *s) {
    static char text[1024];
    *text = '\0';
    for (size_t i = 0, used = 0; i < s->layer.count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", i ? " " : "", s->layer.setting[i].name,
                                 s->layer.setting[i].text ? s->layer.setting[i].text : "(table)");
    return text;
}

static void test_text_form(void) {
    static const struct {
        const char *text, *set, *policy, *settings; /* policy NULL: refused, and settings is what it says */
    } rows[] = {
        {"assure", NULL, "assure", ""},
        {"assure:", NULL, "assure", ""},
        {"assure:theta=0.8", NULL, "assure", "theta=0.8"},
        {"assure:theta=0.8,,window=4,", NULL, "assure", "theta=0.8 window=4"},
        {"assure:probe_mhz=855/1050", NULL, "assure", "probe_mhz=855/1050"},
        {"assure:theta=", NULL, "assure", "theta="},
        {"assure:theta=1=2:3", NULL, "assure", "theta=1=2:3"},
        {"assure:theta=0.8", "theta=0.9,1", "assure", "theta=0.8 theta=0.9,1"},
        {"assure:theta", NULL, NULL, "policy assure: 'theta', expected parameter=value"},
        {"assure:=1", NULL, NULL, "policy assure: '=1', expected parameter=value"},
        {"assure", "theta", NULL, "policy assure: 'theta', expected parameter=value"},
        {"asure:theta", NULL, NULL, "unknown policy 'asure', did you mean 'assure'?"},
        {"GEEPAFS:theta=1", NULL, NULL, "unknown policy 'GEEPAFS', did you mean 'assure', 'nvboost', "},
        {"dynaco", NULL, NULL, "'1levelth', 'multilevelth', 'bapm', 'ideal-static'?"},
        {"power_capping", NULL, NULL, "did you mean 'cap-dynamic-min', "},
        {"gpoeo", NULL, NULL, "did you mean 'mf-gpoeo'?"},
        {"energy-ucb", NULL, NULL, "did you mean 'energyucb', 'energyucb-v2'?"},
        {"VoltanaLLM", NULL, NULL, "did you mean 'ecofreq', 'ecoroute'?"},
        {"linucb", NULL, NULL, "did you mean 'agft'?"}, /* an algorithm in the source, behind the system */
        {"ucb", NULL, NULL, "expected a built-in"},     /* a part of a word names none */
        {"", NULL, NULL, "expected a built-in"},
        {"cap-static:model=/nowhere/none.csv", NULL, NULL, "No such file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fl_spec s;
        fl_diag d = {0};
        const fl_texts set = {.item = (const char *[]){rows[i].set}, .count = 1};
        const fl_status status = fl_spec_open_set(rows[i].text, rows[i].set ? &set : NULL, &s, &d);
        if (rows[i].policy)
            FL_CHECK(!status && !strcmp(s.policy->name, rows[i].policy) && !strcmp(s.label, rows[i].text) &&
                         !strcmp(settings_of(&s), rows[i].settings),
                     "%s: '%s' %s", rows[i].text, status ? "" : settings_of(&s), d.message);
        else
            FL_CHECK(status == FL_BAD_INPUT && strstr(d.message, rows[i].settings), "%s: %s", rows[i].text, d.message);
        fl_spec_free(&s);
    }
}

static fl_status resolve(const fl_spec *s, fl_diag *d) {
    static const fl_facts facts = {0};
    const fl_instance_options o = {.policy = s->policy, .facts = &facts, .layer = &s->layer, .layer_count = 1};
    fl_instance *in;
    const fl_status status = fl_instance_open(&in, &o, d);
    fl_instance_close(in);
    return status;
}

/* However many there are, the last one counts. */
static void test_many_settings(void) {
    for (size_t many = 62; many < 300; many = many < 66 ? many + 1 : many * 2) {
        char *text;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        fputs("nvboost:", f);
        for (size_t i = 0; i < many; i++)
            fputs("period_ms=5,", f);
        fputs("period_mx=7", f);
        fclose(f);
        fl_spec s;
        fl_diag d = {0};
        FL_CHECK(!fl_spec_open(text, &s, &d) && s.layer.count == many + 1, "%zu settings", many + 1);
        FL_CHECK(resolve(&s, &d) == FL_BAD_INPUT && strstr(d.message, "parameter 'period_mx' (--policy): unknown"),
                 "unknown as number %zu: %s", many + 1, d.message);
        fl_spec_free(&s);
        free(text);
    }
}

#define ODD "a,b=1:c.csv" /* every mark of the text form */
static const char table[] = "kernel,cpu_mhz,sm_mhz\naxpy,3000,700\n";

/* A value is a value, whatever is in it. */
static void test_values(void) {
    const char *path = fl_temp_text(ODD, table);
    const fl_setting setting[] = {{.name = "states", .text = path}, {.name = "period_ms", .text = "1,x=2:3"}};
    const fl_layer given = {.origin = "test", .setting = setting, .count = 2};
    fl_spec s;
    fl_diag d = {0};
    FL_CHECK(!fl_spec_open_values("ideal-static", "so called", &given, NULL, &s, &d), "%s", d.message);
    FL_CHECK(!strcmp(s.label, "so called") && !strcmp(settings_of(&s), "states=(table) period_ms=1,x=2:3"), "%s: %s",
             s.label, settings_of(&s));
    FL_CHECK(s.table[0].row_count == 1 && s.layer.setting[0].table == &s.table[0] && !strcmp(s.file[0], path) &&
                 !s.file[1],
             "the table's file is %s", s.file[0]);
    FL_CHECK(resolve(&s, &d) == FL_BAD_INPUT && strstr(d.message, "(test): '1,x=2:3' is not a number"), "%s",
             d.message);
    fl_spec_free(&s);
}

static void test_experiment(void) {
    static const char text[] =
        "{\"foldline_experiment\": 1, \"policies\": [\"nvboost\", \"assure:theta=0.8,window=4\","
        "{\"policy\": \"fixed:sm_mhz=900\", \"label\": \"slow\"},"
        "{\"policy\": \"ideal-static\", \"set\": {\"states\": \"" ODD
        "\"}, \"label\": \"best\", \"workloads\": [\"a*\"]},"
        "{\"policy\": \"assure\", \"set\": {\"theta\": {\"each\": [0.9, 0.8]}, \"probe_mhz\": [855, 1050],"
        " \"window\": {\"from\": 2, \"to\": 4, \"step\": 2}}},"
        "{\"policy\": \"assure\", \"set\": {\"window\": 4, \"theta\": {\"each\": [0.9, 0.8]}}, \"label\": \"A\"},"
        "{\"policy\": \"assure\", \"set\": {\"theta\": {\"each\": []}}}]}";
    static const struct {
        const char *label, *settings;
    } rows[] = {
        {"nvboost", ""},
        {"assure:theta=0.8,window=4", "theta=0.8 window=4"},
        {"slow", "sm_mhz=900"},
        {"best", "states=(table)"},
        {"assure:theta=0.9,probe_mhz=855/1050,window=2", "theta=0.9 probe_mhz=855/1050 window=2"},
        {"assure:theta=0.9,probe_mhz=855/1050,window=4", "theta=0.9 probe_mhz=855/1050 window=4"},
        {"assure:theta=0.8,probe_mhz=855/1050,window=2", "theta=0.8 probe_mhz=855/1050 window=2"},
        {"assure:theta=0.8,probe_mhz=855/1050,window=4", "theta=0.8 probe_mhz=855/1050 window=4"},
        {"A:theta=0.9", "window=4 theta=0.9"},
        {"A:theta=0.8", "window=4 theta=0.8"},
    };
    fl_experiment e;
    fl_spec *spec = NULL;
    size_t count = 0;
    const fl_texts none = {0};
    fl_texts texts = {0}; /* as on the command line, without labels */
    fl_diag d = {0};
    fl_temp_text(ODD, table); /* beside the experiment */
    FL_CHECK(!fl_experiment_open(fl_temp_text("e.json", text), &e, &d) &&
                 !fl_experiment_specs(&e, &none, &spec, &count, &texts, &d),
             "%s", d.message);
    FL_CHECK(count == sizeof rows / sizeof *rows, "%zu policies", count);
    for (size_t i = 0; i < count && i < sizeof rows / sizeof *rows; i++)
        FL_CHECK(!strcmp(spec[i].label, rows[i].label) && !strcmp(settings_of(&spec[i]), rows[i].settings), "%s: %s",
                 spec[i].label, settings_of(&spec[i]));
    FL_CHECK(count > 4 && spec[3].only.count == 1 && !strcmp(spec[3].only.item[0], "a*") && !spec[4].only.count,
             "workloads");
    FL_CHECK(texts.count == count && !strcmp(texts.item[2], "fixed:sm_mhz=900") &&
                 !strcmp(texts.item[9], "assure:window=4,theta=0.8"),
             "%zu texts", texts.count);
    fl_texts_free(&texts);
    for (size_t i = 0; i < count; i++)
        fl_spec_free(&spec[i]);
    free(spec);
    fl_experiment_free(&e);
}

/* --policy: A/B of a parameter that takes one value are two policies, of a list they are its values. */
static void test_given(void) {
    static const char *const given[] = {"nvboost", "assure:theta=0.8/0.9,probe_mhz=855/1050,window=2/4",
                                        "A=assure:theta=0.8/0.9,window=4"};
    static const struct {
        const char *label, *settings;
    } rows[] = {
        {"nvboost", ""},
        {"assure:theta=0.8,probe_mhz=855/1050,window=2", "theta=0.8 probe_mhz=855/1050 window=2"},
        {"assure:theta=0.8,probe_mhz=855/1050,window=4", "theta=0.8 probe_mhz=855/1050 window=4"},
        {"assure:theta=0.9,probe_mhz=855/1050,window=2", "theta=0.9 probe_mhz=855/1050 window=2"},
        {"assure:theta=0.9,probe_mhz=855/1050,window=4", "theta=0.9 probe_mhz=855/1050 window=4"},
        {"A:theta=0.8", "theta=0.8 window=4"},
        {"A:theta=0.9", "theta=0.9 window=4"},
    };
    static const struct {
        const char *text, *why;
    } wrong[] = {{"assure:theta=0.8/0.9,window", "'window', expected parameter=value"},
                 {"a b=assure:theta=0.8/0.9", "expected a name of letters"},
                 {"asure:theta=0.8/0.9", "did you mean 'assure'"}};
    fl_experiment e = {0};
    fl_spec *spec = NULL;
    size_t count = 0;
    fl_texts own = {0}, texts = {0};
    fl_diag d = {0};
    for (size_t i = 0; i < FL_COUNT(given); i++)
        FL_CHECK(!fl_texts_add(&own, given[i], &d), "%s", d.message);
    FL_CHECK(!fl_experiment_specs(&e, &own, &spec, &count, &texts, &d) && count == FL_COUNT(rows) &&
                 texts.count == count,
             "%zu policies: %s", count, d.message);
    for (size_t i = 0; i < count && i < FL_COUNT(rows); i++)
        FL_CHECK(!strcmp(spec[i].label, rows[i].label) && !strcmp(settings_of(&spec[i]), rows[i].settings), "%s: %s",
                 spec[i].label, settings_of(&spec[i]));
    for (size_t i = 0; i < count; i++)
        fl_spec_free(&spec[i]);
    free(spec);
    for (size_t i = 0; i < FL_COUNT(wrong); i++) {
        const char *item[] = {wrong[i].text};
        const fl_texts one = {.item = item, .count = 1};
        FL_CHECK(fl_experiment_specs(&e, &one, &spec, &count, &texts, &d) == FL_BAD_INPUT && !count &&
                     strstr(d.message, wrong[i].why),
                 "%s: %s", wrong[i].text, d.message);
        free(spec);
    }
    fl_texts_free(&own);
    fl_texts_free(&texts);
    fl_experiment_free(&e);
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("spec", {"the text form", test_text_form}, {"any number of settings", test_many_settings},
         {"values", test_values}, {"an experiment", test_experiment}, {"the command line", test_given},
         {"clean up", test_clean_up})
