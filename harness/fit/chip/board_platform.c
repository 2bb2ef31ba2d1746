#include "harness/fit/chip/board_platform.h"

#include "harness/base/json/json_out.h"
#include "harness/fit/chip/facts_device.h"

#include <stdlib.h>

fl_status fl_fit_board_platform(const char *board, const char *base, const char *path, fl_diag *d) {
    fl_fit_facts facts = {0};
    const fl_fit_rows none = {0};
    fl_fit_advice advice;
    cJSON *root = NULL;
    fl_chip *chip = calloc(1, sizeof *chip);
    fl_status s = chip ? fl_fit_facts_read(board, &facts, d) : fl_no_memory(d, NULL);
    if (!s)
        s = fl_fit_facts_chip(&facts, NULL, NULL, chip, d);
    if (!s)
        s = fl_fit_advise(chip, &none, 1, FL_PROBES_MAX, &advice, d);
    if (!s)
        s = fl_fit_facts_device(&facts, chip, &advice, base, &root, d);
    if (!s)
        s = fl_json_write(path, root, d);
    cJSON_Delete(root);
    fl_fit_facts_free(&facts);
    free(chip);
    return s;
}
