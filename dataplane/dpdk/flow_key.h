/*
 * The number of a packet's flow in one direction: a hash of addresses, protocol and ports where the packet
 * has them, otherwise of the Ethernet addresses.
 */
#ifndef NDT_FLOW_KEY_H
#define NDT_FLOW_KEY_H

#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_jhash.h>
#include <rte_mbuf.h>

/* Without padding: every byte of it is hashed. */
struct flow_name {
    uint8_t source[16], destination[16];
    uint16_t ports[2];
    uint32_t protocol;
};

/* TCP, UDP and SCTP begin with both ports. */
static inline void name_ports(struct flow_name *name, const struct rte_mbuf *packet, uint32_t offset)
{
    const int has_ports = name->protocol == IPPROTO_TCP || name->protocol == IPPROTO_UDP ||
                          name->protocol == IPPROTO_SCTP;

    if (has_ports && rte_pktmbuf_data_len(packet) >= offset + sizeof name->ports) {
        memcpy(name->ports, rte_pktmbuf_mtod_offset(packet, const uint8_t *, offset),
               sizeof name->ports);
    }
}

static inline void name_ipv4(struct flow_name *name, const struct rte_mbuf *packet)
{
    const struct rte_ipv4_hdr *ip =
        rte_pktmbuf_mtod_offset(packet, const struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
    const uint16_t fragmented = rte_cpu_to_be_16(RTE_IPV4_HDR_OFFSET_MASK | RTE_IPV4_HDR_MF_FLAG);

    memcpy(name->source, &ip->src_addr, sizeof ip->src_addr);
    memcpy(name->destination, &ip->dst_addr, sizeof ip->dst_addr);
    name->protocol = ip->next_proto_id;
    /* Of a packet in fragments only the first has ports. */
    if ((ip->fragment_offset & fragmented) == 0) {
        name_ports(name, packet, sizeof(struct rte_ether_hdr) + rte_ipv4_hdr_len(ip));
    }
}

static inline void name_ipv6(struct flow_name *name, const struct rte_mbuf *packet)
{
    const struct rte_ipv6_hdr *ip =
        rte_pktmbuf_mtod_offset(packet, const struct rte_ipv6_hdr *, sizeof(struct rte_ether_hdr));

    memcpy(name->source, &ip->src_addr, sizeof name->source);
    memcpy(name->destination, &ip->dst_addr, sizeof name->destination);
    name->protocol = ip->proto;
    name_ports(name, packet, sizeof(struct rte_ether_hdr) + sizeof *ip);
}

static inline uint32_t flow_key(const struct rte_mbuf *packet)
{
    const struct rte_ether_hdr *ether = rte_pktmbuf_mtod(packet, const struct rte_ether_hdr *);
    const uint32_t length = rte_pktmbuf_data_len(packet);
    struct flow_name name;

    memset(&name, 0, sizeof name);
    if (ether->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) &&
        length >= sizeof *ether + sizeof(struct rte_ipv4_hdr)) {
        name_ipv4(&name, packet);
    } else if (ether->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6) &&
               length >= sizeof *ether + sizeof(struct rte_ipv6_hdr)) {
        name_ipv6(&name, packet);
    } else {
        memcpy(name.source, &ether->src_addr, sizeof ether->src_addr);
        memcpy(name.destination, &ether->dst_addr, sizeof ether->dst_addr);
    }
    return rte_jhash(&name, sizeof name, 0);
}

#endif
