/* Percentiles of histogram.h next to those of the sorted values. Exit code 1 where they differ by more
 * than a place is wide. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "histogram.h"

#define VALUES 10000u

static struct histogram histogram;
static uint64_t values[VALUES];

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

int main(void)
{
    static const uint64_t shares[] = { 1, 10, 500, 990, 999, 1000 };
    uint64_t state = 1;
    uint32_t number;
    int wrong = histogram_permille(&histogram, 500) != 0;

    for (number = 0; number < VALUES; number++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        /* Of every size, from one bit to all. */
        values[number] = state >> (state >> 33) % 64u;
        histogram_add(&histogram, values[number]);
        wrong |= histogram_value(histogram_place(values[number])) > values[number];
        wrong |= histogram_place(histogram_value(histogram_place(values[number]))) !=
                 histogram_place(values[number]);
    }
    qsort(values, VALUES, sizeof values[0], ascending);
    for (number = 0; number < sizeof shares / sizeof shares[0]; number++) {
        const uint64_t exact = values[(VALUES * shares[number] + 999u) / 1000u - 1u];
        const uint64_t found = histogram_permille(&histogram, shares[number]);

        if (found > exact || exact - found > exact / 32u) {
            printf("of 1000 values %" PRIu64 " are not above %" PRIu64 ", and %" PRIu64
                   " in the histogram\n",
                   shares[number], exact, found);
            wrong = 1;
        }
    }
    wrong |= histogram.most != values[VALUES - 1u] || histogram.count != VALUES;
    printf("%s\n", wrong ? "the histogram is wrong" : "percentiles agree");
    return wrong;
}
