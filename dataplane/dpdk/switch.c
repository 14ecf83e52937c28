/*
 * A switch on DPDK whose shared buffer is managed by an exported network: admission and triggers of
 * ndt_control.h (with ndt_flows.h and ndt_early.h) for every packet, the network in integers on a thread
 * beside it. Ports are served at a configured rate; where hosts are is given on the command line.
 *
 *     cc -std=gnu11 -O3 -march=native -I EXPORT -I dataplane $(pkg-config --cflags libdpdk) \
 *         dataplane/dpdk/switch.c EXPORT/ndt_int8.c $(pkg-config --libs libdpdk) -o ndt-switch
 *     ./ndt-switch -l 0 --no-huge --no-shconf --no-pci -m 128 \
 *         --vdev net_af_packet0,iface=sw0 --vdev net_af_packet1,iface=sw1 -- \
 *         --host 02:00:00:00:00:01=0 --host 02:00:00:00:00:02=1 --seconds 10
 *
 * Prints what it did as JSON. Exit code 0: done; 1: a device, memory or file failed, or the network refused
 * to decide; 2: bad input, said in one line.
 */
#define _GNU_SOURCE /* affinity of threads */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "admission.h"
#include "flow_key.h"
#include "histogram.h"
#include "ports.h"
#include "recorder.h"
#include "settings.h"

#define BURST 32

static struct settings settings;
static struct ports ports;
static struct admission admission;

static struct {
    uint64_t start;      /* cycles */
    double ns_per_cycle;
    uint64_t most_occupied;
    uint64_t busy; /* cycles of the turns in which there was something to do */
    uint64_t refused, no_room, early, no_port;
    struct histogram verdict_ns;
} run;

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

static uint64_t nanoseconds(uint64_t cycles)
{
    return (uint64_t)((double)(cycles - run.start) * run.ns_per_cycle);
}

/* ---- forwarding ------------------------------------------------------------------------------ */

/* The port of a destination, or NDT_MAX_PORTS. */
static uint32_t port_of(const struct rte_ether_addr *address)
{
    uint32_t host;

    for (host = 0; host < settings.hosts; host++) {
        if (rte_is_same_ether_addr(address, &settings.host[host].address)) {
            return settings.host[host].port;
        }
    }
    return NDT_MAX_PORTS;
}

static void count_verdict(char kind)
{
    switch (kind) {
    case 'f':
        run.no_room++;
        break;
    case 'r':
        run.refused++;
        break;
    default:
        run.early++;
    }
}

/* Drops what early drop has chosen at the head of a queue. */
static void drop_at_head(uint32_t number, uint64_t now_ns)
{
    struct port *port = &ports.port[number];

    while (port_length(port) > 0 &&
           admission_head(&admission, number, port_head(port)->bytes, port_head(port)->flow, now_ns)) {
        rte_pktmbuf_free(port_take(port).packet);
        port->dropped++;
        run.early++;
    }
}

static void receive_packet(uint32_t from, struct rte_mbuf *packet)
{
    const uint32_t to = port_of(&rte_pktmbuf_mtod(packet, struct rte_ether_hdr *)->dst_addr);
    const uint32_t bytes = buffer_bytes(packet), flow = flow_key(packet);
    const uint64_t now = rte_rdtsc();
    char kind;

    ports.port[from].arrived++;
    /* Nobody has this address, or it is on the side that the frame comes from. */
    if (to == NDT_MAX_PORTS || to == from) {
        run.no_port++;
        rte_pktmbuf_free(packet);
        return;
    }
    kind = admission_arrival(&admission, to, bytes, flow, nanoseconds(now));
    histogram_add(&run.verdict_ns, (uint64_t)((double)(rte_rdtsc() - now) * run.ns_per_cycle));
    if (kind == 'a') {
        run.most_occupied = RTE_MAX(run.most_occupied, admission.occupancy);
        port_enqueue(&ports, &ports.port[to], packet, bytes, flow, now);
        if (port_length(&ports.port[to]) == 1) {
            drop_at_head(to, nanoseconds(now));
        }
    } else {
        ports.port[to].dropped++;
        count_verdict(kind);
        rte_pktmbuf_free(packet);
    }
}

/* Sends everything whose time has come; whether anything was. */
static int serve_ports(void)
{
    int served = 0;
    uint32_t number;

    for (number = 0; number < ports.count; number++) {
        struct port *port = &ports.port[number];
        uint64_t now;

        while (port_length(port) > 0 && (now = rte_rdtsc()) >= port->finish) {
            const struct queued sent = port_send(&ports, number, now);

            admission_departure(&admission, number, sent.bytes, sent.flow, nanoseconds(now));
            drop_at_head(number, nanoseconds(now));
            port_begin(&ports, port);
            served = 1;
        }
    }
    return served;
}

/* Takes what has arrived at a port. Other ports wait for one packet at most. */
static int poll_port(uint32_t number)
{
    struct rte_mbuf *packets[BURST];
    const uint16_t count = rte_eth_rx_burst((uint16_t)number, 0, packets, BURST);
    uint16_t packet;

    for (packet = 0; packet < count; packet++) {
        receive_packet(number, packets[packet]);
        serve_ports();
    }
    return count > 0;
}

static void forward(void)
{
    const uint64_t end = settings.seconds * ports.cycles_per_second;
    uint64_t turn = run.start;
    uint32_t number;

    while (!stopped && admission.failed == 0 && (end == 0 || turn - run.start < end)) {
        int busy = serve_ports();
        uint64_t now;

        for (number = 0; number < ports.count; number++) {
            busy |= poll_port(number);
        }
        now = rte_rdtsc();
        end_decision(&admission, nanoseconds(now), run.ns_per_cycle);
        run.busy += busy ? now - turn : 0;
        turn = now;
    }
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void set_up(cpu_set_t allowed)
{
    const uint64_t packets = RTE_MIN(settings.buffer_bytes / (SHORTEST_FRAME + FRAME_CHECK), 65536u);
    struct rte_mempool *pool;
    uint16_t device;

    pool = rte_pktmbuf_pool_create("packets", (unsigned)packets + 4096u, 64, 0,
                                   RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (pool == NULL) {
        give_up(1, "no memory for packets: %s; give DPDK more with -m", rte_strerror(rte_errno));
    }
    RTE_ETH_FOREACH_DEV(device) {
        const int result = open_device(device, pool);

        if (result != 0) {
            give_up(1, "port %d cannot be opened: %s", device, rte_strerror(-result));
        }
    }
    if (make_queues(&ports, settings.buffer_bytes) != 0 ||
        (settings.record != NULL &&
         recorder_start(&admission.recorder, settings.record_events) != 0)) {
        give_up(1, "no memory for queues and record; --record-events makes the latter smaller");
    }
    if (admission_start(&admission, &settings, ports.count) != 0) {
        give_up(1, "the control refuses these numbers");
    }
    if (decider_start(&admission.decider, allowed) != 0) {
        give_up(1, "no thread for the network");
    }
}

static void tear_down(void)
{
    uint32_t number;

    decider_wait(&admission.decider);
    if (decider_state(&admission.decider) == DECIDER_DONE) {
        take_levels(&admission);
    }
    decider_stop(&admission.decider);
    for (number = 0; number < ports.count; number++) {
        rte_eth_dev_stop((uint16_t)number);
    }
}

static void print_times(const char *name, const struct histogram *histogram, double unit)
{
    printf("  \"%s\": {\"count\": %" PRIu64 ", \"p50\": %.4g, \"p90\": %.4g, \"p99\": %.4g, \"max\": %.4g},\n",
           name, histogram->count, (double)histogram_permille(histogram, 500) * unit,
           (double)histogram_permille(histogram, 900) * unit,
           (double)histogram_permille(histogram, 990) * unit, (double)histogram->most * unit);
}

/* Returns the packets that the devices have lost, outside of the buffer. */
static uint64_t lost_by_devices(void)
{
    uint64_t lost = 0;
    uint32_t number;

    for (number = 0; number < ports.count; number++) {
        struct rte_eth_stats stats;

        if (rte_eth_stats_get((uint16_t)number, &stats) == 0) {
            lost += stats.imissed + stats.ierrors + stats.rx_nombuf + stats.oerrors;
        }
        lost += ports.port[number].lost;
    }
    return lost;
}

static void print_ports(void)
{
    uint32_t number;

    printf("  \"per_port\": [");
    for (number = 0; number < ports.count; number++) {
        const struct port *port = &ports.port[number];

        printf("%s\n    {\"arrived\": %" PRIu64 ", \"forwarded\": %" PRIu64
               ", \"forwarded_bytes\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"queued\": %" PRIu32
               "}",
               number == 0 ? "" : ",", port->arrived, port->forwarded, port->forwarded_bytes,
               port->dropped, port_length(port));
    }
    printf("\n  ]\n}\n");
}

static void print_report(double seconds)
{
    uint64_t arrived = 0, forwarded = 0, bytes = 0;
    uint32_t number;

    for (number = 0; number < ports.count; number++) {
        arrived += ports.port[number].arrived;
        forwarded += ports.port[number].forwarded;
        bytes += ports.port[number].forwarded_bytes;
    }
    printf("{\n  \"ports\": %" PRIu32 ", \"rate_bps\": %" PRIu64 ", \"buffer_bytes\": %" PRIu64
           ", \"low_level\": \"%s",
           ports.count, rate_bps(&settings), settings.buffer_bytes, settings.fab ? "fab" : "dt");
    write_early_name(stdout, &settings);
    printf("\",\n  \"seconds\": %.3f, \"busy_share\": %.3f,\n", seconds,
           (double)run.busy / (double)ports.cycles_per_second / seconds);
    printf("  \"arrived\": %" PRIu64 ", \"forwarded\": %" PRIu64 ", \"forwarded_bytes\": %" PRIu64
           ", \"forwarded_per_s\": %.0f,\n",
           arrived, forwarded, bytes, (double)forwarded / seconds);
    printf("  \"dropped\": {\"no_room\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"early\": %" PRIu64
           ", \"no_port\": %" PRIu64 "},\n",
           run.no_room, run.refused, run.early, run.no_port);
    printf("  \"lost_by_devices\": %" PRIu64 ", \"most_occupied_bytes\": %" PRIu64 ",\n",
           lost_by_devices(), run.most_occupied);
    printf("  \"decisions\": %" PRIu64 ", \"recorded_events\": %" PRIu64 ",\n", admission.decisions,
           admission.recorder.count);
    print_times("network_us", &admission.network_ns, 1e-3);
    print_times("in_force_us", &admission.in_force_ns, 1e-3);
    print_times("verdict_ns", &run.verdict_ns, 1.0);
    print_times("late_us", &ports.late_ns, 1e-3);
    print_times("late_percent_of_packet", &ports.late_share, 1e-2);
    print_ports();
}

int main(int argc, char **argv)
{
    cpu_set_t allowed;
    double seconds;
    int used;

    /* Before DPDK binds this thread to a core. */
    if (pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed) != 0) {
        give_up(1, "the cores of this process are not known");
    }
    used = rte_eal_init(argc, argv);
    if (used < 0) {
        give_up(2, "DPDK refuses its arguments: %s", rte_strerror(rte_errno));
    }
    read_settings(&settings, argc - used, argv + used);
    ports.count = rte_eth_dev_count_avail();
    complete_settings(&settings, ports.count);
    ports.rate_bps = rate_bps(&settings);
    ports.cycles_per_second = rte_get_tsc_hz();
    set_up(allowed);
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    run.ns_per_cycle = 1e9 / (double)ports.cycles_per_second;
    fprintf(stderr, "forwarding\n");
    run.start = rte_rdtsc();
    forward();
    seconds = (double)(rte_rdtsc() - run.start) / (double)ports.cycles_per_second;
    tear_down();
    print_report(seconds);
    if (admission.failed != 0) {
        give_up(1, "the network refuses to decide, with code %d", admission.failed);
    }
    if (settings.record != NULL &&
        recorder_write(&admission.recorder, &settings, &admission.control) != 0) {
        give_up(1, "%s cannot be written", settings.record);
    }
    return 0;
}
