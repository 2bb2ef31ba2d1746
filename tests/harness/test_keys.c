/* The rows of an experiment's keys: what they refuse, and that what they say of standards is what the code takes. */
#include "harness/base/json/json.h"
#include "harness/input/experiment/experiment.h"
#include "harness/study/trial/trial.h"
#include "sim/oracle/oracle.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <stdlib.h>
#include <string.h>

static void test_refused(void) {
    static const struct {
        const char *keys, *says; /* NULL: taken */
    } rows[] = {
        {"\"gpus\": 4", NULL},
        {"\"gpus\": 0", "gpus: 0, expected a number in 1..1024"},
        {"\"gpus\": 1025", "gpus: 1025, expected a number in 1..1024"},
        {"\"gpus\": 1.5", "gpus: 1.5, expected a whole number"},
        {"\"gpus\": \"4\"", "gpus: a text, expected a number"},
        {"\"gpu\": 4", "gpu: unknown key, expected \"gpus\"?"},
        {"\"heat\": 1", "heat: a number, expected true or false"},
        {"\"wall\": \"ideel\"", "wall: 'ideel', did you mean 'ideal'?"},
        {"\"assume\": \"everything\"", "assume: 'everything', expected compute, memory or balanced"},
        {"\"platform\": \"\"", "platform: empty, expected a text"},
        {"\"traces\": \"a.csv\"", "traces: expected a list"},
        {"\"traces\": [1]", "traces[0]: a number, expected a text"},
        {"\"arrivals\": \"a.csv\"", NULL},
        {"\"arrivals\": {\"rate\": 5, \"count\": 3}", NULL},
        {"\"arrivals\": {\"rate\": -5}", "arrivals.rate: -5, expected a number in 1e-06..1000000000"},
        {"\"arrivals\": 5", "arrivals: a number, expected a text or an object"},
        {"\"oracles\": \"static\"", NULL},
        {"\"oracles\": \"statik\"", "oracles: 'statik', did you mean 'static'?"},
        {"\"oracles\": 1", "oracles: a number, expected true, false or a text"},
        {"\"draws\": {\"ratio\": {\"a\": 1, \"b\": 2}}", NULL},
        {"\"draws\": {\"ratio\": {\"a\": 1, \"b\": 0}}", "draws.ratio.b: 0, expected a number in 1e-06..1000000"},
        {"\"draws\": {\"ratio\": \"1\"}", "draws.ratio: a text, expected a number, or an object with one for each"},
        {"\"variants\": {\"a\": {\"wall\": \"off\"}}", NULL},
        {"\"variants\": {\"a\": {\"platform\": \"generic\"}}", "variants.a.platform: unknown key"},
        {"\"variants\": []", "variants: expected an object"},
        {"\"policies\": [\"assure\", {\"policy\": \"assure\", \"set\": {\"x\": {\"each\": [1, [2, 3]]}}}]", NULL},
        {"\"policies\": [{\"set\": {}}]", "policies[0].policy: missing"},
        {"\"policies\": [{\"policy\": \"assure\", \"set\": {\"x\": {\"eech\": [1]}}}]",
         "eech: unknown key, expected \"each\"?"},
        {"\"policies\": [{\"policy\": \"assure\", \"set\": {\"x\": null}}]", "policies[0].set.x: null"},
        {"\"tables\": [{\"title\": \"t\", \"columns\": {\"a\": {\"+policy\": \"x\"}}, \"rows\": {}}]", NULL},
        {"\"tables\": [{\"title\": \"t\", \"columns\": {\"a\": {\"+polisy\": \"x\"}}, \"rows\": {}}]", "unknown key"},
        {"\"published\": [{\"quantity\": \"q\", \"published\": [1, 2]}]", NULL},
        {"\"published\": [{\"quantity\": \"q\", \"published\": null}]", NULL},
        {"\"published\": [{\"quantity\": \"q\"}]", "published[0].published: missing"},
        {"\"published\": [{\"quantity\": \"q\", \"published\": 1, \"gate\": {\"within\": -1}}]",
         "within: -1, expected"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        fl_experiment e = {0};
        fl_diag d = {0};
        snprintf(text, sizeof text, "{\"foldline_experiment\": 1, %s}", rows[i].keys);
        const fl_status s = fl_experiment_open(fl_temp_text("e.json", text), &e, &d);
        if (rows[i].says)
            FL_CHECK(s == FL_BAD_INPUT && d.line == 1 && strstr(d.message, rows[i].says), "%s: %s", rows[i].keys,
                     d.message);
        else
            FL_CHECK(!s, "%s: %s", rows[i].keys, d.message);
        fl_experiment_free(&e);
    }
}

static const fl_key *row_of(const char *name) {
    for (size_t i = 0; i < fl_experiment_keys.count; i++)
        if (!strcmp(fl_experiment_keys.key[i].name, name))
            return &fl_experiment_keys.key[i];
    return NULL;
}

/* What rooms above harness/input call their standards and words. */
static void test_standards(void) {
    char words[128] = "";
    for (size_t i = 0; fl_objective_names[i]; i++)
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", i ? "|" : "", fl_objective_names[i]);
    FL_CHECK(!strcmp(row_of("objective")->words, words), "%s", words);
    FL_CHECK(!strcmp(row_of("objective")->standard, FL_OBJECTIVE_STANDARD), "objective");
    FL_CHECK(atoi(row_of("seeds")->standard) == FL_SEEDS_STANDARD, "seeds");
    FL_CHECK(atoi(row_of("power_window_ms")->standard) == FL_POWER_WINDOW_NS / 1000000, "windows");
}

/* Each row says what it is, once: a page that repeats or leaves out is no page. */
static void check_rows(const fl_keys *keys, int depth) {
    FL_CHECK(keys->name && keys->help && *keys->help, "an object without a name");
    for (size_t i = 0; i < keys->count; i++) {
        const fl_key *k = &keys->key[i];
        FL_CHECK(k->name && k->unit && k->help && *k->help && k->type, "%s row %zu", keys->name, i);
        FL_CHECK(!(k->type & FL_KEY_OBJECT) == !k->of, "%s.%s: an object and its rows", keys->name, k->name);
        FL_CHECK(!(k->type & (FL_KEY_REAL | FL_KEY_INT)) || k->min < k->max || !strcmp(k->name, "foldline_experiment"),
                 "%s.%s: no range", keys->name, k->name);
        for (size_t n = 0; n < i; n++)
            FL_CHECK(strcmp(keys->key[n].name, k->name) != 0, "%s.%s twice", keys->name, k->name);
        if (k->of && depth < 8)
            check_rows(k->of, depth + 1);
    }
}

static void test_rows(void) { check_rows(&fl_experiment_keys, 0); }

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("keys", {"what is refused", test_refused}, {"standards", test_standards}, {"rows", test_rows},
         {"clean up", test_clean_up})
