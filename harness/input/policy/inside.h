/* What the files of harness/input/policy share. Other modules include the public header alone. */
#pragma once

/* Starts watching, once: from now on what this thread and later ones call is watched. */
void fl_plugin_watch_start(void);
/* The path of a plug-in that this thread is about to load; NULL: it is loaded. */
void fl_plugin_watch_loading(const char *path);
/* The path behind a policy's functions, for the line. Kept for the life of the program. */
void fl_plugin_watch_path(const char *path, const void *step);
