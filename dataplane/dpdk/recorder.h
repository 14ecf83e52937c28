/*
 * What happened at the switch, in the order in which it happened, and as a record for dataplane/replay.c
 * (docs/control-loop.md has the format). Events are kept in memory while the switch forwards, and written
 * at its end.
 */
#ifndef NDT_RECORDER_H
#define NDT_RECORDER_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decider.h" /* before ndt_early.h: the network has its gaps */
#if NDT_OUTPUTS == 2
#include "ndt_early.h"
#endif
#include "settings.h"

struct record_event {
    uint64_t ns;
    uint32_t flow; /* of a packet; of a decision, its number */
    uint32_t bytes;
    uint16_t port;
    char kind;
    uint8_t cause; /* of a decision */
};

/* The levels of a decision. */
struct record_levels {
    uint8_t alpha[NDT_MAX_PORTS], early[NDT_MAX_PORTS];
};

struct recorder {
    struct record_event *events;
    uint64_t count, most; /* most is 0 where nothing is recorded */
    struct record_levels *levels;
    uint32_t decisions, most_decisions;
    uint64_t last_ns;
    int full;
    int open; /* the decision recorded last has no levels yet */
#if NDT_OUTPUTS == 2
    uint64_t random[NDT_MAX_PORTS][4]; /* states of the ports' generators at the beginning */
#endif
};

/* Room for so many events; every page is touched now, so that none is fetched while packets wait.
 * 0, or -1 without the memory. */
static int recorder_start(struct recorder *recorder, uint64_t most)
{
    const uint64_t decisions = most / 64u + 16u;

    recorder->events = malloc(most * sizeof *recorder->events);
    recorder->levels = malloc(decisions * sizeof *recorder->levels);
    if (recorder->events == NULL || recorder->levels == NULL) {
        return -1;
    }
    memset(recorder->events, 0, most * sizeof *recorder->events);
    memset(recorder->levels, 0, decisions * sizeof *recorder->levels);
    recorder->most = most;
    recorder->most_decisions = (uint32_t)decisions;
    return 0;
}

static void recorder_add(struct recorder *recorder, const struct record_event *event)
{
    if (recorder->count == recorder->most) {
        recorder->full = recorder->most > 0;
        return;
    }
    if (!recorder->full) {
        recorder->events[recorder->count++] = *event;
        recorder->last_ns = event->ns;
    }
}

static void record_packet(struct recorder *recorder, char kind, uint64_t ns, uint32_t port,
                          uint32_t bytes, uint32_t flow)
{
    const struct record_event event = {
        .ns = ns, .flow = flow, .bytes = bytes, .port = (uint16_t)port, .kind = kind
    };

    recorder_add(recorder, &event);
}

/* A decision is due; its levels are not known yet. */
static void record_decision(struct recorder *recorder, uint64_t ns, enum ndt_cause cause)
{
    const struct record_event event = {
        .ns = ns, .flow = recorder->decisions, .kind = 'D', .cause = (uint8_t)cause
    };

    if (recorder->decisions == recorder->most_decisions) {
        recorder->full = recorder->most > 0;
        return;
    }
    recorder_add(recorder, &event);
    recorder->open = !recorder->full && recorder->most > 0;
    recorder->decisions += (uint32_t)recorder->open;
}

/* The levels of the decision that is due, also where the record has become full since. */
static void record_levels(struct recorder *recorder, uint32_t ports, const uint8_t *alpha,
                          const uint8_t *early)
{
    if (recorder->open) {
        struct record_levels *levels = &recorder->levels[recorder->decisions - 1u];

        memcpy(levels->alpha, alpha, ports);
        memcpy(levels->early, early, ports);
        recorder->open = 0;
    }
}

/* They are in force. */
static void record_application(struct recorder *recorder, uint64_t ns)
{
    const struct record_event event = { .ns = ns, .kind = 'L' };

    recorder_add(recorder, &event);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Early drop, as the record's heuristic names it. */
static void write_early_name(FILE *file, const struct settings *settings)
{
    if (NDT_OUTPUTS == 2) {
        fprintf(file, settings->from_front ? "+early:from=front" : "+early");
    }
    if (NDT_OUTPUTS == 2 && settings->patience > 0) {
        fprintf(file, ",patience=%" PRIu64, settings->patience);
    }
}

static void write_header(FILE *file, const struct recorder *recorder,
                         const struct settings *settings, const struct ndt_control *control)
{
    fprintf(file, "bufgym-control-record,%d\npolicy,ndt-int8 on DPDK\nlow_level,", NDT_OUTPUTS);
    if (settings->fab) {
        fprintf(file, "fab:alpha_short=%d,short_bytes=%" PRIu64 ",idle_us=%" PRIu64,
                1 << settings->short_shift, settings->short_bytes, settings->idle_us);
        write_early_name(file, settings);
        fprintf(file, "\nfab_alpha_short,%d\nfab_short_bytes,%" PRIu64 "\nfab_idle_ps,%" PRIu64 "\n",
                1 << settings->short_shift, settings->short_bytes, settings->idle_us * 1000000u);
    } else {
        fputs("dt", file);
        write_early_name(file, settings);
        fputc('\n', file);
    }
    fprintf(file, "trigger,cumulative-event\nports,%" PRIu32 "\nqueues_per_port,1\n",
            control->ports);
    fprintf(file, "buffer_bytes,%" PRIu64 "\nrate_bps,%" PRIu64 "\n", settings->buffer_bytes,
            rate_bps(settings));
    fprintf(file, "beta_bytes,%" PRIu64 "\ngamma_bytes,%" PRIu64 "\ncount_in_service,1\n",
            control->beta, control->gamma);
    fprintf(file, "decision_latency_ps,0\ndecision_latency_varies,1\nmax_interval_ps,0\n");
#if NDT_OUTPUTS == 2
    {
        const uint32_t shortest = ndt_early_shortest(settings->buffer_bytes);
        uint32_t port;
        uint8_t level;

        fprintf(file, "early_min_bytes,%" PRIu64 "\nearly_grace_ps,%" PRIu64 "\nearly_spare,1\n",
                settings->min_bytes, settings->grace_us * 1000000u);
        if (settings->from_front) {
            fprintf(file, "early_from_front,1\n");
        }
        if (settings->patience > 0) {
            fprintf(file, "early_patience,%" PRIu64 "\n", settings->patience);
        }
        fprintf(file, "early_gaps");
        for (level = 0; level < NDT_EARLY_LEVELS; level++) {
            fprintf(file, "%c%" PRIu32, level == 0 ? ',' : ' ',
                    ndt_early_gap(shortest, level));
        }
        for (port = 0; port < control->ports; port++) {
            const uint64_t *state = recorder->random[port];

            fprintf(file, "\nearly_random,%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, state[0],
                    state[1], state[2], state[3]);
        }
        fputc('\n', file);
    }
#else
    (void)recorder;
#endif
    fprintf(file, "begin\n");
}

static void write_levels(FILE *file, const uint8_t *levels, uint32_t ports)
{
    uint32_t port;

    for (port = 0; port < ports; port++) {
        fprintf(file, ",%d", levels[port]);
    }
}

static void write_event(FILE *file, const struct recorder *recorder,
                        const struct record_event *event, uint32_t ports)
{
    static const char *const causes[] = { "none", "excess", "safeguard", "interval" };

    fprintf(file, "%c,%" PRIu64, event->kind, event->ns * 1000u);
    if (event->kind == 'D') {
        const struct record_levels *levels = &recorder->levels[event->flow];

        fprintf(file, ",%s", causes[event->cause]);
        write_levels(file, levels->alpha, ports);
        if (NDT_OUTPUTS == 2) {
            write_levels(file, levels->early, ports);
        }
    } else if (event->kind != 'L') {
        fprintf(file, ",%d,%" PRIu32 ",%" PRIu32, event->port, event->bytes, event->flow);
    }
    fputc('\n', file);
}

/* Writes the record. 0, or -1 where the file cannot be written. */
static int recorder_write(const struct recorder *recorder, const struct settings *settings,
                          const struct ndt_control *control)
{
    FILE *const file = fopen(settings->record, "w");
    uint64_t number;
    int failed;

    if (file == NULL) {
        return -1;
    }
    write_header(file, recorder, settings, control);
    for (number = 0; number < recorder->count; number++) {
        write_event(file, recorder, &recorder->events[number], control->ports);
    }
    fprintf(file, "E,%" PRIu64 ",limit,%" PRIu64 ",%" PRIu32 "\n", recorder->last_ns * 1000u,
            recorder->count, recorder->decisions);
    failed = ferror(file);
    return fclose(file) != 0 || failed ? -1 : 0;
}

#endif
