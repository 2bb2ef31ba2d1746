#include "harness/commands.h"
#include "harness/output.h"

#include <stdlib.h>
#include <string.h>

static const fl_command_help help = {
    "platforms", "[NAME | FILE.json]",
    "Lists the platforms, or says everything about one: its values, each with its source.",
    "A platform file of your own is given by its path wherever a platform is asked for."};

static void print_ladder(const char *name, const int32_t *mhz, uint32_t count) {
    if (!count)
        return;
    printf("  %s: %d to %d MHz, %u clock%s:", name, mhz[0], mhz[count - 1], count, count == 1 ? "" : "s");
    for (uint32_t i = 0; i < count; i++)
        if (count <= 16 || i < 6 || i + 3 >= count)
            printf(" %d", mhz[i]);
        else if (i == 6)
            printf(" ...");
    putchar('\n');
}

static void print_one(const fl_platform *p) {
    printf("%s: %s\n%u GPU%s\n", p->name, p->title, p->node.gpu_count, p->node.gpu_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < p->node.device_count; i++) {
        const fl_device *dev = &p->node.device[i];
        printf("\n%s\n", dev->name);
        print_ladder("SM", dev->sm_mhz, dev->sm_count);
        print_ladder("memory", dev->mem_mhz, dev->mem_count);
        printf("  default %g MHz, memory %g MHz; TDP %g W\n", dev->default_sm_mhz, dev->default_mem_mhz, dev->tdp_w);
        printf("  power: A %g, A0 %g, B %g, B0 %g, C %g W; no context %g W; sharpness %g\n", dev->a_w, dev->a0_w,
               dev->b_w, dev->b0_w[dev->mem_count - 1], dev->c_w, dev->no_context_w, dev->sharpness);
    }
    printf("\nsources:\n");
    fl_grid g = {.columns = 2};
    for (size_t i = 0; i < p->note_count; i++) {
        fl_grid_add(&g, "  %s", p->note[i].key);
        fl_grid_add(&g, "%s", p->note[i].text);
    }
    fl_grid_print(&g, 2, stdout);
    fl_grid_free(&g);
    if (p->policy_count)
        printf("\ndefaults for policies:\n");
    for (size_t i = 0; i < p->policy_count; i++) {
        printf("  %s:", p->policy[i].policy);
        for (size_t k = 0; k < p->policy[i].count; k++)
            printf(" %s=%s", p->policy[i].setting[k].name, p->policy[i].setting[k].text);
        putchar('\n');
    }
}

int fl_cmd_platforms(int argc, char **argv) {
    fl_texts rest = {0};
    int status = FL_EXIT_OK;
    if (!fl_begin(argc, argv, &help, NULL, 0, &rest, &status))
        return status;
    fl_diag d = {0};
    fl_platform p = {0};
    fl_status s = rest.count > 1 ? fl_fail(&d, FL_BAD_INPUT, NULL, 0, 0, "expected one platform at most") : FL_OK;
    if (!s && rest.count) {
        s = fl_platform_open(rest.item[0], 0, &p, &d);
        if (!s)
            print_one(&p);
        fl_platform_free(&p);
    } else if (!s) {
        char **name = NULL;
        size_t count = 0;
        s = fl_platform_list(&name, &count, &d);
        for (size_t i = 0; !s && i < count; i++) {
            s = fl_platform_open(name[i], 0, &p, &d);
            if (!s)
                printf("%-16s %s\n", name[i], p.title);
            fl_platform_free(&p);
        }
        for (size_t i = 0; i < count; i++)
            free(name[i]);
        free(name);
    }
    if (s)
        status = fl_report("platforms", &d);
    fl_texts_free(&rest);
    return status;
}
