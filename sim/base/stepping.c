#include "sim/base/stepping.h"

_Thread_local fl_stepping fl_stepping_now;
void (*fl_stepping_watch)(void);
