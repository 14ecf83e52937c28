/*
 * What FAB (Apostolaki, Vanbever and Ghobadi, Workshop on Buffer Sizing 2019) needs on the fast
 * path: how much each flow has sent since it was last idle. The first bytes of a flow have a high
 * threshold of their own; the levels of ndt_control.h are for the rest.
 *
 * A table of fixed size, open addressing: a flow may lie in NDT_FLOW_PROBES places, and every
 * packet looks at all of them, so that the cost is the same for each. The place of a flow that has
 * been idle for too long is free. A flow that finds no place counts as long; `overflows` counts its
 * packets.
 *
 * C99, no allocation, no library.
 */
#ifndef NDT_FLOWS_H
#define NDT_FLOWS_H

#include <stdint.h>
#include <string.h>

#include "ndt_control.h"

/* The table has 2^NDT_FLOW_BITS places of 24 bytes. Enough are some four times as many as flows
 * send a packet within the idle time. */
#ifndef NDT_FLOW_BITS
#define NDT_FLOW_BITS 12
#endif

/* Places that a flow may lie in. */
#ifndef NDT_FLOW_PROBES
#define NDT_FLOW_PROBES 8
#endif

#define NDT_FLOWS ((uint32_t)1 << NDT_FLOW_BITS)

#if NDT_FLOW_BITS < 1 || NDT_FLOW_BITS > 30 || NDT_FLOW_PROBES < 1 ||                              \
    NDT_FLOW_PROBES > (1 << NDT_FLOW_BITS)
#error "NDT_FLOW_BITS is 1 to 30, NDT_FLOW_PROBES 1 to the number of places"
#endif

struct ndt_flow {
    uint64_t last; /* time of the last packet */
    uint64_t sent; /* wire bytes since it was last idle; 0: never used */
    uint32_t key;
};

struct ndt_flows {
    uint64_t short_bytes; /* a flow that has sent as many wire bytes is long */
    uint64_t idle;        /* idle for longer, it starts afresh; in the unit of the clock */
    int short_shift;      /* the control factor of short flows is 2^short_shift */
    uint64_t overflows;   /* packets that found no place */
    struct ndt_flow table[NDT_FLOWS];
};

/* No flow has sent anything. The unit of idle is that of the times to come; short_shift is between
 * -20 and 20. */
static inline void ndt_flows_init(struct ndt_flows *flows, uint64_t short_bytes, uint64_t idle,
                                  int short_shift)
{
    memset(flows, 0, sizeof *flows);
    flows->short_bytes = short_bytes;
    flows->idle = idle;
    flows->short_shift = short_shift;
}

/* The first place of a flow (Knuth's multiplicative hashing). */
static inline uint32_t ndt_flow_place(uint32_t key)
{
    return (uint32_t)(key * 2654435769u) >> (32 - NDT_FLOW_BITS);
}

/*
 * Counts an arriving packet of the flow with this key, and says whether the flow is short with it.
 * Every arrival is to be counted exactly once, also one that is lost. The key names a flow in one
 * direction, such as a hash of its five-tuple; now does not go back.
 */
static inline int ndt_flow_is_short(struct ndt_flows *flows, uint32_t key, uint64_t bytes,
                                    uint64_t now)
{
    const uint32_t first = ndt_flow_place(key);
    struct ndt_flow *own = NULL, *vacant = NULL;
    uint32_t probe;

    for (probe = 0; probe < NDT_FLOW_PROBES; probe++) {
        struct ndt_flow *flow = &flows->table[(first + probe) & (NDT_FLOWS - 1u)];
        const int in_use = flow->sent > 0 && now - flow->last <= flows->idle;

        if (in_use && flow->key == key) {
            own = flow;
        } else if (!in_use && vacant == NULL) {
            vacant = flow;
        }
    }
    if (own == NULL) {
        if (vacant == NULL) {
            flows->overflows++;
            return 0;
        }
        own = vacant;
        own->key = key;
        own->sent = 0;
    }
    own->last = now;
    own->sent += bytes;
    return own->sent < flows->short_bytes;
}

/*
 * FAB's verdict about a packet that fits: the first bytes of a flow have their own factor, the rest
 * that of the port's level. is_short is what ndt_flow_is_short said; lengths are those before the
 * packet.
 */
static inline int ndt_flows_admit(const struct ndt_flows *flows, const struct ndt_control *control,
                                  uint32_t port, uint64_t queue, uint64_t free_bytes, int is_short)
{
    return is_short ? ndt_below_threshold(queue, free_bytes, flows->short_shift)
                    : ndt_control_admits(control, port, queue, free_bytes);
}

#endif
