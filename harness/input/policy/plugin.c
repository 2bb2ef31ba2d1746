#include "harness/input/policy/plugin.h"

#include "harness/input/policy/plugin_watch.h"
#include "policies/registry/registry.h"
#include "sim/instance/instance.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOL "foldline_policy"

enum { NAME_SIZE = 64 };

/* What every host reads of a descriptor without asking again. */
static fl_status check_rows(const char *path, const fl_policy *p, fl_diag *d) {
    if (!p->name || !*p->name)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the policy has no name, expected .name in its descriptor");
    if (strlen(p->name) > NAME_SIZE || strcspn(p->name, " :,\t\r\n\"") != strlen(p->name))
        return fl_fail(
            d, FL_BAD_INPUT, path, 0, 0,
            "the policy's name is invalid, expected up to %d characters without blank, comma, colon or quote",
            NAME_SIZE);
    if (!p->init || !p->step)
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "policy %s has no %s, expected a function in its descriptor",
                       p->name, p->init ? "step" : "init");
    if ((p->param_count && !p->param) || (p->probe_count && !p->probe))
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "policy %s counts %s but has no rows for them", p->name,
                       p->param_count && !p->param ? "parameters" : "probes");
    for (uint32_t i = 0; i < p->param_count; i++)
        if (!p->param[i].name || !p->param[i].unit || !p->param[i].help)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "policy %s: parameter %u has no name, unit or help", p->name,
                           i);
    for (uint32_t i = 0; i < p->probe_count; i++)
        if (!p->probe[i].name || !p->probe[i].unit || !p->probe[i].help)
            return fl_fail(d, FL_BAD_INPUT, path, 0, 0, "policy %s: probe %u has no name, unit or help", p->name, i);
    return FL_OK;
}

static fl_status open_plugin(const char *path, const fl_policy **policy, fl_diag *d) {
    char difference[512];
    /* The loader searches the system for a name without a slash; ours is a file. */
    char *here = NULL;
    if (!strchr(path, '/')) {
        size_t size = strlen(path) + sizeof "./";
        if (!(here = malloc(size)))
            return fl_no_memory(d, NULL);
        memcpy(here, "./", 2);
        memcpy(here + 2, path, size - 2);
    }
    fl_plugin_watch_start();
    fl_plugin_watch_loading(path);
    void *library = dlopen(here ? here : path, RTLD_NOW | RTLD_LOCAL);
    fl_plugin_watch_loading(NULL);
    free(here);
    if (!library)
        return fl_refuse(d, "cannot load policy plug-in: %s", dlerror());
    const fl_policy *found = dlsym(library, SYMBOL);
    if (!found) {
        dlclose(library);
        return fl_fail(d, FL_BAD_INPUT, path, 0, 0,
                       "no symbol '" SYMBOL "', expected a policy compiled with -DPOLICY_PLUGIN");
    }
    if (fl_abi_difference(&found->abi, difference, sizeof difference)) {
        fl_status status =
            fl_fail(d, FL_BAD_INPUT, path, 0, 0, "the plug-in was built against another contract: %s", difference);
        dlclose(library);
        return status;
    }
    const fl_status s = check_rows(path, found, d);
    if (s) {
        dlclose(library);
        return s;
    }
    const void *step;
    memcpy(&step, &found->step, sizeof step); /* a function is no object */
    fl_plugin_watch_path(path, step);
    *policy = found;
    return FL_OK;
}

static fl_status unknown(const char *name, fl_diag *d) {
    const char **names = calloc(fl_policies_count + 1, sizeof *names);
    if (!names)
        return fl_no_memory(d, NULL);
    for (size_t i = 0; i < fl_policies_count; i++)
        names[i] = fl_policies[i]->name;
    const char *near = fl_nearest(name, names, fl_policies_count);
    free(names);
    return fl_refuse(d, "unknown policy '%s'%s%s%s", name, near ? ", did you mean '" : "", near ? near : "",
                     near ? "'?" : ", expected a built-in or the path of a .so");
}

fl_status fl_policy_open(const char *name, const fl_policy **policy, fl_diag *d) {
    *policy = NULL;
    for (size_t i = 0; i < fl_policies_count; i++)
        if (strcmp(fl_policies[i]->name, name) == 0) {
            *policy = fl_policies[i];
            return FL_OK;
        }
    size_t length = strlen(name);
    bool so = length > 3 && strcmp(name + length - 3, ".so") == 0;
    if (so && (strchr(name, '/') || access(name, F_OK) == 0))
        return open_plugin(name, policy, d);
    return unknown(name, d);
}
