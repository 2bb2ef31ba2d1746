/* Sweeps that have only power limits: no one recorded the SM clock under a limit. The clock is latent. fl_cap_latent
 * (models/chip/cap.h) derives it from a power law of the chip, which a platform or an earlier fit must supply. Clocks are
 * then relative, and questions and answers name limits. */
#pragma once

#include "harness/fit/chip/capped.h"

/* Gives all rows of a latent sweep their clocks by the law; a fit of the device can then use them like any other rows.
 * Rows beyond the range of fl_cap_latent are left out. FL_BAD_INPUT where none is left. */
fl_status fl_fit_latent_fill(fl_fit_rows *r, const fl_chip *law, fl_diag *d);

/* Predicts entity e's rows under the limits that `at` does not name ("ends", "all", "caps=150,250") from those that it
 * names. Mean power is crest times the limit, with the crest linear between the known limits, and at most the power
 * under the highest known limit where that does not bind. Time follows from the device's law at the latent clock of
 * that power. Errors go to score->capped; a row that the prediction used is marked, and crest is NAN. FL_BAD_INPUT
 * where `at` names fewer than two limits of the entity. */
fl_status fl_fit_latent_run(const fl_chip *chip, const fl_fit_rows *r, size_t e, const fl_fit_at *at,
                            fl_fit_score *score, fl_fit_capped_result *out, fl_chip_load *load, fl_diag *d);
