/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/thread_context_program.c - a program that plays the scene of
 * thread_context_scene.h, which it is linked with, or finds in a plug-in.
 *
 *     thread_context_... [PLUGIN] */
#include "tests/integration/thread_context_scene.h"

#include <stdio.h>
#include <sys/prctl.h>
#ifdef THREAD_CONTEXT_LOADS
#include <dlfcn.h>
#endif

int main(int count, char **arguments)
{
    /* Whoever reads it may be any process of this user. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
#ifdef THREAD_CONTEXT_LOADS
    void *plugin = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    thread_context_scene_function *scene = NULL;
    if (plugin)
        *(void **)&scene = dlsym(plugin, "thread_context_scene");
    if (!scene) {
        fprintf(stderr, "cannot load it: %s\n", count == 2 ? dlerror() : "no name");
        return 1;
    }
    return scene();
#else
    (void)arguments;
    return count == 1 ? thread_context_scene() : 2;
#endif
}
