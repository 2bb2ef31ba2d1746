#include "harness/report/data/html.h"

#include <string.h>

void fl_html_text(FILE *f, const char *text) {
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", f);
        else if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if (*text == '"')
            fputs("&quot;", f);
        else if ((unsigned char)*text >= 32 || *text == '\n')
            fputc(*text, f);
    }
}

void fl_html_label(FILE *f, const char *label) {
    char part[512];
    while (*label) {
        size_t n = strcspn(label, ":,=-");
        n += label[n] != 0;
        snprintf(part, sizeof part, "%.*s", (int)n, label);
        fl_html_text(f, part);
        label += n;
        if (*label)
            fputs("<wbr>", f);
    }
}
