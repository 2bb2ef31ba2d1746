/* What the files of harness/live/vendor share. Other modules include the public header alone. */
#pragma once

#include "traces/io/io.h"

/* Opens the checked folder itself, close-on-exec. *fd = -1 and FL_OK where it is missing. */
fl_status fl_folder_open(const char *folder, int *fd, fl_diag *d);
