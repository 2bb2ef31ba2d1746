/* Tables of published results, platforms and provenance. */
#include "harness/report/page/inside.h"

#include "harness/base/work/work.h"
#include "harness/report/data/data.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *text_of(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
    return text ? text : "";
}

static double real_of(const cJSON *object, const char *key) {
    const cJSON *at = cJSON_GetObjectItem(object, key);
    return cJSON_IsNumber(at) ? at->valuedouble : (double)NAN;
}

static void table(FILE *f, const char *id, const char *caption) {
    fputs("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"", f);
    fl_html_text(f, caption);
    fprintf(f, "\"><table class=\"sortable\" id=\"%s\"><caption>", id);
    fl_html_text(f, caption);
    fputs("</caption><thead><tr>", f);
}

/* numbers: a letter for each column, n if it holds numbers */
static void heads(FILE *f, const char *const *head, const char *numbers) {
    for (size_t i = 0; numbers[i]; i++)
        (numbers[i] == 'n' ? fl_cell_head : fl_cell_head_text)(f, head[i]);
    fputs("</tr></thead><tbody>\n", f);
}

static void list(FILE *f, const cJSON *array, const char *title) {
    const cJSON *at;
    if (!cJSON_GetArraySize(array))
        return;
    fprintf(f, "<h3>%s</h3>\n<ul>\n", title);
    cJSON_ArrayForEach(at, array) {
        fputs("<li>", f);
        fl_html_text(f, cJSON_IsString(at) ? at->valuestring : "");
        fputs("</li>\n", f);
    }
    fputs("</ul>\n", f);
}

/* ---- published results ---- */

static bool in_block(const cJSON *line, const char *block) { return !strcmp(text_of(line, "block"), block); }

static void put_published(FILE *f, const cJSON *line) {
    const double low = real_of(line, "published_low"), high = real_of(line, "published_high");
    const char *verdict = text_of(line, "verdict"), *recorded = text_of(line, "recorded");
    fputs("<tr><th scope=\"row\">", f);
    fl_html_text(f, text_of(line, "quantity"));
    for (const char *const *key = (const char *const[]){"note", "because", NULL}; *key; key++)
        if (*text_of(line, *key)) {
            fputs("<br><small>", f);
            fl_html_text(f, text_of(line, *key));
            fputs("</small>", f);
        }
    fputs("</th>", f);
    fl_cell_text_put(f, text_of(line, "unit"));
    if (low < high)
        fprintf(f, "<td data-v=\"%.9g\">%.5g\xe2\x80\x93%.5g</td>", low, low, high);
    else
        fl_cell_number(f, low, -5);
    fl_cell_number(f, real_of(line, "simulated"), -5);
    fl_cell_number(f, real_of(line, "difference"), -3);
    fl_cell_text_put(f, text_of(line, "kind"));
    fl_cell_text_put(f, text_of(line, "gate"));
    fprintf(f, "<td class=\"text %s\">",
            cJSON_IsFalse(cJSON_GetObjectItem(line, "holds")) ? "bad"
            : *verdict                                        ? "good"
                                                              : "");
    fl_html_text(f, verdict);
    if (strcmp(verdict, recorded) != 0) {
        fputs(", but recorded: ", f);
        fl_html_text(f, recorded);
    }
    fputs("</td></tr>\n", f);
}

/* The lines of a block as one table; no table where it has none. */
static void put_block(FILE *f, const cJSON *all, const char *block, const char *title) {
    static const char *const head[] = {"quantity",   "unit", "published", "simulated",
                                       "difference", "kind", "test",      "verdict"};
    const cJSON *line;
    size_t lines = 0;
    char id[64];
    cJSON_ArrayForEach(line, all) if (in_block(line, block) && !lines++) {
        snprintf(id, sizeof id, "published-%s", block);
        fprintf(f, "<h3>%s</h3>\n", title);
        table(f, id, title);
        heads(f, head, "ttnnnttt");
    }
    cJSON_ArrayForEach(line, all) if (in_block(line, block)) put_published(f, line);
    if (lines)
        fputs("</tbody></table></div>\n", f);
}

static void put_score(FILE *f, const cJSON *score) {
    fprintf(f, "<p>The difference is simulated minus published. %g predictions, of which %g are reproduced",
            real_of(score, "predictions"), real_of(score, "reproduced"));
    if (real_of(score, "published_numbers") > 0)
        fprintf(
            f,
            "; the error of the %g that have a published number has median %.2g and 90th percentile %.2g, in percent "
            "of the number, or in points where it is a percentage",
            real_of(score, "published_numbers"), real_of(score, "error_median"), real_of(score, "error_p90"));
    fprintf(f, ". %g numbers were calibrated.</p>\n", real_of(score, "calibrated"));
}

static void put_calibrated(FILE *f, const cJSON *all) {
    const cJSON *at;
    if (!cJSON_GetArraySize(all))
        return;
    fputs("<h3>Calibrated</h3>\n<ul>\n", f);
    cJSON_ArrayForEach(at, all) {
        fputs("<li>", f);
        fl_html_text(f, text_of(at, "what"));
        fputs(", to ", f);
        fl_html_text(f, text_of(at, "to"));
        fputs("; before: ", f);
        fl_html_text(f, text_of(at, "before"));
        fputs("</li>\n", f);
    }
    fputs("</ul>\n", f);
}

void fl_table_published(FILE *f, const fl_report_data *r) {
    const cJSON *all = cJSON_GetObjectItem(r->published, "published");
    if (!cJSON_GetArraySize(all))
        return;
    fputs("<section id=\"published\"><h2>Published and simulated</h2>\n", f);
    put_score(f, cJSON_GetObjectItem(r->published, "score"));
    put_block(f, all, "claim", "Claims of the system");
    put_block(f, all, "detail", "Rivals and details");
    put_block(f, all, "input", "Inputs, and what nobody can reproduce");
    put_calibrated(f, cJSON_GetObjectItem(r->published, "calibrated"));
    list(f, cJSON_GetObjectItem(r->published, "assumed"), "Assumed, because not published");
    fputs("</section>\n", f);
}

/* ---- platforms and models ---- */

void fl_table_models(FILE *f, const fl_report_data *r) {
    static const char *const head[] = {"workload", "platform",      "GPUs",           "kernels",
                                       "model",    "time error, %", "power error, %", "taken as given"};
    const cJSON *all = cJSON_GetObjectItem(r->provenance, "workloads"), *w;
    if (!cJSON_GetArraySize(all)) {
        fputs("<p class=\"note\">No record of models beside the result.</p>\n", f);
        return;
    }
    table(f, "models-table", "What each workload was simulated with, and the models' mean errors where measured");
    heads(f, head, "ttnntnnt");
    double worst = 0;
    cJSON_ArrayForEach(w, all) {
        char given[160];
        static const char *const told[][2] = {{"assumed_power", "law of power assumed"},
                                              {"assumed_loads", "loads of kernels assumed"},
                                              {"gaps_are_host_time", "gaps are host time"}};
        size_t used = 0;
        given[0] = 0;
        for (size_t i = 0; i < sizeof told / sizeof *told; i++)
            if (cJSON_IsTrue(cJSON_GetObjectItem(w, told[i][0])))
                used += (size_t)snprintf(given + used, sizeof given - used, "%s%s", used ? "; " : "", told[i][1]);
        fputs("<tr><th scope=\"row\">", f);
        fl_html_text(f, text_of(w, "workload"));
        fputs("</th>", f);
        fl_cell_text_put(f, text_of(w, "platform"));
        fl_cell_number(f, real_of(w, "gpus"), 0);
        fl_cell_number(f, real_of(w, "kernels"), 0);
        fl_cell_text_put(f, text_of(w, "model"));
        fl_cell_number(f, real_of(w, "model_time_mape_pct"), 2);
        fl_cell_number(f, real_of(w, "model_power_mape_pct"), 2);
        fl_cell_text_put(f, given);
        fputs("</tr>\n", f);
        worst = fmax(worst, fmax(real_of(w, "model_time_mape_pct"), real_of(w, "model_power_mape_pct")));
    }
    fputs("</tbody></table></div>\n", f);
    if (worst > 0)
        fprintf(
            f,
            "<p class=\"note\">The intervals of this page are over workloads and seeds; they do not hold the models' "
            "errors (up to %.2g %% here).</p>\n",
            worst);
    else
        fputs(
            "<p class=\"note\">The intervals of this page are over workloads and seeds; they do not hold errors of the "
            "models. n/a: not fitted to measurements here, so no error is known.</p>\n",
            f);
}

/* ---- provenance ---- */

static void entry(FILE *f, const char *key, const char *text, bool code) {
    fprintf(f, "<dt>%s</dt><dd>%s", key, code ? "<code>" : "");
    fl_html_text(f, *text ? text : "not recorded");
    fprintf(f, "%s</dd>\n", code ? "</code>" : "");
}

static void put_inputs(FILE *f, const cJSON *inputs) {
    static const char *const head[] = {"input", "SHA-256"};
    const cJSON *in;
    if (!cJSON_GetArraySize(inputs))
        return;
    table(f, "inputs-table", "Inputs and their hashes");
    heads(f, head, "tt");
    cJSON_ArrayForEach(in, inputs) {
        const char *path = text_of(in, "file"), *slash = strrchr(path, '/');
        fputs("<tr><th scope=\"row\" title=\"", f);
        fl_html_text(f, path);
        fputs("\">", f);
        fl_html_text(f, slash ? slash + 1 : path);
        fputs("</th><td class=\"text\"><code>", f);
        fl_html_text(f, *text_of(in, "sha256") ? text_of(in, "sha256") : "could not be read");
        fputs("</code></td></tr>\n", f);
    }
    fputs("</tbody></table></div>\n", f);
}

static void put_policies(FILE *f, const cJSON *policies) {
    static const char *const head[] = {"label", "policy", "source", "parameters as resolved"};
    const cJSON *p, *param;
    if (!cJSON_GetArraySize(policies))
        return;
    fprintf(f, "<details><summary>Parameters of all %d policies</summary>\n", cJSON_GetArraySize(policies));
    table(f, "parameters-table", "Policies, their sources and parameters");
    heads(f, head, "tttt");
    cJSON_ArrayForEach(p, policies) {
        fputs("<tr><th scope=\"row\">", f);
        fl_html_label(f, text_of(p, "label"));
        fputs("</th>", f);
        fl_cell_text_put(f, text_of(p, "policy"));
        fl_cell_text_put(f, text_of(p, "source"));
        fputs("<td class=\"text params\">", f);
        cJSON_ArrayForEach(param, cJSON_GetObjectItem(p, "parameters")) {
            fl_html_text(f, param->string);
            fputc('=', f);
            fl_html_text(f, cJSON_IsString(param) ? param->valuestring : "");
            if (param->next)
                fputs(", ", f);
        }
        fputs("</td></tr>\n", f);
    }
    fputs("</tbody></table></div></details>\n", f);
}

void fl_list_provenance(FILE *f, const fl_report_data *r, const fl_bootstrap *b) {
    const cJSON *p = r->provenance, *options = cJSON_GetObjectItem(p, "options"), *option;
    const char *slash = strrchr(r->path, '/');
    char text[160];
    fputs("<dl>\n", f);
    entry(f, "Result", slash ? slash + 1 : r->path, false);
    entry(f, "Its SHA-256", r->sha256, true);
    if (p) {
        entry(f, "Made by foldline", text_of(p, "foldline"), false);
        entry(f, "Report by foldline", FL_VERSION, false);
        entry(f, "C library", text_of(p, "libc"), false);
        entry(f, "Policy archive, SHA-256", text_of(p, "policy_archive_sha256"), true);
        if (*text_of(p, "experiment"))
            entry(f, "Experiment", text_of(p, "experiment"), false);
        snprintf(text, sizeof text, "%.17g", real_of(p, "seed"));
        entry(f, "First seed", text, false);
    }
    cJSON_ArrayForEach(option, options) {
        if (cJSON_IsString(option))
            snprintf(text, sizeof text, "%s", option->valuestring);
        else if (cJSON_IsNumber(option))
            snprintf(text, sizeof text, "%.9g", option->valuedouble);
        else
            snprintf(text, sizeof text, "%s", cJSON_IsTrue(option) ? "yes" : cJSON_IsFalse(option) ? "no" : "none");
        fputs("<dt>Option ", f);
        fl_html_text(f, option->string);
        fputs("</dt><dd>", f);
        fl_html_text(f, text);
        fputs("</dd>\n", f);
    }
    snprintf(text, sizeof text, "two-level bootstrap over workloads and seeds, percentiles, seed %llu",
             (unsigned long long)b->seed);
    entry(f, "Intervals", text, false);
    fputs("</dl>\n", f);
    put_inputs(f, cJSON_GetObjectItem(p, "inputs"));
    put_policies(f, cJSON_GetObjectItem(p, "policies"));
}
