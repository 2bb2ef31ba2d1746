#include "harness/base/cli/command.h"
#include "harness/base/cli/commands.h"
#include "sim/synth/requests.h"

#include <inttypes.h>

static const fl_command_help help = {
    "synth requests", "-o REQUESTS.csv [options]",
    "Draws requests to a server of language models: when they arrive, and their lengths in tokens; the same for the "
    "same seed.",
    "Times between arrivals are gamma distributed around 1 / rate; --cv 1 is a Poisson process, more are bursts. With "
    "--daily the rate follows a day: rate x (1 - daily x cos(2 pi t / day)), least at the beginning, most after half a "
    "day. Lengths are lognormal; the standard medians are those of the conversation trace of Patel et al., "
    "\"Splitwise\", ISCA 2024, the rest is assumed."};

static fl_status write(const char *path, const fl_synth_requests_options *o, fl_diag *d) {
    fl_requests r;
    char source[400];
    fl_status s = fl_synth_requests(o, &r, d);
    (void)snprintf(source, sizeof source,
                   "foldline synth requests, seed %" PRIu64
                   ", rate %g/s, cv %g, daily %g of %g s, prompts median %g sigma "
                   "%g, outputs median %g sigma %g, shared %" PRIu32,
                   o->seed, o->rate, o->cv, o->daily, o->day_s, o->prompt_median, o->prompt_sigma, o->output_median,
                   o->output_sigma, o->shared);
    if (!s && !fl_head_set(&r.head, "source", source))
        s = fl_no_memory(d, path);
    if (!s)
        s = fl_requests_write(path, &r, d);
    if (!s)
        printf("written: %s (%zu requests over %.1f s)\n", path, r.count, (double)r.row[r.count - 1].t_ns * 1e-9);
    fl_requests_free(&r);
    return s;
}

int fl_cmd_synth_requests(int argc, char **argv) {
    fl_synth_requests_options o = fl_synth_requests_standard;
    int64_t seed = (int64_t)o.seed, most = 0, prompt_most = o.prompt_most, output_most = o.output_most, shared = 0;
    const char *output = NULL;
    double seconds = -1;
    const fl_option option[] = {
        {"o", "FILE", FL_OPTION_OUTPUT, &output, 0, 0, "the requests to write"},
        {"seed", "N", FL_OPTION_INT, &seed, 0, 9e15, "seed (1)"},
        {"rate", "X", FL_OPTION_REAL, &o.rate, 1e-6, 1e6, "requests per second, on average (1)"},
        {"seconds", "X", FL_OPTION_REAL, &seconds, 0.001, 2246400,
         "until then (600; without end where --requests is given)"},
        {"requests", "N", FL_OPTION_INT, &most, 1, FL_REQUESTS_MOST, "at most so many"},
        {"cv", "X", FL_OPTION_REAL, &o.cv, 0, 100, "standard deviation over mean of the times between arrivals (1)"},
        {"daily", "X", FL_OPTION_REAL, &o.daily, 0, 1, "how much the rate follows the time of day (0)"},
        {"day", "S", FL_OPTION_REAL, &o.day_s, 1, 2246400, "length of a day (86400)"},
        {"prompt-tokens", "X", FL_OPTION_REAL, &o.prompt_median, 1, FL_REQUEST_TOKENS_MOST,
         "median of the prompts (1020)"},
        {"prompt-sigma", "X", FL_OPTION_REAL, &o.prompt_sigma, 0, 10, "standard deviation of their logarithm (1)"},
        {"prompt-most", "N", FL_OPTION_INT, &prompt_most, 1, FL_REQUEST_TOKENS_MOST, "no prompt is longer (8192)"},
        {"output-tokens", "X", FL_OPTION_REAL, &o.output_median, 1, FL_REQUEST_TOKENS_MOST,
         "median of the outputs (129)"},
        {"output-sigma", "X", FL_OPTION_REAL, &o.output_sigma, 0, 10, "standard deviation of their logarithm (1)"},
        {"output-most", "N", FL_OPTION_INT, &output_most, 1, FL_REQUEST_TOKENS_MOST, "no output is longer (2048)"},
        {"shared", "N", FL_OPTION_INT, &shared, 0, FL_REQUEST_TOKENS_MOST,
         "tokens with which every prompt begins, such as a system prompt (0)"},
    };
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    if (!fl_command_begin(argc, argv, &help, option, sizeof option / sizeof *option, &rest, &status))
        return status;
    o.seed = (uint64_t)seed;
    o.most = (uint64_t)most;
    o.seconds = seconds > 0 ? seconds : most ? 0 : o.seconds;
    o.prompt_most = (uint32_t)prompt_most;
    o.output_most = (uint32_t)output_most;
    o.shared = (uint32_t)shared;
    fl_diag d = {0};
    const fl_status s =
        !output || rest.count ? fl_refuse(&d, "expected options and -o REQUESTS.csv only") : write(output, &o, &d);
    return fl_command_close("synth requests", s, &d, option, sizeof option / sizeof *option, &rest);
}
