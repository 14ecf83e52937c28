/* Nanoseconds per decision of an exported network.

       bench OBSERVATIONS

   The file holds the number of ports and of observations (uint32 each, in this machine's order),
   then the observations: float, or bytes with NDT_BENCH_INT8. Prints the median over rounds. */
#define _POSIX_C_SOURCE 199309L

#ifdef NDT_BENCH_INT8
#include "ndt_int8.h"
typedef uint8_t input;
#define WORKSPACE struct ndt_int8_workspace
#define DECIDE ndt_int8_decide
#else
#include "ndt_f32.h"
typedef float input;
#define WORKSPACE struct ndt_f32_workspace
#define DECIDE ndt_f32_decide
#endif

/* A network with two outputs sets early drop too. */
#if NDT_OUTPUTS == 2
#define LEVELS(levels) levels[0], levels[1]
#else
#define LEVELS(levels) levels[0]
#endif

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 31 };

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **arguments)
{
    static WORKSPACE workspace;
    static uint8_t levels[2][NDT_MAX_PORTS];
    double rounds[ROUNDS];
    uint32_t sizes[2];
    unsigned long sum = 0;
    FILE *const file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (file == NULL || fread(sizes, sizeof sizes[0], 2, file) != 2) {
        fprintf(stderr, "usage: bench OBSERVATIONS\n");
        return 2;
    }
    const size_t width = (size_t)sizes[0] * NDT_HISTORY * NDT_FEATURES;
    input *const observations = malloc(sizes[1] * width * sizeof *observations);
    if (observations == NULL
        || fread(observations, width * sizeof *observations, sizes[1], file) != sizes[1]) {
        fprintf(stderr, "the file ends early\n");
        return 2;
    }
    fclose(file);
    for (int round = 0; round < ROUNDS; round++) {
        const double start = nanoseconds();
        for (uint32_t i = 0; i < sizes[1]; i++) {
            if (DECIDE(&workspace, observations + i * width, sizes[0], LEVELS(levels)) != NDT_OK) {
                return 1;
            }
            sum += levels[0][0];
        }
        rounds[round] = (nanoseconds() - start) / sizes[1];
    }
    qsort(rounds, ROUNDS, sizeof rounds[0], ascending);
    printf("%.1f %lu\n", rounds[ROUNDS / 2], sum);
    free(observations);
    return 0;
}
