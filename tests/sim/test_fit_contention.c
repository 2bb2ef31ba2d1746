/* The interference of kernels that share bandwidth: out of a sweep of kernels run together comes what the engine was
 * given. */
#include "tests/support/sim_fixture.h"

/* One point is a mix that bandwidth holds back: asked[i] = D, the sum of the bandwidth that its kernels ask for with
 * the SMs they have, 1 = all there is; slowdown[i] = its time together over its time at full speed. Without
 * interference the slowdown is D; with it D (1 + gamma (D - 1)), the law of fl_shares_capacity. Least squares of
 * slowdown / D - 1 on D - 1, through the origin. Points with D <= 1 say nothing and are left out.
 *
 * *gamma: >= 0. *rms: of the relative error in time that is left; may be NULL. FL_MODEL_NO_FIT where no point has D >
 * 1, FL_MODEL_INVALID for a slowdown that is not above 0 or not finite. */
static fl_model_status fit_interference(const double *asked, const double *slowdown, size_t count, double *gamma,
                                        double *rms) {
    double xx = 0, xy = 0, squares = 0;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(asked[i]) || !(slowdown[i] > 0) || !isfinite(slowdown[i]))
            return FL_MODEL_INVALID;
        if (asked[i] <= 1)
            continue;
        const double x = asked[i] - 1;
        xx += x * x;
        xy += x * (slowdown[i] / asked[i] - 1);
        used++;
    }
    if (!used)
        return FL_MODEL_NO_FIT;
    const double g = fmax(0, xy / xx);
    for (size_t i = 0; i < count; i++)
        if (asked[i] > 1) {
            const double error = asked[i] * (1 + g * (asked[i] - 1)) / slowdown[i] - 1;
            squares += error * error;
        }
    *gamma = g;
    if (rms)
        *rms = sqrt(squares / (double)used);
    return FL_MODEL_OK;
}

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
        FL_CHECK(fit_interference(asked, slowdown, n, &gamma, &rms) == FL_MODEL_OK, "fits");
        FL_CHECK(fabs(gamma - gammas[k]) < 0.002 && rms < 0.002, "gamma %g, expected %g; rms %g", gamma, gammas[k],
                 rms);
    }
}

static void test_refuses(void) {
    double gamma = 7;
    FL_CHECK(fit_interference((double[]){0.5, 1}, (double[]){1, 1}, 2, &gamma, NULL) == FL_MODEL_NO_FIT && gamma == 7,
             "nothing scarce");
    FL_CHECK(fit_interference((double[]){2}, (double[]){0}, 1, &gamma, NULL) == FL_MODEL_INVALID, "no time");
    FL_CHECK(fit_interference((double[]){2}, (double[]){(double)NAN}, 1, &gamma, NULL) == FL_MODEL_INVALID, "NaN");
    FL_CHECK(fit_interference((double[]){2}, (double[]){1.8}, 1, &gamma, NULL) == FL_MODEL_OK && gamma == 0,
             "never a gain: %g", gamma);
}

/* By hand: D - 1 = 1 and 2, slowdown / D - 1 = 0.2 and 0.1, so gamma = (0.2 + 0.2) / 5 = 0.08; of the times 2.4 and 3.3
 * the law gives 2.16 and 3.48. What lies at D <= 1, however wrong, changes neither. */
static void test_residual(void) {
    static const double asked[] = {2, 0.5, 3, 1, 0.9, 0}, slowdown[] = {2.4, 7, 3.3, 5, 0.1, 1};
    const double expected = sqrt((0.1 * 0.1 + (3.48 / 3.3 - 1) * (3.48 / 3.3 - 1)) / 2);
    double gamma, rms;
    FL_CHECK(fit_interference(asked, slowdown, 6, &gamma, &rms) == FL_MODEL_OK, "fits");
    FL_CHECK(fabs(gamma - 0.08) < 1e-12 && fabs(rms - expected) < 1e-12, "gamma %.12g, rms %.12g, expected %.12g",
             gamma, rms, expected);
    FL_CHECK(fit_interference((double[]){1, (double)INFINITY}, (double[]){1, 2}, 2, &gamma, NULL) == FL_MODEL_INVALID,
             "no finite demand");
}

FL_SUITE("fit_contention", {"recovers what the engine was given", test_recovers}, {"refuses", test_refuses},
         {"what is left of the error", test_residual})
