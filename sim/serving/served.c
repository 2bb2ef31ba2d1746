#include "sim/serving/served.h"

#include <stdlib.h>

void fl_served_free(fl_served_result *r) {
    free(r->request);
    *r = (fl_served_result){0};
}
