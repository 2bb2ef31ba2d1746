/* What the files of harness/input/policy share. Other modules include the public header alone. */
#pragma once

/* Starts the watch over plug-ins, once, for this thread and for later ones. */
void fl_plugin_watch_start(void);
/* States the path of the plug-in that this thread is about to load; NULL: loading is over. */
void fl_plugin_watch_loading(const char *path);
/* States the path of a policy's functions, for the message. The path is kept for the life of the program. */
void fl_plugin_watch_path(const char *path, const void *step);
