#include "models/chip/predict.h"
#include "models/chip/parts.h"

#include <math.h>

fl_model_status fl_chip_predict(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                fl_chip_load *load) {
    return fl_chip_predict_slopes(chip, known, known_count, asked, asked_count, guess, load, NULL);
}

fl_model_status fl_chip_predict_slopes(const fl_chip *chip, const fl_chip_row *known, size_t known_count,
                                       const fl_chip_row *asked, size_t asked_count, fl_chip_guess *guess,
                                       fl_chip_load *load, double *slope) {
    fl_chip_load own = {0};
    if (known_count == 0)
        return FL_MODEL_INVALID;
    for (size_t i = 0; i < known_count; i++)
        if (!fl_chip_row_is_sound(&known[i]))
            return FL_MODEL_INVALID;
    fl_model_status s = fl_chip_predict_time(chip, known, known_count, asked, asked_count, guess, &own);
    for (size_t j = 0; j < asked_count; j++)
        guess[j].power_w = guess[j].power_sd_pct = NAN;
    for (size_t j = 0; slope && j < asked_count; j++)
        slope[j] = NAN;
    if (s == FL_MODEL_OK && chip->has_power)
        s = fl_chip_predict_power(chip, known, known_count, asked, asked_count, guess, &own, slope);
    if (s == FL_MODEL_OK && load)
        *load = own;
    return s;
}
