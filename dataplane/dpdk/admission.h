/*
 * The fast path's verdicts and triggers: FAB or Dynamic Threshold with a level per port, early drop where
 * the network sets it, and the decisions that they cause. Everything is recorded in the order in which
 * dataplane/replay.c computes it again.
 */
#ifndef NDT_ADMISSION_H
#define NDT_ADMISSION_H

#include <stdint.h>

#include "decider.h"

#include "ndt_control.h"
#include "ndt_flows.h"
#if NDT_OUTPUTS == 2
#include "ndt_early.h"
#endif

#include "histogram.h"
#include "recorder.h"
#include "settings.h"

struct admission {
    int fab;
    uint64_t occupancy;              /* bytes of the shared buffer in use */
    uint64_t queues[NDT_MAX_PORTS];  /* bytes */
    uint64_t decisions;
    int failed;                      /* what the network said instead of deciding */
    struct histogram network_ns;     /* what the network took */
    struct histogram in_force_ns;    /* from a trigger to its levels in force */
    struct ndt_control control;
    struct ndt_flows flows;
#if NDT_OUTPUTS == 2
    struct ndt_early early;
#endif
    struct decider decider;
    struct recorder recorder;
};

/* Empty queues and factor 1 on every port, at time 0. 0, or -1 where the numbers do not fit. */
static int admission_start(struct admission *admission, const struct settings *settings,
                           uint32_t ports)
{
    const uint64_t share = settings->buffer_bytes / ports;

    admission->fab = settings->fab;
    ndt_flows_init(&admission->flows, settings->short_bytes, settings->idle_us * 1000u,
                   (int)settings->short_shift);
    if (ndt_control_init(&admission->control, ports, settings->buffer_bytes, rate_bps(settings),
                         share, share, 0) != NDT_CONTROL_OK) {
        return -1;
    }
#if NDT_OUTPUTS == 2
    if (ndt_early_init(&admission->early, ports, settings->min_bytes, settings->grace_us * 1000u,
                       1, settings->seed) != NDT_CONTROL_OK) {
        return -1;
    }
    if (settings->from_front) {
        ndt_early_from_front(&admission->early, (uint32_t)settings->patience);
    }
    memcpy(admission->recorder.random, admission->early.random, sizeof admission->early.random);
#endif
    return 0;
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* Hands the codes to the slow path. The levels in force stay as they are until the answer. */
#if NDT_OUTPUTS == 2
static int hand_over(void *user, const uint8_t *codes, uint32_t ports, uint8_t *levels,
                     uint8_t *early)
{
    (void)levels;
    (void)early;
    decider_ask(user, codes, ports);
    return 0;
}
#else
static int hand_over(void *user, const uint8_t *codes, uint32_t ports, uint8_t *levels)
{
    (void)levels;
    decider_ask(user, codes, ports);
    return 0;
}
#endif

/* Begins the decision that the event before has made due, if it has. */
static void begin_decision(struct admission *admission, enum ndt_cause cause, uint64_t now_ns)
{
    if (cause == NDT_CAUSE_NONE) {
        return;
    }
    record_decision(&admission->recorder, now_ns, cause);
    admission->decisions++;
#if NDT_OUTPUTS == 2
    ndt_early_decide(&admission->early, &admission->control, admission->queues, now_ns, hand_over,
                     &admission->decider);
#else
    ndt_control_decide(&admission->control, admission->queues, now_ns, hand_over,
                       &admission->decider);
#endif
}

/* Takes the levels of the decision that is done. */
static void take_levels(struct admission *admission)
{
    const struct decider *decider = &admission->decider;
    const uint32_t ports = admission->control.ports;

    if (decider->result != NDT_OK) {
        admission->failed = decider->result;
        return;
    }
    memcpy(admission->control.pending, decider->levels, ports);
#if NDT_OUTPUTS == 2
    memcpy(admission->early.pending, decider->early, ports);
#endif
    record_levels(&admission->recorder, ports, decider->levels, decider->early);
}

/* Puts the levels of a decision in force where one is done. */
static void end_decision(struct admission *admission, uint64_t now_ns, double ns_per_cycle)
{
    struct decider *decider = &admission->decider;

    if (decider_state(decider) != DECIDER_DONE) {
        return;
    }
    take_levels(admission);
    ndt_control_apply(&admission->control);
#if NDT_OUTPUTS == 2
    ndt_early_apply(&admission->early);
#endif
    record_application(&admission->recorder, now_ns);
    histogram_add(&admission->network_ns, (uint64_t)((double)decider->network * ns_per_cycle));
    histogram_add(&admission->in_force_ns,
                  (uint64_t)((double)(rte_rdtsc() - decider->asked) * ns_per_cycle));
    decider_release(decider);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* The letter of the record: admitted, refused, no room (f), early dropped. */
static char verdict(struct admission *admission, uint32_t port, uint32_t bytes, uint32_t flow,
                    uint64_t now_ns)
{
    const uint64_t length = admission->queues[port];
    const uint64_t free_bytes = admission->control.buffer_bytes - admission->occupancy;
    int admitted, is_short = 0;

    if (admission->fab) {
        is_short = ndt_flow_is_short(&admission->flows, flow, bytes, now_ns);
        admitted = ndt_flows_admit(&admission->flows, &admission->control, port, length,
                                   free_bytes, is_short);
    } else {
        admitted = ndt_control_admits(&admission->control, port, length, free_bytes);
    }
    if (bytes > free_bytes) {
        return 'f';
    }
    if (!admitted) {
        return 'r';
    }
#if NDT_OUTPUTS == 2
    if (ndt_early_drops(&admission->early, port, (uint16_t)port, flow, length, is_short, now_ns)) {
        return 'e';
    }
#endif
    return 'a';
}

/* A packet arrives for a port; the verdict. */
static char admission_arrival(struct admission *admission, uint32_t port, uint32_t bytes,
                              uint32_t flow, uint64_t now_ns)
{
    const char kind = verdict(admission, port, bytes, flow, now_ns);
    enum ndt_cause cause;

    record_packet(&admission->recorder, kind, now_ns, port, bytes, flow);
    if (kind == 'a') {
        admission->queues[port] += bytes;
        admission->occupancy += bytes;
#if NDT_OUTPUTS == 2
        ndt_early_enqueued(&admission->early, (uint16_t)port, flow);
#endif
        cause = ndt_control_enqueued(&admission->control, port, bytes);
    } else {
        cause = ndt_control_dropped(&admission->control, port, bytes);
#if NDT_OUTPUTS == 2
        ndt_early_lost(&admission->early, flow, now_ns);
#endif
    }
    begin_decision(admission, cause, now_ns);
    return kind;
}

/* A packet comes to the head of its queue; whether it is lost there instead of sent. */
#if NDT_OUTPUTS == 2
static int admission_head(struct admission *admission, uint32_t port, uint32_t bytes,
                          uint32_t flow, uint64_t now_ns)
{
    int lost;

    if (!admission->early.from_front) {
        return 0;
    }
    lost = ndt_early_leaves(&admission->early, (uint16_t)port, flow);
    record_packet(&admission->recorder, lost ? 'h' : 's', now_ns, port, bytes, flow);
    if (lost) {
        admission->queues[port] -= bytes;
        admission->occupancy -= bytes;
        begin_decision(admission, ndt_control_pushed_out(&admission->control, port, bytes), now_ns);
        ndt_early_lost(&admission->early, flow, now_ns);
    }
    return lost;
}
#else
static int admission_head(struct admission *admission, uint32_t port, uint32_t bytes,
                          uint32_t flow, uint64_t now_ns)
{
    (void)admission;
    (void)port;
    (void)bytes;
    (void)flow;
    (void)now_ns;
    return 0;
}
#endif

/* The last bit of a packet has left. */
static void admission_departure(struct admission *admission, uint32_t port, uint32_t bytes,
                                uint32_t flow, uint64_t now_ns)
{
    record_packet(&admission->recorder, 'd', now_ns, port, bytes, flow);
    admission->queues[port] -= bytes;
    admission->occupancy -= bytes;
    ndt_control_departed(&admission->control, port, bytes);
}

#endif
