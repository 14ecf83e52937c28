/*
 * Early drop with regular spacing, for networks that set a level of it on every port besides alpha: of
 * the packets that find min_bytes or more in their queue, one in a gap is lost, where a gap is a whole
 * number drawn uniformly from 1 to what the port's level says (Floyd and Jacobson, "Random early
 * detection gateways for congestion avoidance", IEEE/ACM ToN 1993, section VII, method 2, with one
 * probability). A sender needs to lose one packet to slow down: a flow that has lost one, to whomever,
 * is spared for some time from that loss on. Behind FAB the first bytes of a flow are spared too.
 *
 * Fast path, per packet that was admitted: ndt_early_drops, a counter per port. Per lost packet:
 * ndt_early_lost. Slow path: ndt_early_decide in the place of ndt_control_decide, and ndt_early_apply
 * behind ndt_control_apply.
 *
 * From the front (Lakshman, Neidhardt and Ott, INFOCOM 1996): with ndt_early_from_front the packet that
 * is lost is the first one of its flow that waits, when it comes to the head of its queue, and only where
 * NDT_EARLY_FOLLOWERS more wait behind it, whose duplicate acknowledgements tell the sender of the loss
 * (RFC 5681 section 3.2). Fast path besides: ndt_early_enqueued and ndt_early_leaves for every packet,
 * a counter per flow and queue that it waits in; ndt_early_expelled where packets are pushed out. A sender that is no faster
 * than its port never has so many waiting, however large its window: with patience a drop that has been due
 * for so many gaps falls on the packet that arrives.
 *
 * A gap needs one random number of 64 bits (xoshiro256++, Blackman and Vigna 2019) and a shift, as
 * gaps are powers of two.
 *
 * Flows that have lost a packet recently are in a table of fixed size, open addressing: a flow may lie in
 * NDT_LOSS_PROBES places, and a place is free again when its flow's time is over. A flow that finds no
 * place is not spared; `overflows` counts its losses. While that is 0 the table is exact. What waits of
 * every flow is in another such table; of a flow that finds no place there no packet is lost early, and
 * `uncounted` counts its packets.
 *
 * C99, no allocation, no library but memset and memcpy.
 */
#ifndef NDT_EARLY_H
#define NDT_EARLY_H

#include <stdint.h>
#include <string.h>

#include "ndt_control.h"

/* The longest gaps by level, packets; 0: none. The header of an exported network has them. Where it defines
 * NDT_EARLY_GAP_BYTES too, they are multiples of the shortest gap of the switch, ndt_early_shortest. */
#ifndef NDT_EARLY_GAPS
#define NDT_EARLY_LEVELS 8
#define NDT_EARLY_GAPS { 0, 1024, 512, 256, 128, 64, 32, 16 }
#endif

/* The table has 2^NDT_LOSS_BITS places of 16 bytes. Enough are some four times as many as flows lose
 * a packet within the time that they are spared for. */
#ifndef NDT_LOSS_BITS
#define NDT_LOSS_BITS 10
#endif

/* Places that a flow may lie in. */
#ifndef NDT_LOSS_PROBES
#define NDT_LOSS_PROBES 8
#endif

/* The table of waiting flows has 2^NDT_WAITING_BITS places of 12 bytes. Enough are some four times as many
 * as flows have a packet in the switch at a time. A flow takes a place for every queue that it waits in. */
#ifndef NDT_WAITING_BITS
#define NDT_WAITING_BITS 10
#endif

/* Places that a waiting flow may lie in. */
#ifndef NDT_WAITING_PROBES
#define NDT_WAITING_PROBES 8
#endif

/* Packets of a flow that have to wait behind one that is lost from the front. */
#define NDT_EARLY_FOLLOWERS 3u

#define NDT_LOSSES ((uint32_t)1 << NDT_LOSS_BITS)
#define NDT_WAITINGS ((uint32_t)1 << NDT_WAITING_BITS)

#if NDT_LOSS_BITS < 1 || NDT_LOSS_BITS > 30 || NDT_LOSS_PROBES < 1 ||                              \
    NDT_LOSS_PROBES > (1 << NDT_LOSS_BITS)
#error "NDT_LOSS_BITS is 1 to 30, NDT_LOSS_PROBES 1 to the number of places"
#endif

#if NDT_WAITING_BITS < 1 || NDT_WAITING_BITS > 30 || NDT_WAITING_PROBES < 1 ||                     \
    NDT_WAITING_PROBES > (1 << NDT_WAITING_BITS)
#error "NDT_WAITING_BITS is 1 to 30, NDT_WAITING_PROBES 1 to the number of places"
#endif

struct ndt_loss {
    uint64_t first; /* when the flow lost the packet that it is spared for */
    uint32_t key;
    uint32_t used; /* 0: never */
};

/* Waiting packets of a flow in a queue. */
struct ndt_waiting {
    uint32_t key;
    uint32_t packets; /* 0: the place is free */
    uint16_t queue;
    uint16_t chosen; /* whether the first is lost when it comes to the head */
};

struct ndt_early {
    uint32_t ports;
    int spare;          /* whether any packet is spared */
    int from_front;     /* whether packets are lost at the head of their queue */
    uint32_t shortest;  /* what gaps are multiples of, packets; right from the first decision on */
    uint32_t patience;  /* for how many gaps a drop stays due before it falls on what arrives; 0: for ever */
    uint64_t min_bytes; /* queue length from which packets are dropped */
    uint64_t grace;     /* for how long a flow is spared; in the unit of the clock */
    uint64_t overflows; /* losses whose flow found no place */
    uint64_t uncounted; /* packets that wait and whose flow found no place */
    uint8_t levels[NDT_MAX_PORTS];  /* in force */
    uint8_t pending[NDT_MAX_PORTS]; /* decided, not in force yet */
    /* Packets up to and with the next that is dropped; 0 while none is drawn. */
    uint32_t left[NDT_MAX_PORTS];
    uint32_t passed[NDT_MAX_PORTS];    /* packets that have left the due drop to the next */
    uint64_t random[NDT_MAX_PORTS][4]; /* the states of the ports' generators */
    struct ndt_loss losses[NDT_LOSSES];
    struct ndt_waiting waiting[NDT_WAITINGS]; /* only from the front */
};

/* Verdict of early drop about a packet that arrives. */
enum ndt_early_verdict { NDT_EARLY_PASS, NDT_EARLY_DROP, NDT_EARLY_MARK };

/* Decides as ndt_decide_fn does, and fills the levels of early drop too, each below
 * NDT_EARLY_LEVELS. ndt_int8_decide behind a workspace is one, where NDT_OUTPUTS is 2. */
typedef int (*ndt_decide_both_fn)(void *user, const uint8_t *codes, uint32_t ports,
                                  uint8_t *levels, uint8_t *early);

/* ---- random numbers -------------------------------------------------------------------------- */

static inline uint64_t ndt_rotated(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* The next number of xoshiro256++. */
static inline uint64_t ndt_random(uint64_t state[4])
{
    const uint64_t result = ndt_rotated(state[0] + state[3], 23) + state[0];
    const uint64_t shifted = state[1] << 17;

    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = ndt_rotated(state[3], 45);
    return result;
}

/* The next number of SplitMix64 (Steele, Lea and Flood 2014), which fills states. */
static inline uint64_t ndt_split_mix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A whole number from 1 to gap, a power of two: the highest bits of a number. */
static inline uint32_t ndt_early_draw(uint64_t state[4], uint32_t gap)
{
    const uint64_t number = ndt_random(state);
    int bits = 0;

    while (gap >> bits > 1) {
        bits++;
    }
    return bits == 0 ? 1 : 1 + (uint32_t)(number >> (64 - bits));
}

/* ---- set up ---------------------------------------------------------------------------------- */

/* Returns the gap of which the others are multiples in a switch with so much buffer, packets. */
static inline uint32_t ndt_early_shortest(uint64_t buffer_bytes)
{
#ifdef NDT_EARLY_GAP_BYTES
    uint32_t shortest = 2;

    while (shortest < UINT32_C(1) << 20 &&
           buffer_bytes / NDT_EARLY_GAP_BYTES >= UINT64_C(2) * shortest) {
        shortest *= 2;
    }
    return shortest;
#else
    (void)buffer_bytes;
    return 1;
#endif
}

/* The longest gap of a level where the shortest is so long, packets. */
static inline uint32_t ndt_early_gap(uint32_t shortest, uint8_t level)
{
    static const uint32_t gaps[NDT_EARLY_LEVELS] = NDT_EARLY_GAPS;

    return level < NDT_EARLY_LEVELS ? gaps[level] * shortest : 0;
}

/*
 * No early drop on any port, and no loss so far. The unit of grace is that of the times to come. The
 * ports' random numbers follow from seed.
 *
 * NDT_CONTROL_ERROR_PORTS: ports is 0 or above NDT_MAX_PORTS. NDT_CONTROL_ERROR_SWITCH: a gap is no
 * power of two. After an error there are no ports, and nothing is dropped.
 */
static inline int ndt_early_init(struct ndt_early *early, uint32_t ports, uint64_t min_bytes,
                                 uint64_t grace, int spare, uint64_t seed)
{
    uint32_t port;
    uint8_t level;
    int word;

    memset(early, 0, sizeof *early);
    if (ports == 0 || ports > NDT_MAX_PORTS) {
        return NDT_CONTROL_ERROR_PORTS;
    }
    for (level = 0; level < NDT_EARLY_LEVELS; level++) {
        const uint32_t gap = ndt_early_gap(1, level);

        if ((gap & (gap - 1u)) != 0) {
            return NDT_CONTROL_ERROR_SWITCH;
        }
    }
    early->ports = ports;
    early->shortest = ndt_early_shortest(0);
    early->min_bytes = min_bytes;
    early->grace = grace;
    early->spare = spare;
    for (port = 0; port < ports; port++) {
        for (word = 0; word < 4; word++) {
            early->random[port][word] = ndt_split_mix(&seed);
        }
    }
    return NDT_CONTROL_OK;
}

/* Packets are lost from the front of their queues; with a patience above 0, those that arrive too. To be called
 * behind ndt_early_init, before any packet. */
static inline void ndt_early_from_front(struct ndt_early *early, uint32_t patience)
{
    early->from_front = 1;
    early->patience = patience;
}

/* ---- waiting flows --------------------------------------------------------------------------- */

/* Below, queue is the number of a packet's queue in the switch: its port where that has one queue. */

/* The place of a flow that has packets in a queue, or NULL. With `vacant`, one that is free is found
 * where the flow has none. */
static inline struct ndt_waiting *ndt_waiting_of(struct ndt_early *early, uint16_t queue,
                                                 uint32_t key, int vacant)
{
    const uint32_t mixed = (key + queue * 2246822519u) * 2654435769u;
    const uint32_t first = mixed >> (32 - NDT_WAITING_BITS);
    struct ndt_waiting *free_place = NULL;
    uint32_t probe;

    for (probe = 0; probe < NDT_WAITING_PROBES; probe++) {
        struct ndt_waiting *flow = &early->waiting[(first + probe) & (NDT_WAITINGS - 1u)];

        if (flow->packets > 0 && flow->key == key && flow->queue == queue) {
            return flow;
        }
        if (flow->packets == 0 && free_place == NULL) {
            free_place = flow;
        }
    }
    return vacant ? free_place : NULL;
}

/* Returns 1 if the flow's first packet in a queue may be chosen when one more is enqueued there. */
static inline int ndt_early_may_choose(struct ndt_early *early, uint16_t queue, uint32_t key)
{
    const struct ndt_waiting *flow = ndt_waiting_of(early, queue, key, 0);

    return flow != NULL && !flow->chosen && flow->packets >= NDT_EARLY_FOLLOWERS;
}

/* A packet of a flow was enqueued. */
static inline void ndt_early_enqueued(struct ndt_early *early, uint16_t queue, uint32_t key)
{
    struct ndt_waiting *flow;

    if (!early->from_front) {
        return;
    }
    flow = ndt_waiting_of(early, queue, key, 1);
    if (flow == NULL) {
        early->uncounted++;
        return;
    }
    if (flow->packets == 0) {
        flow->key = key;
        flow->queue = queue;
        flow->chosen = 0;
    }
    flow->packets++;
}

/* A packet of a flow was pushed out. */
static inline void ndt_early_expelled(struct ndt_early *early, uint16_t queue, uint32_t key)
{
    struct ndt_waiting *flow = early->from_front ? ndt_waiting_of(early, queue, key, 0) : NULL;

    if (flow != NULL) {
        flow->packets--;
    }
}

/*
 * A packet of a flow comes to the head of its queue. Whether it is lost instead of sent; the next one then
 * comes to the head. Of a flow the packets of a queue come in the order in which they were enqueued. A packet that is
 * lost so was admitted before: ndt_early_lost and ndt_control_pushed_out count it.
 */
static inline int ndt_early_leaves(struct ndt_early *early, uint16_t queue, uint32_t key)
{
    struct ndt_waiting *flow = early->from_front ? ndt_waiting_of(early, queue, key, 0) : NULL;
    int chosen;

    if (flow == NULL) {
        return 0;
    }
    chosen = flow->chosen != 0;
    flow->chosen = 0;
    flow->packets--;
    /* Others may have been pushed out since it was chosen. */
    return chosen && flow->packets >= NDT_EARLY_FOLLOWERS;
}

/* ---- fast path ------------------------------------------------------------------------------- */

/* The first place of a flow (Knuth's multiplicative hashing). */
static inline uint32_t ndt_loss_place(uint32_t key)
{
    return (uint32_t)(key * 2654435769u) >> (32 - NDT_LOSS_BITS);
}

/* Returns 1 if the flow with this key has lost a packet recently; now does not go back. */
static inline int ndt_early_spares(const struct ndt_early *early, uint32_t key, uint64_t now)
{
    const uint32_t first = ndt_loss_place(key);
    uint32_t probe;

    for (probe = 0; probe < NDT_LOSS_PROBES; probe++) {
        const struct ndt_loss *loss = &early->losses[(first + probe) & (NDT_LOSSES - 1u)];

        if (loss->used && loss->key == key && now - loss->first < early->grace) {
            return 1;
        }
    }
    return 0;
}

/* Returns 1 if a port's drop has been due for long enough when one more packet leaves it to the
 * next. */
static inline int ndt_early_impatient(struct ndt_early *early, uint32_t port, uint32_t gap)
{
    return early->patience > 0 && ++early->passed[port] > (uint64_t)early->patience * gap;
}

/*
 * Returns the verdict about a packet that was admitted. length is that of its queue without it; the key names its
 * flow in one direction; spared is for a packet whose loss costs its flow most: what ndt_flow_is_short says
 * with FAB, otherwise 0. markable is for a packet that the switch marks where it would drop others
 * (action=mark): one whose IP header says ECT.
 *
 * NDT_EARLY_DROP: it is lost, which ndt_early_lost and ndt_control_dropped count; from the front, where
 * ndt_early_leaves says what is, only out of patience. NDT_EARLY_MARK: it gets CE (RFC 3168 section 5)
 * and is enqueued, which is no loss.
 */
static inline enum ndt_early_verdict ndt_early_arrives(struct ndt_early *early, uint32_t port,
                                                       uint16_t queue, uint32_t key,
                                                       uint64_t length, int spared, int markable,
                                                       uint64_t now)
{
    uint32_t gap;

    if (port >= NDT_MAX_PORTS || port >= early->ports) {
        return NDT_EARLY_PASS;
    }
    gap = ndt_early_gap(early->shortest, early->levels[port]);
    if (gap == 0 || length < early->min_bytes ||
        (early->spare && (spared || ndt_early_spares(early, key, now)))) {
        return NDT_EARLY_PASS;
    }
    if (early->left[port] == 0) {
        early->left[port] = ndt_early_draw(early->random[port], gap);
        early->passed[port] = 0;
    }
    if (early->left[port] > 1) {
        early->left[port]--;
        return NDT_EARLY_PASS;
    }
    if (markable) {
        early->left[port] = 0;
        return NDT_EARLY_MARK;
    }
    if (early->from_front && ndt_early_may_choose(early, queue, key)) {
        early->left[port] = 0;
        ndt_waiting_of(early, queue, key, 0)->chosen = 1;
        return NDT_EARLY_PASS;
    }
    /* A packet of a flow that cannot lose its first leaves it to the next. */
    if (early->from_front && !ndt_early_impatient(early, port, gap)) {
        return NDT_EARLY_PASS;
    }
    early->left[port] = 0;
    return NDT_EARLY_DROP;
}

/* Returns 1 if a packet that was admitted is dropped all the same, by a switch that marks none:
 * ndt_early_arrives. */
static inline int ndt_early_drops(struct ndt_early *early, uint32_t port, uint16_t queue,
                                  uint32_t key, uint64_t length, int spared, uint64_t now)
{
    return ndt_early_arrives(early, port, queue, key, length, spared, 0, now) == NDT_EARLY_DROP;
}

/* A packet of a flow was lost: refused, for want of room, early or pushed out. A further loss while the
 * flow is spared does not make that longer. */
static inline void ndt_early_lost(struct ndt_early *early, uint32_t key, uint64_t now)
{
    const uint32_t first = ndt_loss_place(key);
    struct ndt_loss *vacant = NULL;
    uint32_t probe;

    if (early->grace == 0 || ndt_early_spares(early, key, now)) {
        return;
    }
    for (probe = 0; probe < NDT_LOSS_PROBES && vacant == NULL; probe++) {
        struct ndt_loss *loss = &early->losses[(first + probe) & (NDT_LOSSES - 1u)];

        if (!loss->used || now - loss->first >= early->grace) {
            vacant = loss;
        }
    }
    if (vacant == NULL) {
        early->overflows++;
        return;
    }
    vacant->first = now;
    vacant->key = key;
    vacant->used = 1;
}

/* ---- slow path ------------------------------------------------------------------------------- */

/* A decision about both, as ndt_control_decide asks for one about alpha. */
struct ndt_early_call {
    ndt_decide_both_fn decide;
    void *user;
    uint8_t *early;
};

static inline int ndt_early_ask(void *user, const uint8_t *codes, uint32_t ports, uint8_t *levels)
{
    const struct ndt_early_call *call = (const struct ndt_early_call *)user;

    return call->decide(call->user, codes, ports, levels, call->early);
}

/*
 * ndt_control_decide with a decision about early drop besides. Its levels too are pending until they
 * are put in force, by ndt_early_apply, and stay as they are after an error.
 * NDT_CONTROL_ERROR_PORTS too where the control has another number of ports.
 */
static inline int ndt_early_decide(struct ndt_early *early, struct ndt_control *control,
                                   const uint64_t *queues, uint64_t now_ns,
                                   ndt_decide_both_fn decide, void *user)
{
    struct ndt_early_call call;
    uint32_t port;
    int result;

    if (early->ports != control->ports) {
        return NDT_CONTROL_ERROR_PORTS;
    }
    early->shortest = ndt_early_shortest(control->buffer_bytes);
    call.decide = decide;
    call.user = user;
    call.early = early->pending;
    memcpy(early->pending, early->levels, early->ports);
    result = ndt_control_decide(control, queues, now_ns, ndt_early_ask, &call);
    for (port = 0; port < early->ports; port++) {
        if (result != 0) {
            early->pending[port] = early->levels[port];
        } else if (early->pending[port] >= NDT_EARLY_LEVELS) {
            early->pending[port] = NDT_EARLY_LEVELS - 1;
        }
    }
    return result;
}

/* The levels of early drop that were decided last are in force. Where one changes, the next gap is
 * drawn anew. */
static inline void ndt_early_apply(struct ndt_early *early)
{
    uint32_t port;

    for (port = 0; port < early->ports; port++) {
        if (early->levels[port] != early->pending[port]) {
            early->levels[port] = early->pending[port];
            early->left[port] = 0;
        }
    }
}

#endif
