/* Sweeps of power limits alone: nobody recorded the SM clock under a limit. It is latent: models/cap.h's fl_cap_latent
 * takes it from a power law of the chip, which a platform or an earlier fit must give. Clocks are relative then, and
 * the limit is the axis of what is asked and told. */
#ifndef FL_FIT_LATENT_H
#define FL_FIT_LATENT_H

#include "harness/fit/fit_capped.h"

/* Gives all rows of a latent sweep their clocks, by the law: they are rows like others then, for a fit of the device.
 * Rows beyond the clocks that fl_cap_latent tells are left out. FL_BAD_INPUT where none is left. */
fl_status fl_fit_latent_fill(fl_fit_rows *r, const fl_chip *law, fl_diag *d);

/* Predicts entity e's rows under the limits that `at` does not name ("ends", "all", "caps=150,250") from those that it
 * does: mean power = crest times the limit, crest by lines through the known limits, at most the power under the
 * highest known one where that does not bind; time by the device's law at the latent clock of that power. Errors go to
 * score->capped; a row that was looked at is marked, crest is NAN. FL_BAD_INPUT where `at` names fewer than two limits
 * of it. */
fl_status fl_fit_latent_run(const fl_chip *chip, const fl_fit_rows *r, size_t e, const fl_fit_at *at,
                            fl_fit_score *score, fl_fit_capped_result *out, fl_chip_load *load, fl_diag *d);

#endif
