/*
 * A histogram of whole numbers for percentiles, of constant size: 32 places for every power of two, so
 * that a percentile is at most 3 % too small.
 */
#ifndef NDT_HISTOGRAM_H
#define NDT_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS 5
#define HISTOGRAM_PLACES ((64 - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

struct histogram {
    uint64_t count, most;
    uint64_t places[HISTOGRAM_PLACES];
};

static inline uint32_t histogram_place(uint64_t value)
{
    uint32_t shift;

    if (value >> HISTOGRAM_BITS == 0) {
        return (uint32_t)value;
    }
    shift = 63u - (uint32_t)__builtin_clzll(value) - HISTOGRAM_BITS;
    return (shift << HISTOGRAM_BITS) + (uint32_t)(value >> shift);
}

/* The least value of a place. */
static inline uint64_t histogram_value(uint32_t place)
{
    uint32_t shift;

    if (place >> HISTOGRAM_BITS < 2) {
        return place;
    }
    shift = (place >> HISTOGRAM_BITS) - 1u;
    return (uint64_t)(place - (shift << HISTOGRAM_BITS)) << shift;
}

static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->places[histogram_place(value)]++;
    histogram->count++;
    if (value > histogram->most) {
        histogram->most = value;
    }
}

/* The value that so many of a thousand are not above; 0 without values. */
static inline uint64_t histogram_permille(const struct histogram *histogram, uint64_t permille)
{
    const uint64_t rank = (histogram->count * permille + 999u) / 1000u;
    uint64_t passed = 0;
    uint32_t place;

    for (place = 0; place < HISTOGRAM_PLACES; place++) {
        passed += histogram->places[place];
        if (passed >= rank && passed > 0) {
            return histogram_value(place);
        }
    }
    return 0;
}

#endif
