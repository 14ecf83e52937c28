/*
 * The dataplane's side of NDT's control loop (Wang et al., "Learning Buffer Management Policies for
 * Shared Memory Switches"): admission by Dynamic Threshold with a level per port, the counters that
 * trigger a decision, and the observation that a decision is made from.
 *
 * Fast path, per packet: ndt_control_admits, ndt_control_enqueued, ndt_control_dropped,
 * ndt_control_departed, ndt_control_pushed_out. They add, compare and shift.
 * Slow path, per decision: ndt_control_decide, ndt_control_apply. No division there either.
 *
 * The caller owns the buffer: it knows queue lengths, free bytes and the time. Bytes are wire
 * bytes. Volumes stay below 2^54 bytes and the buffer is at most 2^40, so that 64 bits hold every
 * product and shift.
 *
 * C99, no allocation, no library. Everything is static inline; a struct ndt_control is about
 * (NDT_MAX_PORTS * 114) bytes and belongs into static storage.
 */
#ifndef NDT_CONTROL_H
#define NDT_CONTROL_H

#include <stdint.h>
#include <string.h>

#include "ndt_codes.h"

/* Ports at most; to be set alike for all files of a program. */
#ifndef NDT_MAX_PORTS
#define NDT_MAX_PORTS 256
#endif

/* The control factor of level l is 2^(l - NDT_UNIT_LEVEL) (paper, section V-A). */
#define NDT_LEVELS 8
#define NDT_UNIT_LEVEL 2

/* Results of ndt_control_init. */
#define NDT_CONTROL_OK 0
#define NDT_CONTROL_ERROR_PORTS (-1)
#define NDT_CONTROL_ERROR_SWITCH (-2)

/* Largest buffer, bytes. */
#define NDT_MAX_BUFFER_BYTES ((uint64_t)1 << 40)

/* Why a decision is due. */
enum ndt_cause {
    NDT_CAUSE_NONE = 0,
    /* The excess volume of a port reached beta (paper, Eq. 5). */
    NDT_CAUSE_EXCESS = 1,
    /* A port's drops reached the safe line gamma (paper, section IV-B). */
    NDT_CAUSE_SAFEGUARD = 2,
    /* The caller's timer: the longest time between decisions has passed. */
    NDT_CAUSE_INTERVAL = 3
};

/*
 * Decides: codes is [ports][NDT_HISTORY][NDT_FEATURES], newest step last; fills levels, [ports],
 * each below NDT_LEVELS. Returns 0, or an error code of its own. ndt_int8_decide behind a workspace
 * is one.
 */
typedef int (*ndt_decide_fn)(void *user, const uint8_t *codes, uint32_t ports, uint8_t *levels);

/* Volumes of a port since the last decision, bytes. */
struct ndt_volumes {
    uint64_t enqueued; /* v_eq */
    uint64_t dropped;  /* v_dp: lost on arrival, or pushed out */
    /* v_ex = v_eq + v_dp - v_dq (paper, Eq. 5), clamped at 0 after every event, so that draining
     * an old queue earns no credit. A packet that is pushed out had arrived before: it does not
     * count again. */
    uint64_t excess;
    uint64_t guarded; /* dropped bytes, the safeguard's own count */
};

struct ndt_control {
    uint32_t ports;
    /* Decisions begin a step; the oldest step has this index. */
    uint32_t oldest_step;
    uint64_t buffer_bytes;
    uint64_t beta;  /* trigger sensitivity, bytes */
    uint64_t gamma; /* safe line, bytes */
    /* Time to send beta at line rate, ns: the unit of the time between decisions. */
    uint64_t drain_ns;
    uint64_t last_decision_ns;
    enum ndt_cause fired;
    int guard_armed;
    int suspended; /* a decision is not in force yet: nothing fires */
    struct ndt_volumes volumes[NDT_MAX_PORTS];
    uint8_t levels[NDT_MAX_PORTS];  /* in force */
    uint8_t pending[NDT_MAX_PORTS]; /* decided, not in force yet */
    uint8_t ring[NDT_HISTORY][NDT_MAX_PORTS][NDT_FEATURES];
    uint8_t codes[NDT_MAX_PORTS * NDT_HISTORY * NDT_FEATURES];
};

/* ---- codes ----------------------------------------------------------------------------------- */

/* Code of log(1 + x/unit)/log 65 to the nearest, 0 to 255; 0 < unit < 2^NDT_UNIT_BITS. */
static inline uint8_t ndt_log_code(uint64_t x, uint64_t unit)
{
    uint32_t code = 0, bit;
    uint64_t scaled;

    if (x >= (uint64_t)NDT_LOG_RANGE * unit) {
        return 255;
    }
    scaled = x << 16;
    for (bit = 128; bit > 0; bit >>= 1) {
        if (scaled >= ndt_log_thresholds[code + bit] * unit) {
            code += bit;
        }
    }
    return (uint8_t)code;
}

/* Code of bytes/buffer_bytes to the nearest, halves up, at most 255. */
static inline uint8_t ndt_queue_code(uint64_t bytes, uint64_t buffer_bytes)
{
    uint32_t code = 0, bit;

    for (bit = 128; bit > 0; bit >>= 1) {
        if (510u * bytes >= (2u * (uint64_t)(code + bit) - 1u) * buffer_bytes) {
            code += bit;
        }
    }
    return (uint8_t)code;
}

/* Code of the last action: the centre of the cell of a level, (c - 128)/128. */
static inline uint8_t ndt_level_code(uint8_t level)
{
    return (uint8_t)(16u * (2u * level + 1u));
}

/* ---- set up ---------------------------------------------------------------------------------- */

/*
 * Time to send beta bytes at rate_bps, ns: 8e9 * beta / rate_bps, rounded half up, between 1 and
 * 2^NDT_UNIT_BITS - 1. beta and rate_bps are below 2^62. Bit by bit, as the product can exceed
 * 64 bits; called once.
 */
static inline uint64_t ndt_drain_ns(uint64_t beta, uint64_t rate_bps)
{
    const uint64_t most = ((uint64_t)1 << NDT_UNIT_BITS) - 1u, factor = 8000000000u;
    const uint64_t whole = beta / rate_bps, part = beta % rate_bps;
    uint64_t quotient = 0, rest = 0;
    int bit;

    for (bit = 32; bit >= 0; bit--) {
        const uint64_t set = factor >> bit & 1u;

        quotient = 2u * quotient + set * whole;
        rest = 2u * rest;
        if (rest >= rate_bps) {
            rest -= rate_bps;
            quotient++;
        }
        rest += set * part;
        if (rest >= rate_bps) {
            rest -= rate_bps;
            quotient++;
        }
        if (quotient > most) {
            return most;
        }
    }
    quotient += 2u * rest >= rate_bps;
    if (quotient > most) {
        return most;
    }
    return quotient > 0 ? quotient : 1;
}

/*
 * Starts at the instant now_ns with factor 1 on every port, empty counters and an empty history.
 * The paper has beta = gamma = buffer_bytes/ports.
 *
 * NDT_CONTROL_ERROR_PORTS: ports is 0 or above NDT_MAX_PORTS. NDT_CONTROL_ERROR_SWITCH: beta,
 * gamma, rate_bps or buffer_bytes is 0, rate_bps is 2^62 or more, or beta or buffer_bytes is above
 * NDT_MAX_BUFFER_BYTES. After an error the control has no ports: it admits nothing, counts nothing,
 * never fires.
 */
static inline int ndt_control_init(struct ndt_control *control, uint32_t ports,
                                   uint64_t buffer_bytes, uint64_t rate_bps, uint64_t beta,
                                   uint64_t gamma, uint64_t now_ns)
{
    uint32_t step, port;

    memset(control, 0, sizeof *control);
    if (ports == 0 || ports > NDT_MAX_PORTS) {
        return NDT_CONTROL_ERROR_PORTS;
    }
    if (beta == 0 || beta > NDT_MAX_BUFFER_BYTES || gamma == 0 || rate_bps == 0 ||
        rate_bps >> 62 != 0 || buffer_bytes == 0 || buffer_bytes > NDT_MAX_BUFFER_BYTES) {
        return NDT_CONTROL_ERROR_SWITCH;
    }
    control->ports = ports;
    control->buffer_bytes = buffer_bytes;
    control->beta = beta;
    control->gamma = gamma;
    control->drain_ns = ndt_drain_ns(beta, rate_bps);
    control->last_decision_ns = now_ns;
    control->guard_armed = 1;
    for (port = 0; port < ports; port++) {
        control->levels[port] = NDT_UNIT_LEVEL;
        control->pending[port] = NDT_UNIT_LEVEL;
        for (step = 0; step < NDT_HISTORY; step++) {
            control->ring[step][port][3] = ndt_level_code(NDT_UNIT_LEVEL);
        }
    }
    return NDT_CONTROL_OK;
}

/* ---- fast path ------------------------------------------------------------------------------- */

/* Returns 1 if the port is there. The constant bound is for those who prove that no access is out of
 * bounds without knowing ndt_control_init: compilers, eBPF's verifier. */
static inline int ndt_control_has(const struct ndt_control *control, uint32_t port)
{
    return port < NDT_MAX_PORTS && port < control->ports;
}

/*
 * Returns 1 if queue < 2^shift * free, bytes (paper, section IV-B: q_i < alpha_i (B - Q)), with the side
 * shifted that keeps all bits. The shift is between -20 and 20, free at most 2^40, queue as well.
 */
static inline int ndt_below_threshold(uint64_t queue, uint64_t free_bytes, int shift)
{
    return shift >= 0 ? queue < free_bytes << shift : queue << -shift < free_bytes;
}

/*
 * Returns 1 if Dynamic Threshold lets a packet into a queue of the port; both lengths are those before
 * the packet. That it fits (Q + L <= B) is for the caller to see first. No for a port that is not
 * there.
 */
static inline int ndt_control_admits(const struct ndt_control *control, uint32_t port,
                                     uint64_t queue, uint64_t free_bytes)
{
    if (!ndt_control_has(control, port)) {
        return 0;
    }
    return ndt_below_threshold(queue, free_bytes, (int)control->levels[port] - NDT_UNIT_LEVEL);
}

/* The triggers, after every event that can raise a counter. A cause stays until the decision; of
 * two at one event the excess counts. */
static inline void ndt_control_test(struct ndt_control *control, const struct ndt_volumes *volumes)
{
    if (control->suspended) {
        return;
    }
    if (volumes->excess >= control->beta) {
        control->fired = NDT_CAUSE_EXCESS;
    } else if (control->guard_armed && volumes->guarded >= control->gamma &&
               control->fired == NDT_CAUSE_NONE) {
        control->fired = NDT_CAUSE_SAFEGUARD;
    }
}

/* A packet was enqueued. Returns why a decision is due, if one is. */
static inline enum ndt_cause ndt_control_enqueued(struct ndt_control *control, uint32_t port,
                                                  uint64_t bytes)
{
    if (ndt_control_has(control, port)) {
        struct ndt_volumes *volumes = &control->volumes[port];

        volumes->enqueued += bytes;
        volumes->excess += bytes;
        ndt_control_test(control, volumes);
    }
    return control->fired;
}

/* A packet was lost on arrival, refused or for want of room. Returns why a decision is due. */
static inline enum ndt_cause ndt_control_dropped(struct ndt_control *control, uint32_t port,
                                                 uint64_t bytes)
{
    if (ndt_control_has(control, port)) {
        struct ndt_volumes *volumes = &control->volumes[port];

        volumes->dropped += bytes;
        volumes->guarded += bytes;
        volumes->excess += bytes;
        ndt_control_test(control, volumes);
    }
    return control->fired;
}

/* A packet that was enqueued is removed again. Returns why a decision is due, if one is. */
static inline enum ndt_cause ndt_control_pushed_out(struct ndt_control *control, uint32_t port,
                                                    uint64_t bytes)
{
    if (ndt_control_has(control, port)) {
        struct ndt_volumes *volumes = &control->volumes[port];

        volumes->dropped += bytes;
        volumes->guarded += bytes;
        ndt_control_test(control, volumes);
    }
    return control->fired;
}

/* The last bit of a packet has left. That triggers nothing. */
static inline void ndt_control_departed(struct ndt_control *control, uint32_t port, uint64_t bytes)
{
    if (ndt_control_has(control, port)) {
        struct ndt_volumes *volumes = &control->volumes[port];

        volumes->excess = volumes->excess > bytes ? volumes->excess - bytes : 0;
    }
}

/* The caller's timer says that the longest time between decisions has passed. */
static inline void ndt_control_interval(struct ndt_control *control)
{
    control->fired = NDT_CAUSE_INTERVAL;
}

/* ---- slow path ------------------------------------------------------------------------------- */

/* Appends a step to the history; queues, [ports], are bytes per port, all its queues together. */
static inline void ndt_control_observe(struct ndt_control *control, const uint64_t *queues,
                                       uint64_t now_ns)
{
    const uint8_t elapsed = ndt_log_code(now_ns - control->last_decision_ns, control->drain_ns);
    uint32_t port;

    for (port = 0; port < control->ports; port++) {
        const struct ndt_volumes *volumes = &control->volumes[port];
        uint8_t *step = control->ring[control->oldest_step][port];

        step[0] = ndt_queue_code(queues[port], control->buffer_bytes);
        step[1] = ndt_log_code(volumes->enqueued, control->beta);
        step[2] = ndt_log_code(volumes->dropped, control->beta);
        step[3] = ndt_level_code(control->levels[port]);
        step[4] = elapsed;
    }
    control->oldest_step = (control->oldest_step + 1u) & (NDT_HISTORY - 1u);
}

/* Lays out the history as [ports][NDT_HISTORY][NDT_FEATURES], newest step last. */
static inline const uint8_t *ndt_control_codes(struct ndt_control *control)
{
    uint8_t *out = control->codes;
    uint32_t port, step;

    for (port = 0; port < control->ports; port++) {
        for (step = 0; step < NDT_HISTORY; step++) {
            const uint32_t place = (control->oldest_step + step) & (NDT_HISTORY - 1u);

            memcpy(out, control->ring[place][port], NDT_FEATURES);
            out += NDT_FEATURES;
        }
    }
    return control->codes;
}

/*
 * Makes the decision that is due: observes, asks decide, zeroes the counters of all ports. After a
 * safeguard decision the safeguard is disarmed until one of another cause (paper, section IV-B).
 * The levels are pending, and no trigger fires, until ndt_control_apply: call it at once, or after
 * the time that decisions take.
 *
 * queues, [ports], are bytes per port. Returns what decide says; if that is not 0 the levels in
 * force stay, and the decision counts as made. NDT_CONTROL_ERROR_PORTS without ports.
 */
static inline int ndt_control_decide(struct ndt_control *control, const uint64_t *queues,
                                     uint64_t now_ns, ndt_decide_fn decide, void *user)
{
    const uint32_t ports = control->ports;
    uint32_t port;
    int result;

    if (ports == 0) {
        return NDT_CONTROL_ERROR_PORTS;
    }
    ndt_control_observe(control, queues, now_ns);
    memcpy(control->pending, control->levels, ports);
    result = decide(user, ndt_control_codes(control), ports, control->pending);
    for (port = 0; port < ports; port++) {
        if (result != 0) {
            control->pending[port] = control->levels[port];
        } else if (control->pending[port] >= NDT_LEVELS) {
            control->pending[port] = NDT_LEVELS - 1;
        }
    }
    control->guard_armed = control->fired != NDT_CAUSE_SAFEGUARD;
    control->fired = NDT_CAUSE_NONE;
    control->suspended = 1;
    control->last_decision_ns = now_ns;
    memset(control->volumes, 0, ports * sizeof control->volumes[0]);
    return result;
}

/* The levels decided last are in force; triggers fire again. */
static inline void ndt_control_apply(struct ndt_control *control)
{
    memcpy(control->levels, control->pending, control->ports);
    control->suspended = 0;
}

#endif
