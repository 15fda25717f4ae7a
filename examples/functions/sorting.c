/* SPDX-License-Identifier: Apache-2.0 */
/* examples/functions/sorting.c - where does the time go? No line of the work is about
 * tracing; it is compiled with -finstrument-functions and linked with otel-functions.
 *
 *     cc -finstrument-functions sorting.c -o sorting \
 *         $(pkg-config --cflags --libs otel-functions otel)
 *     OTEL_TRACES_EXPORTER=console ./sorting
 *
 * What took less than 10 microseconds has no span (OTEL_C_FUNCTIONS_MIN_DURATION), so of the
 * thousands of calls the ones remain that matter. */
#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 3000 };

static void swap(int *a, int *b)
{
    const int c = *a;
    *a = *b;
    *b = c;
}

static int *partition(int *from, int *to)
{
    int *boundary = from;
    const int pivot = *to;
    for (int *at = from; at < to; at++)
        if (*at < pivot)
            swap(at, boundary++);
    swap(boundary, to);
    return boundary;
}

static void quicksort(int *from, int *to)
{
    if (from >= to)
        return;
    int *middle = partition(from, to);
    quicksort(from, middle - 1);
    quicksort(middle + 1, to);
}

static int *read_numbers(void)
{
    int *numbers = malloc(COUNT * sizeof *numbers);
    unsigned number = 1;
    for (int i = 0; numbers != NULL && i < COUNT; i++) {
        number = number * 1664525 + 1013904223;
        numbers[i] = (int)(number >> 8);
    }
    return numbers;
}

static void sort_numbers(void)
{
    int *numbers = read_numbers();
    if (numbers == NULL)
        return;
    quicksort(numbers, numbers + COUNT - 1);
    printf("the smallest is %d\n", numbers[0]);
    free(numbers);
}

int main(void)
{
    /* The only two lines of tracing. Functions that began before have no span. */
    if (otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "sorting"))) !=
        OTEL_OK)
        return 1;
    sort_numbers();
    return otel_shutdown(5000) != OTEL_OK;
}
