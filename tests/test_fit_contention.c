#include "models/fit_contention.h"
#include "tests/support/sim_fixture.h"

/* A sweep as one would measure it: 2 to 8 copies of a kernel together at every clock, against one alone. */
static void test_recovers(void) {
    static const double gammas[] = {0, 0.05, 0.3, 1};
    for (size_t k = 0; k < sizeof gammas / sizeof *gammas; k++) {
        double asked[64], slowdown[64];
        size_t n = 0;
        for (int copies = 1; copies <= 8; copies++)
            for (int mhz = 500; mhz <= 1500; mhz += 500) {
                double alone_s = 0;
                for (int together = 0; together < 2; together++) {
                    fx_rig r;
                    fx_open(&r, 1);
                    r.spec.device[0].interference = gammas[k];
                    r.spec.device[0].default_sm_mhz = mhz;
                    uint32_t c = fx_class(&r, 0.5, 0.3, 0.4, 1, 1, 0.1);
                    for (int i = 0; i < (together ? copies : 1); i++)
                        fx_op(&r, fx_stream(&r, 0, i), 0, 100000000, c);
                    fx_finish(&r, 1);
                    fl_run_options o = {.w = r.w, .rates = r.rates, .spec = &r.spec, .facts = &r.facts};
                    fl_run_result out;
                    FX_MUST(fl_run(&o, &out, d));
                    if (together) {
                        asked[n] = copies * (double)fx_rates(&r, mhz, 800)->row[c].memory / FL_ROW_ONE;
                        slowdown[n++] = out.makespan_s / alone_s;
                    } else {
                        alone_s = out.makespan_s;
                    }
                    fl_run_result_free(&out);
                    fx_close(&r);
                }
            }
        double gamma = -1, rms = -1;
        FL_CHECK(fl_fit_interference(asked, slowdown, n, &gamma, &rms) == FL_MODEL_OK, "fits");
        FL_CHECK(fabs(gamma - gammas[k]) < 0.002 && rms < 0.002, "gamma %g, expected %g; rms %g", gamma, gammas[k],
                 rms);
    }
}

static void test_refuses(void) {
    double gamma = 7;
    FL_CHECK(fl_fit_interference((double[]){0.5, 1}, (double[]){1, 1}, 2, &gamma, NULL) == FL_MODEL_NO_FIT &&
                 gamma == 7,
             "nothing scarce");
    FL_CHECK(fl_fit_interference((double[]){2}, (double[]){0}, 1, &gamma, NULL) == FL_MODEL_INVALID, "no time");
    FL_CHECK(fl_fit_interference((double[]){2}, (double[]){(double)NAN}, 1, &gamma, NULL) == FL_MODEL_INVALID, "NaN");
    FL_CHECK(fl_fit_interference((double[]){2}, (double[]){1.8}, 1, &gamma, NULL) == FL_MODEL_OK && gamma == 0,
             "never a gain: %g", gamma);
}

/* By hand: D - 1 = 1 and 2, slowdown / D - 1 = 0.2 and 0.1, so gamma = (0.2 + 0.2) / 5 = 0.08; of the times 2.4 and 3.3
 * the law gives 2.16 and 3.48. What lies at D <= 1, however wrong, changes neither. */
static void test_residual(void) {
    static const double asked[] = {2, 0.5, 3, 1, 0.9, 0}, slowdown[] = {2.4, 7, 3.3, 5, 0.1, 1};
    const double expected = sqrt((0.1 * 0.1 + (3.48 / 3.3 - 1) * (3.48 / 3.3 - 1)) / 2);
    double gamma, rms;
    FL_CHECK(fl_fit_interference(asked, slowdown, 6, &gamma, &rms) == FL_MODEL_OK, "fits");
    FL_CHECK(fabs(gamma - 0.08) < 1e-12 && fabs(rms - expected) < 1e-12, "gamma %.12g, rms %.12g, expected %.12g",
             gamma, rms, expected);
    FL_CHECK(fl_fit_interference((double[]){1, (double)INFINITY}, (double[]){1, 2}, 2, &gamma, NULL) ==
                 FL_MODEL_INVALID,
             "no finite demand");
}

FL_SUITE("fit_contention", {"recovers what the engine was given", test_recovers}, {"refuses", test_refuses},
         {"what is left of the error", test_residual})
