/*
 * The command line of the switch, behind the arguments of DPDK's environment and a --. What is wrong with
 * it ends the program with exit code 2 and one line.
 */
#ifndef NDT_SETTINGS_H
#define NDT_SETTINGS_H

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "ndt_control.h"

#define MAX_HOSTS 256

/* A host and the port that leads to it. */
struct host {
    struct rte_ether_addr address;
    uint32_t port;
};

struct settings {
    uint64_t rate_mbit;
    uint64_t buffer_bytes;
    int fab;                /* FAB below, otherwise Dynamic Threshold */
    uint64_t short_bytes;   /* FAB: a flow that has sent so many bytes is long */
    uint64_t idle_us;       /* FAB: idle for longer, a flow starts afresh */
    uint64_t short_shift;   /* FAB: the factor of short flows is 2^short_shift */
    uint64_t min_bytes;     /* early drop: queue length from which packets are dropped; 0: B/(4N) */
    int from_front;         /* early drop: at the head of queues, not of what arrives */
    uint64_t patience;      /* early drop at the head: for how many gaps it stays due; 0: for ever */
    uint64_t grace_us;      /* early drop: for how long a flow is spared; 0: 8B/rate */
    uint64_t seed;          /* early drop: of the gaps */
    uint64_t seconds;       /* how long to forward; 0: until a signal */
    const char *record;     /* file for what happened, or none */
    uint64_t record_events; /* most events of it */
    uint32_t hosts;
    struct host host[MAX_HOSTS];
};

static const char usage[] =
    "usage: ndt-switch EAL-ARGUMENTS -- --host MAC=PORT... [OPTIONS]\n"
    "\n"
    "  --host MAC=PORT          frames for this address leave by this port; once for every host\n"
    "  --rate-mbit N            rate of every port, 1 to 100000 (100)\n"
    "  --buffer-bytes N         shared buffer, 4096 to 2^30 (262144)\n"
    "  --low-level dt|fab       what the levels are the alpha of (fab)\n"
    "  --short-bytes N          fab: a flow that has sent as much is long (10000)\n"
    "  --idle-us N              fab: idle for longer, a flow starts afresh (10000)\n"
    "  --alpha-short-log2 N     fab: factor of short flows, 0 to 20 (11)\n"
    "  --early-min-bytes N      early drop: from this queue length on (B/(4 ports))\n"
    "  --early-grace-us N       early drop: a flow that lost a packet is spared for so long (8B/rate)\n"
    "  --early-from front|back  early drop: a flow's first packet that waits, or what arrives (front)\n"
    "  --early-patience N       early drop from the front: after N gaps, of what arrives; 0: never (0)\n"
    "  --seed N                 early drop: of the gaps (1)\n"
    "  --seconds N              stop after so long; 0: at SIGINT or SIGTERM (0)\n"
    "  --record FILE            write what happened, for dataplane/replay.c\n"
    "  --record-events N        most events of the record, up to 100000000 (1000000)\n";

/* Ends the program with one line: 1 for a failure, 2 for bad input. */
__attribute__((format(printf, 2, 3), noreturn)) static void give_up(int status, const char *format,
                                                                    ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}

static uint64_t setting_number(const char *name, const char *text, uint64_t least, uint64_t most)
{
    uint64_t value = 0;
    const char *digit = text;

    while (*digit >= '0' && *digit <= '9' && value <= most) {
        value = 10u * value + (uint64_t)(*digit++ - '0');
    }
    if (digit == text || *digit != '\0' || value < least || value > most) {
        give_up(2, "--%s is '%s'; must be a whole number from %" PRIu64 " to %" PRIu64, name, text,
                  least, most);
    }
    return value;
}

static void add_host(struct settings *settings, char *text)
{
    char *const equals = strchr(text, '=');
    struct host *host = &settings->host[settings->hosts];

    if (settings->hosts == MAX_HOSTS) {
        give_up(2, "--host: more than %d hosts", MAX_HOSTS);
    }
    if (equals == NULL) {
        give_up(2, "--host is '%s'; must be MAC=PORT, such as 02:00:00:00:00:01=0", text);
    }
    *equals = '\0';
    if (rte_ether_unformat_addr(text, &host->address) != 0) {
        give_up(2, "--host: '%s' is no address; must be six bytes such as 02:00:00:00:00:01", text);
    }
    host->port = (uint32_t)setting_number("host", equals + 1, 0, NDT_MAX_PORTS - 1);
    settings->hosts++;
}

/* Returns 1 if the text is the first of two words. */
static int is_first(const char *name, const char *text, const char *first, const char *second)
{
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0) {
        give_up(2, "--%s is '%s'; must be %s or %s", name, text, first, second);
    }
    return strcmp(text, first) == 0;
}

/* The options that are numbers. */
static const struct number_option {
    const char *name;
    uint64_t least, most;
    size_t place;
} number_options[] = {
    { "rate-mbit", 1, 100000, offsetof(struct settings, rate_mbit) },
    { "buffer-bytes", 4096, UINT64_C(1) << 30, offsetof(struct settings, buffer_bytes) },
    { "short-bytes", 0, UINT64_C(1) << 40, offsetof(struct settings, short_bytes) },
    { "idle-us", 0, UINT64_C(1) << 40, offsetof(struct settings, idle_us) },
    { "alpha-short-log2", 0, 20, offsetof(struct settings, short_shift) },
    { "early-min-bytes", 1, UINT64_C(1) << 30, offsetof(struct settings, min_bytes) },
    { "early-patience", 0, UINT32_MAX, offsetof(struct settings, patience) },
    { "early-grace-us", 1, UINT64_C(1) << 40, offsetof(struct settings, grace_us) },
    { "seed", 0, UINT64_C(1) << 62, offsetof(struct settings, seed) },
    { "seconds", 0, 1000000, offsetof(struct settings, seconds) },
    { "record-events", 1, 100000000, offsetof(struct settings, record_events) },
};

#define NUMBERS (sizeof number_options / sizeof number_options[0])
/* With the end of the list. */
#define OTHERS 6

enum other_option { OPTION_HOST = 'h', OPTION_LOW_LEVEL, OPTION_EARLY_FROM, OPTION_RECORD, OPTION_HELP };

static void set_number(struct settings *settings, const struct number_option *option,
                       const char *text)
{
    const uint64_t value = setting_number(option->name, text, option->least, option->most);

    memcpy((char *)settings + option->place, &value, sizeof value);
}

/* The options for getopt_long: a number by its place in the table, others by their letter. */
static void list_options(struct option options[NUMBERS + OTHERS])
{
    static const struct option others[OTHERS] = {
        { "host", required_argument, NULL, OPTION_HOST },
        { "low-level", required_argument, NULL, OPTION_LOW_LEVEL },
        { "early-from", required_argument, NULL, OPTION_EARLY_FROM },
        { "record", required_argument, NULL, OPTION_RECORD },
        { "help", no_argument, NULL, OPTION_HELP },
        { NULL, 0, NULL, 0 },
    };
    size_t number;

    for (number = 0; number < NUMBERS; number++) {
        options[number] =
            (struct option){ number_options[number].name, required_argument, NULL, (int)number };
    }
    memcpy(options + NUMBERS, others, sizeof others);
}

/* Reads the command line. argv[0] is the program, or the -- before its own arguments. */
static void read_settings(struct settings *settings, int argc, char **argv)
{
    struct option options[NUMBERS + OTHERS];
    int option;

    *settings = (struct settings){ .rate_mbit = 100,
                                   .buffer_bytes = 262144,
                                   .fab = 1,
                                   .short_bytes = 10000,
                                   .idle_us = 10000,
                                   .short_shift = 11,
                                   .from_front = 1,
                                   .seed = 1,
                                   .record_events = 1000000 };
    list_options(options);
    optind = 1;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case OPTION_HOST:
            add_host(settings, optarg);
            break;
        case OPTION_LOW_LEVEL:
            settings->fab = is_first("low-level", optarg, "fab", "dt");
            break;
        case OPTION_EARLY_FROM:
            settings->from_front = is_first("early-from", optarg, "front", "back");
            break;
        case OPTION_RECORD:
            settings->record = optarg;
            break;
        case OPTION_HELP:
            fputs(usage, stdout);
            exit(0);
        case '?':
            give_up(2, "see --help behind the --");
        default:
            set_number(settings, &number_options[option], optarg);
        }
    }
    if (optind < argc) {
        give_up(2, "'%s' is no option; see --help behind the --", argv[optind]);
    }
    if (settings->patience > 0 && !settings->from_front) {
        give_up(2, "--early-patience is for drops from the front; it needs --early-from front");
    }
    if (settings->hosts == 0) {
        give_up(2, "no --host MAC=PORT: there is nobody to forward to");
    }
}

static uint64_t rate_bps(const struct settings *settings)
{
    return settings->rate_mbit * 1000000u;
}

/* Checks the ports of hosts, and fills what follows from the number of ports. */
static void complete_settings(struct settings *settings, uint32_t ports)
{
    uint32_t host;

    if (ports == 0 || ports > NDT_MAX_PORTS) {
        give_up(2, "%" PRIu32 " ports; must be 1 to %d, each a --vdev of the EAL arguments", ports,
                  NDT_MAX_PORTS);
    }
    for (host = 0; host < settings->hosts; host++) {
        if (settings->host[host].port >= ports) {
            give_up(2, "--host: there is no port %" PRIu32 "; there are %" PRIu32 ", from 0",
                      settings->host[host].port, ports);
        }
    }
    if (settings->min_bytes == 0) {
        settings->min_bytes = settings->buffer_bytes / (4u * ports);
    }
    if (settings->grace_us == 0) {
        settings->grace_us = settings->buffer_bytes * 8u / settings->rate_mbit;
    }
}

#endif
