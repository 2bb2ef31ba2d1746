/* Successive halving: it finds what the whole grid finds where nothing is noisy, runs far fewer trials, keeps tuning
 * and scoring apart, and gives the same at any number of threads. */
#include "harness/base/cli/cli.h"
#include "harness/study/grid/grid.h"
#include "harness/study/trial/trial.h"
#include "traces/io/io.h"
#include "tests/support/suite.h"
#include "tests/support/temp_file.h"

#include <math.h>
#include <sys/wait.h>

static void open_setup(fl_setup *u, fl_setup_options *so, fl_trials **t, double bound) {
    static char path[512];
    fl_diag d = {0};
    fl_temp_text("k.csv", "# foldline-kinds 1\n# source: made up\n"
                          "name,tc,tm,tl,sharpness,alpha,beta,sm_demand,sm_mhz,mem_mhz\nc,1,0.3,0,9,1,0.3,1,1500,1000\n"
                          "m,0.4,1,0,9,0.4,0.8,1,1500,1000\n");
    fl_temp_text("p.csv", "# foldline-programs 1\n# source: made up\n# sm_mhz: 1500\n# mem_mhz: 1000\n# kinds: k.csv\n"
                          "program,part,part_s,kernel,count,time_us,time_cv,gap_us,gap_cv\n"
                          "core,1,0.2,c,1,2000,0.1,10,0\nmemory,1,0.2,m,1,2000,0.1,10,0\n"
                          "both,1,0.2,m,1,2000,0.1,10,0\nboth,1,0.2,c,1,1000,0.1,10,0\n");
    snprintf(path, sizeof path, "%s",
             fl_temp_text("e.json", "{\"foldline_experiment\": 1, \"platform\": \"generic\", \"programs\": \"p.csv\", "
                                    "\"seeds\": 3, \"oracles\": false, \"policies\": [{\"policy\": \"fixed\", \"set\": "
                                    "{\"sm_mhz\": {\"from\": 600, \"to\": 1500, \"step\": 100}}}]}"));
    *so = (fl_setup_options)FL_SETUP_UNSET;
    so->no_oracle = true;
    so->bound = bound;
    FL_CHECK(fl_texts_add(&so->rest, path, &d) == FL_OK && fl_setup_open(u, so, &d) == FL_OK, "%s", d.message);
    FL_CHECK(fl_trials_open(t, &u->o, &d) == FL_OK, "%s", d.message);
}

static void close_setup(fl_setup *u, fl_setup_options *so, fl_trials *t) {
    fl_trials_close(t);
    fl_setup_free(u);
    fl_setup_options_free(so);
}

static fl_status score(fl_trials *t, const fl_setup *u, size_t spec, const bool *use, fl_search_sum *sum, fl_diag *d) {
    fl_row_result mean;
    const fl_status s = fl_search_score(t, &u->o, spec, use, &mean, d);
    *sum = fl_search_sum_of(&mean);
    return s;
}

/* What the whole grid says: the least mean among those that hold the bound everywhere. */
static size_t grid(fl_trials *t, const fl_setup *u, const bool *use, double *best) {
    size_t winner = SIZE_MAX;
    fl_diag d = {0};
    *best = HUGE_VAL;
    for (size_t i = 0; i < u->o.spec_count; i++) {
        fl_search_sum sum;
        FL_CHECK(score(t, u, i, use, &sum, &d) == FL_OK, "%s", d.message);
        if (!sum.violated && sum.ratio < *best) {
            *best = sum.ratio;
            winner = i;
        }
    }
    return winner;
}

static void test_finds(void) {
    static const double bounds[] = {INFINITY, 0.3, 0.1};
    for (int k = 0; k < 3; k++) {
        fl_setup u;
        fl_setup_options so;
        fl_trials *t = NULL;
        fl_search_result r, again;
        fl_diag d = {0};
        double best;
        open_setup(&u, &so, &t, bounds[k]);
        const fl_search_options how = {.keep = 0.5, .seed = 1};
        const size_t winner = grid(t, &u, NULL, &best);
        FL_CHECK(fl_search_run(t, &u.o, &how, &r, &d) == FL_OK, "%s", d.message);
        FL_CHECK(u.o.spec_count == 10 && r.whole == 10 * 9 && r.trials < r.whole * 2 / 3 && r.rounds > 1,
                 "%zu of %zu trials in %zu rounds", r.trials, r.whole, r.rounds);
        fl_search_sum sum;
        FL_CHECK(score(t, &u, r.winner, NULL, &sum, &d) == FL_OK && !sum.violated && sum.runs == 9 &&
                     sum.ratio <= best * 1.02,
                 "bound %g: %s with %.4f%s, the grid has %s with %.4f", bounds[k], u.spec[r.winner].label, sum.ratio,
                 sum.violated ? " (breaks it)" : "", u.spec[winner].label, best);
        u.o.threads = 1;
        FL_CHECK(fl_search_run(t, &u.o, &how, &again, &d) == FL_OK && again.winner == r.winner &&
                     again.sum.ratio == r.sum.ratio && again.trials == r.trials,
                 "depends on the threads");
        close_setup(&u, &so, t);
    }
}

static void test_apart(void) { /* what is not tuned on is never run */
    fl_setup u;
    fl_setup_options so;
    fl_trials *t = NULL;
    fl_search_result r;
    fl_diag d = {0};
    double best;
    open_setup(&u, &so, &t, INFINITY);
    const bool core[] = {true, false, false}, memory[] = {false, true, false}, none[] = {false, false, false};
    fl_search_options how = {.keep = 0.5, .seed = 1, .use = core};
    FL_CHECK(fl_search_run(t, &u.o, &how, &r, &d) == FL_OK && r.whole == 10 * 3, "%zu", r.whole);
    const size_t of_core = r.winner;
    FL_CHECK(of_core == grid(t, &u, core, &best), "another winner than the grid's for core");
    how.use = memory;
    FL_CHECK(fl_search_run(t, &u.o, &how, &r, &d) == FL_OK && r.winner == grid(t, &u, memory, &best) &&
                 r.winner != of_core,
             "memory-bound programs want another clock than %s", u.spec[r.winner].label);
    how.use = none;
    FL_CHECK(fl_search_run(t, &u.o, &how, &r, &d) == FL_BAD_INPUT && strstr(d.message, "tune on"), "%s", d.message);
    close_setup(&u, &so, t);
}

/* A pattern that no workload matches, and policies that are not for all of them. */
static void test_limited(void) {
    fl_setup u;
    fl_setup_options so;
    fl_trials *t = NULL;
    fl_search_result r;
    fl_diag d = {0};
    fl_search_sum sum;
    open_setup(&u, &so, &t, INFINITY);
    const bool none[] = {false, false, false}, core[] = {true, false, false};
    FL_CHECK(score(t, &u, 0, none, &sum, &d) == FL_BAD_INPUT && strstr(d.message, "score on"), "%s", d.message);
    for (size_t i = 0; i < 4; i++)
        FL_CHECK(fl_texts_add(&u.spec[i].only, "mem*", &d) == FL_OK, "%s", d.message);
    FL_CHECK(score(t, &u, 0, core, &sum, &d) == FL_OK && !sum.runs && isnan(sum.ratio), "for none of them: %g",
             sum.ratio);
    FL_CHECK(fl_search_run(t, &u.o, &(fl_search_options){.keep = 1, .seed = 1}, &r, &d) == FL_OK &&
                 r.whole == 6 * 9 + 4 * 3 && r.trials == r.whole,
             "keeping all runs %zu of %zu", r.trials, r.whole);
    close_setup(&u, &so, t);
}

static void test_keep(void) {
    fl_setup u;
    fl_setup_options so;
    fl_trials *t = NULL;
    fl_search_result all, few;
    fl_diag d = {0};
    double best;
    open_setup(&u, &so, &t, INFINITY);
    FL_CHECK(fl_search_run(t, &u.o, &(fl_search_options){.keep = 1, .seed = 1}, &all, &d) == FL_OK &&
                 all.trials == all.whole && all.winner == grid(t, &u, NULL, &best) &&
                 fabs(all.sum.ratio / best - 1) < 1e-12,
             "keeping all is the whole grid: %zu of %zu", all.trials, all.whole);
    FL_CHECK(fl_search_run(t, &u.o, &(fl_search_options){.keep = 0.1, .seed = 1}, &few, &d) == FL_OK &&
                 few.trials < all.trials / 5,
             "%zu trials", few.trials);
    close_setup(&u, &so, t);
}

/* Low clocks hold 10 % on the memory-bound program and save most there, and break it on the others. Where the
 * memory-bound one comes first in the order of the seed, the first rounds see only that; what holds everywhere must
 * still be found. */
static void test_feasible(void) {
    size_t rounds_of_memory = 0;
    fl_setup u;
    fl_setup_options so;
    fl_trials *t = NULL;
    fl_diag d = {0};
    double best;
    open_setup(&u, &so, &t, 0.1);
    const size_t winner = grid(t, &u, NULL, &best);
    FL_CHECK(winner != SIZE_MAX, "no clock holds the bound: the case is none");
    static const double keeps[] = {0.5, 0.3, 0.1};
    for (uint64_t seed = 1; seed <= 12; seed++)
        for (size_t k = 0; k < 3; k++) {
            fl_search_result r;
            fl_search_sum sum;
            const fl_search_options how = {.keep = keeps[k], .seed = seed};
            FL_CHECK(fl_search_run(t, &u.o, &how, &r, &d) == FL_OK, "%s", d.message);
            FL_CHECK(score(t, &u, r.winner, NULL, &sum, &d) == FL_OK && !sum.violated && !r.sum.violated &&
                         r.sum.runs == 9,
                     "seed %d, keep %g: %s breaks the bound in %zu of %zu, though %s holds it", (int)seed, keeps[k],
                     u.spec[r.winner].label, sum.violated, sum.runs, u.spec[winner].label);
            FL_CHECK(r.trials <= r.whole, "seed %d: %zu of %zu trials", (int)seed, r.trials, r.whole);
            rounds_of_memory += r.rounds > 5;
        }
    FL_CHECK(rounds_of_memory > 0, "no order had anything to bring back");
    close_setup(&u, &so, t);
}

/* Every bound counts, not the slowdown alone: with a largest power only low clocks are left, with a least power high.
 */
static void test_promised(void) {
    fl_setup u;
    fl_setup_options so;
    fl_trials *t = NULL;
    fl_diag d = {0};
    double best;
    fl_search_result r;
    fl_search_sum sum;
    open_setup(&u, &so, &t, 0.5);
    const size_t unbounded = grid(t, &u, NULL, &best);
    FL_CHECK(fl_promise_parse("mean_power_w>=150", &u.promises, &u.o.bound, &d) == FL_OK, "%s", d.message);
    const size_t winner = grid(t, &u, NULL, &best);
    FL_CHECK(winner != SIZE_MAX && winner != unbounded, "the bound changes nothing: the case is none");
    FL_CHECK(fl_search_run(t, &u.o, &(fl_search_options){.keep = 0.5, .seed = 3}, &r, &d) == FL_OK &&
                 score(t, &u, r.winner, NULL, &sum, &d) == FL_OK && !sum.violated,
             "%s breaks a bound in %zu of %zu", u.spec[r.winner].label, sum.violated, sum.runs);
    close_setup(&u, &so, t);
}

/* Where no candidate holds the bounds, the winner is who breaks them on the least share of all pairs, not the
 * cheapest. */
static void test_none_holds(void) {
    fl_setup u;
    fl_setup_options so;
    fl_trials *t = NULL;
    fl_diag d = {0};
    open_setup(&u, &so, &t, 0.1);
    u.o.spec_count = 7; /* 600 to 1200 MHz: none holds 10 % on what is bound by the core */
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < u.o.spec_count; i++) {
        fl_search_sum sum;
        FL_CHECK(score(t, &u, i, NULL, &sum, &d) == FL_OK && sum.violated, "%zu holds it: no case", i);
        least = sum.violated < least ? sum.violated : least;
        most = sum.violated > most ? sum.violated : most;
    }
    FL_CHECK(least < most, "all break it on %zu pairs: the case is none", most);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        fl_search_result r;
        const fl_search_options how = {.keep = 0.5, .seed = seed};
        FL_CHECK(fl_search_run(t, &u.o, &how, &r, &d) == FL_OK && r.sum.runs == 9 && r.sum.violated == least,
                 "seed %d: %s breaks the bound on %zu of %zu, where %zu is the least", (int)seed,
                 u.spec[r.winner].label, r.sum.violated, r.sum.runs, least);
    }
    close_setup(&u, &so, t);
}

/* The check runs all candidates on a drawn part, names a better one where there is, and whether it holds everywhere. */
static void test_check(void) {
    fl_setup u;
    fl_setup_options so;
    fl_trials *t = NULL;
    fl_search_check c, again;
    fl_diag d = {0};
    double best;
    open_setup(&u, &so, &t, 0.1);
    const size_t winner = grid(t, &u, NULL, &best);
    FL_CHECK(fl_search_check_run(t, &u.o, NULL, winner, &c, &d) == FL_OK && c.pairs == 4 && c.of == 9 &&
                 c.compared == 10 && c.winner.runs == 4 && !c.winner.violated && c.held > 0 && c.held < 10,
             "%zu of %zu pairs, %zu compared, %zu held", c.pairs, c.of, c.compared, c.held);
    const size_t top = u.o.spec_count - 1; /* the highest clock holds all, and saves least */
    FL_CHECK(fl_search_check_run(t, &u.o, NULL, top, &c, &d) == FL_OK && c.best_spec != top && c.best_spec < 10 &&
                 c.best.ratio < c.winner.ratio && !c.best.violated && c.everywhere.runs == 9,
             "the worst passes as the best");
    u.o.threads = 1;
    FL_CHECK(fl_search_check_run(t, &u.o, NULL, top, &again, &d) == FL_OK && !memcmp(&c, &again, sizeof c),
             "depends on the threads");
    close_setup(&u, &so, t);
}

static void test_clean_up(void) { fl_temp_remove(); }

FL_SUITE("search", {"finds what the grid finds", test_finds}, {"tuning and scoring apart", test_apart},
         {"what is kept", test_keep}, {"policies for some", test_limited},
         {"what holds the bounds is found", test_feasible}, {"any bound", test_promised},
         {"where none holds", test_none_holds}, {"the check", test_check}, {"clean up", test_clean_up})
