/*
 * The ports: Ethernet devices of DPDK, and a queue for each that is served at the configured rate. A packet
 * is handed to its device when its last bit would have left a line of that rate.
 */
#ifndef NDT_PORTS_H
#define NDT_PORTS_H

#include <stdint.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "ndt_control.h"

#include "histogram.h"

/* Bytes that a frame needs and a device does not show: the check sequence, which is in the buffer
 * too, and on the line preamble and gap between frames (IEEE 802.3). */
#define FRAME_CHECK 4u
#define LINE_OVERHEAD 20u
/* Shorter frames are padded. */
#define SHORTEST_FRAME 60u

#define DESCRIPTORS 512u

struct queued {
    struct rte_mbuf *packet;
    uint32_t bytes; /* in the buffer */
    uint32_t flow;
};

struct port {
    struct queued *ring; /* with room for a whole buffer of the shortest frames */
    uint32_t mask, head, tail;
    uint64_t finish; /* cycles: when the last bit of the head has left */
    uint64_t arrived, forwarded, forwarded_bytes, dropped, lost;
};

struct ports {
    uint32_t count;
    uint64_t cycles_per_second, rate_bps;
    struct port port[NDT_MAX_PORTS];
    /* How late packets were handed to their device: parts in 10,000 of their time on the line, and ns. */
    struct histogram late_share, late_ns;
};

/* Bytes of a packet in the buffer. */
static inline uint32_t buffer_bytes(const struct rte_mbuf *packet)
{
    const uint32_t length = rte_pktmbuf_pkt_len(packet);

    return (length < SHORTEST_FRAME ? SHORTEST_FRAME : length) + FRAME_CHECK;
}

/* Time on the line, cycles. A frame has at most 2^16 bytes, and a processor fewer than 2^40 cycles. */
static inline uint64_t line_cycles(const struct ports *ports, uint32_t bytes)
{
    return (bytes + LINE_OVERHEAD) * 8u * ports->cycles_per_second / ports->rate_bps;
}

static inline uint32_t port_length(const struct port *port)
{
    return port->tail - port->head;
}

static inline struct queued *port_head(const struct port *port)
{
    return &port->ring[port->head & port->mask];
}

/* Opens a device with one queue in each direction. 0, or DPDK's error. */
static int open_device(uint16_t device, struct rte_mempool *pool)
{
    struct rte_eth_conf conf;
    int result;

    memset(&conf, 0, sizeof conf);
    result = rte_eth_dev_configure(device, 1, 1, &conf);
    if (result == 0) {
        result = rte_eth_rx_queue_setup(device, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool);
    }
    if (result == 0) {
        result = rte_eth_tx_queue_setup(device, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL);
    }
    if (result == 0) {
        result = rte_eth_dev_start(device);
    }
    /* Frames for hosts behind the switch have other addresses than its devices. */
    return result == 0 ? rte_eth_promiscuous_enable(device) : result;
}

/* Room in every queue for a buffer of so many bytes. 0, or -1 without the memory. */
static int make_queues(struct ports *ports, uint64_t bytes)
{
    uint32_t number, places = 1;

    while (places < bytes / (SHORTEST_FRAME + FRAME_CHECK) + 1u) {
        places *= 2u;
    }
    for (number = 0; number < ports->count; number++) {
        ports->port[number].ring = calloc(places, sizeof *ports->port[number].ring);
        ports->port[number].mask = places - 1u;
        if (ports->port[number].ring == NULL) {
            return -1;
        }
    }
    return 0;
}

/* Appends a packet that was admitted. A port that was idle begins to send it now. */
static inline void port_enqueue(const struct ports *ports, struct port *port,
                                struct rte_mbuf *packet, uint32_t bytes, uint32_t flow,
                                uint64_t now)
{
    if (port_length(port) == 0) {
        port->finish = now + line_cycles(ports, bytes);
    }
    port->ring[port->tail++ & port->mask] =
        (struct queued){ .packet = packet, .bytes = bytes, .flow = flow };
}

/* Takes the head out of the queue. */
static inline struct queued port_take(struct port *port)
{
    const struct queued head = *port_head(port);

    port->head++;
    return head;
}

/* Hands the head to the device; what left. now is not before `finish`. */
static inline struct queued port_send(struct ports *ports, uint32_t number, uint64_t now)
{
    struct port *port = &ports->port[number];
    const struct queued sent = port_take(port);
    const uint64_t late = now - port->finish;
    struct rte_mbuf *packet = sent.packet;

    histogram_add(&ports->late_share, late * 10000u / line_cycles(ports, sent.bytes));
    histogram_add(&ports->late_ns,
                  (uint64_t)((double)late * 1e9 / (double)ports->cycles_per_second));
    if (rte_eth_tx_burst((uint16_t)number, 0, &packet, 1) == 1) {
        port->forwarded++;
        port->forwarded_bytes += sent.bytes;
    } else {
        rte_pktmbuf_free(packet);
        port->lost++;
    }
    return sent;
}

/* Begins with the head, where there is one. The line is never idle between two packets, so that lateness does
 * not add up. */
static inline void port_begin(const struct ports *ports, struct port *port)
{
    if (port_length(port) > 0) {
        port->finish += line_cycles(ports, port_head(port)->bytes);
    }
}

#endif
