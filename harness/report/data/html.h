/* Texts of a page. */
#pragma once

#include <stdio.h>

/* Text with & < > " escaped. */
void fl_html_text(FILE *f, const char *text);
/* The same for a policy's label, which may break after its punctuation. */
void fl_html_label(FILE *f, const char *label);
