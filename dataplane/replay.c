/*
 * Replays a record of `bufgym sim --record-control` through the dataplane's control loop and a
 * network in integers, and checks that both do what the simulator did: a trigger at the same events
 * with the same cause, the same levels on every port, and, with Dynamic Threshold or FAB below, the
 * same verdict about every packet, also where the network sets early drop besides, of packets that
 * arrive or at the head of their queues.
 *
 *     cc -std=c99 -O2 -I EXPORT -I dataplane dataplane/replay.c EXPORT/ndt_int8.c -o replay
 *     ./replay RECORD
 *
 * EXPORT is a folder with ndt_int8.h and ndt_int8.c of the policy that was recorded.
 *
 * Exit code 0: full agreement, with at least one decision compared. 1: a difference, or nothing to
 * compare. 2: a record that cannot be read or replayed, said in one line.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ndt_int8.h"

#include "ndt_control.h"
#include "ndt_flows.h"
#include "replay_record.h"

#if NDT_OUTPUTS == 2
/* With room for more flows than a record has at a time, so that the tables are exact; what is counted of
 * flows without a place says whether they were. */
#define NDT_LOSS_BITS 16
#define NDT_LOSS_PROBES 32
#define NDT_WAITING_BITS 16
#define NDT_WAITING_PROBES 32
#include "ndt_early.h"
#endif

/* Letters with which a line may begin. */
#if NDT_OUTPUTS == 2
#define LINES "arfemphsduDLE"
#else
#define LINES "arfpduDLE"
#endif

/* Differences of each kind that are printed; all are counted. */
#define SHOWN 5

static const char *const cause_names[] = {"none", "excess", "safeguard", "interval"};

/* Kinds of comparisons. */
enum kind { TRIGGERS, LEVELS, VERDICTS, HEADS, KINDS };

static const char *const kind_names[KINDS] = {"trigger", "level", "verdict", "head"};

struct counts {
    uint64_t events, arrivals, departures, pushed_out, early_drops, early_marks, head_drops, decisions;
    uint64_t compared[KINDS], different[KINDS];
};

static struct {
    uint64_t occupancy;
    uint64_t queues[NDT_MAX_PORTS * MAX_QUEUES_PER_PORT];
    uint64_t ports[NDT_MAX_PORTS];
} buffer;

static struct ndt_control control;
static struct ndt_flows flows;
#if NDT_OUTPUTS == 2
static struct ndt_early early;
#endif
static struct ndt_int8_workspace workspace;
static struct counts counts;
/* Recorded time, ps: of the last line, and of the last decision. */
static uint64_t now_ps, decided_ps;
/* The decision by interval after that is missing, which has been said. */
static int overdue;

/* ---- differences ----------------------------------------------------------------------------- */

static void differ(enum kind kind, const char *format, ...)
{
    va_list arguments;

    if (counts.different[kind]++ < SHOWN) {
        printf("line %lu: ", input.number);
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        putchar('\n');
    }
}

/* ---- early drop ------------------------------------------------------------------------------ */

#if NDT_OUTPUTS == 2

static void start_early(void)
{
    const uint32_t shortest = ndt_early_shortest(header.values[KEY_BUFFER_BYTES]);
    uint8_t level;

    for (level = 0; level < NDT_EARLY_LEVELS; level++) {
        const uint32_t gap = ndt_early_gap(shortest, level);

        if (header.gaps[level] != gap) {
            refuse("gap %d of early_gaps is %" PRIu64 "; that of the network is %" PRIu32, level,
                   header.gaps[level], gap);
        }
    }
    if (ndt_early_init(&early, control.ports, header.values[KEY_EARLY_MIN_BYTES],
                       header.values[KEY_EARLY_GRACE_PS], (int)header.values[KEY_EARLY_SPARE],
                       0) != NDT_CONTROL_OK) {
        refuse("a gap of early drop is no power of two");
    }
    memcpy(early.random, header.random, sizeof early.random);
    if (header.values[KEY_EARLY_FROM_FRONT]) {
        ndt_early_from_front(&early, (uint32_t)header.values[KEY_EARLY_PATIENCE]);
    }
}

/* The verdict with early drop, from that of the heuristic and the recorded one. Early drop sees the
 * packets that were admitted in the record, so that its counters stay those of the record. */
static char early_verdict(char ours, char kind, uint32_t port, uint32_t queue, uint32_t flow,
                          int is_short)
{
    const uint64_t length = buffer.queues[queue];
    static const char letters[] = {'a', 'e', 'm'};
    enum ndt_early_verdict verdict;

    if (ours == 0 || (kind != 'a' && kind != 'e' && kind != 'm')) {
        return ours;
    }
    /* Whether a packet can be marked is in its header, which a record does not have. One that was not
     * marked is as one that cannot be. */
    verdict = ndt_early_arrives(&early, port, (uint16_t)queue, flow, length, is_short, kind == 'm',
                                now_ps);
    if (kind != 'a') {
        early.left[port] = 0;
    }
    return ours == 'a' ? letters[verdict] : ours;
}

static void note_loss(uint32_t flow)
{
    ndt_early_lost(&early, flow, now_ps);
}

static void note_enqueued(uint32_t queue, uint32_t flow)
{
    ndt_early_enqueued(&early, (uint16_t)queue, flow);
}

static void note_expelled(uint32_t queue, uint32_t flow)
{
    ndt_early_expelled(&early, (uint16_t)queue, flow);
}

/* A packet comes to the head of its queue: kind is h where it was lost there, and s where it was sent. */
static void compare_head(char kind, uint32_t queue, uint32_t flow)
{
    const int lost = ndt_early_leaves(&early, (uint16_t)queue, flow);

    if (header.low_level == LOW_LEVEL_OTHER) {
        return;
    }
    counts.compared[HEADS]++;
    if (lost != (kind == 'h')) {
        differ(HEADS, "the packet at the head was %s, and is %s here", lost ? "sent" : "lost",
               lost ? "lost" : "sent");
    }
}

static int decide(void *user, const uint8_t *codes, uint32_t ports, uint8_t *levels,
                  uint8_t *early_levels)
{
    return ndt_int8_decide((struct ndt_int8_workspace *)user, codes, ports, levels, early_levels);
}

static int make_decision(void)
{
    return ndt_early_decide(&early, &control, buffer.ports, now_ps / 1000u, decide, &workspace);
}

static void apply(void)
{
    ndt_control_apply(&control);
    ndt_early_apply(&early);
}

#else

static void start_early(void)
{
}

static char early_verdict(char ours, char kind, uint32_t port, uint32_t queue, uint32_t flow,
                          int is_short)
{
    (void)kind;
    (void)port;
    (void)queue;
    (void)flow;
    (void)is_short;
    return ours;
}

static void note_loss(uint32_t flow)
{
    (void)flow;
}

static void note_enqueued(uint32_t queue, uint32_t flow)
{
    (void)queue;
    (void)flow;
}

static void note_expelled(uint32_t queue, uint32_t flow)
{
    (void)queue;
    (void)flow;
}

static void compare_head(char kind, uint32_t queue, uint32_t flow)
{
    (void)queue;
    (void)kind;
    (void)flow;
}

static int decide(void *user, const uint8_t *codes, uint32_t ports, uint8_t *levels)
{
    return ndt_int8_decide((struct ndt_int8_workspace *)user, codes, ports, levels);
}

static int make_decision(void)
{
    return ndt_control_decide(&control, buffer.ports, now_ps / 1000u, decide, &workspace);
}

static void apply(void)
{
    ndt_control_apply(&control);
}

#endif

/* ---- events ---------------------------------------------------------------------------------- */

static void start(void)
{
    if (ndt_control_init(&control, (uint32_t)header.values[KEY_PORTS],
                         header.values[KEY_BUFFER_BYTES], header.values[KEY_RATE_BPS],
                         header.values[KEY_BETA_BYTES], header.values[KEY_GAMMA_BYTES],
                         0) != NDT_CONTROL_OK) {
        refuse("the header's buffer_bytes, rate_bps, beta_bytes or gamma_bytes is out of range");
    }
    ndt_flows_init(&flows, header.values[KEY_FAB_SHORT_BYTES], header.values[KEY_FAB_IDLE_PS],
                   header.short_shift);
    start_early();
}

static void store(uint32_t queue, uint64_t bytes)
{
    buffer.queues[queue] += bytes;
    buffer.ports[queue / header.values[KEY_QUEUES_PER_PORT]] += bytes;
    buffer.occupancy += bytes;
}

static void release(uint32_t queue, uint64_t bytes)
{
    if (bytes > buffer.queues[queue]) {
        refuse("%" PRIu64 " bytes leave queue %" PRIu32 ", which holds %" PRIu64, bytes, queue,
               buffer.queues[queue]);
    }
    buffer.queues[queue] -= bytes;
    buffer.ports[queue / header.values[KEY_QUEUES_PER_PORT]] -= bytes;
    buffer.occupancy -= bytes;
}

/* The verdict of the control about a packet that is kind in the record, as the record's letter; 0 where
 * it is not known. */
static char verdict(char kind, uint32_t port, uint32_t queue, uint64_t bytes, uint32_t flow)
{
    const uint64_t length = buffer.queues[queue];
    const uint64_t free_bytes = control.buffer_bytes - buffer.occupancy;
    int admitted, is_short = 0;

    if (header.low_level == LOW_LEVEL_OTHER) {
        return 0;
    }
    if (header.low_level == LOW_LEVEL_FAB) {
        is_short = ndt_flow_is_short(&flows, flow, bytes, now_ps);
        admitted = ndt_flows_admit(&flows, &control, port, length, free_bytes, is_short);
    } else {
        admitted = ndt_control_admits(&control, port, length, free_bytes);
    }
    if (bytes > free_bytes) {
        return 'f';
    }
    return early_verdict(admitted ? 'a' : 'r', kind, port, queue, flow, is_short);
}

static const char *verdict_name(char kind)
{
    switch (kind) {
    case 'a':
        return "admitted";
    case 'r':
        return "refused";
    case 'e':
        return "dropped early";
    case 'm':
        return "marked early";
    default:
        return "lost for want of room";
    }
}

static void replay_arrival(char kind, uint32_t port, uint32_t queue, uint64_t bytes, uint64_t flow)
{
    const char ours = verdict(kind, port, queue, bytes, (uint32_t)flow);

    if (kind == 'm' && !header.values[KEY_EARLY_MARK]) {
        refuse("a packet is marked early, and the header has no early_mark");
    }
    counts.arrivals++;
    counts.early_drops += kind == 'e';
    counts.early_marks += kind == 'm';
    if (ours != 0) {
        counts.compared[VERDICTS]++;
        if (ours != kind) {
            differ(VERDICTS, "the packet was %s, and is %s here", verdict_name(kind),
                   verdict_name(ours));
        }
    }
    /* On with what was recorded, so that a difference is counted once. */
    if (kind == 'a' || kind == 'm') {
        if (bytes > control.buffer_bytes - buffer.occupancy) {
            refuse("a packet of %" PRIu64 " bytes is admitted where %" PRIu64 " are free", bytes,
                   control.buffer_bytes - buffer.occupancy);
        }
        store(queue, bytes);
        note_enqueued(queue, (uint32_t)flow);
        ndt_control_enqueued(&control, port, bytes);
    } else {
        ndt_control_dropped(&control, port, bytes);
        note_loss((uint32_t)flow);
    }
}

static void replay_packet(char kind)
{
    const uint64_t queue = next_number("queue"), bytes = next_number("bytes");
    const uint64_t queues_per_port = header.values[KEY_QUEUES_PER_PORT];
    const uint64_t flow = kind == 'u' ? 0 : next_number("flow");
    uint32_t port;

    expect_end_of_line();
    if (queue >= control.ports * queues_per_port) {
        refuse("there is no queue %" PRIu64 "; must be below %" PRIu64, queue,
               control.ports * queues_per_port);
    }
    if (bytes == 0 || bytes > control.buffer_bytes || flow > UINT32_MAX) {
        refuse("%" PRIu64 " bytes of flow %" PRIu64 "; must be 1 to the buffer's %" PRIu64
               ", and a flow below 2^32",
               bytes, flow, control.buffer_bytes);
    }
    port = (uint32_t)(queue / queues_per_port);
    if ((kind == 'h' || kind == 's') && !header.values[KEY_EARLY_FROM_FRONT]) {
        refuse("a packet at the head of its queue, and the header has no early_from_front");
    }
    switch (kind) {
    case 'd':
        if (header.values[KEY_COUNT_IN_SERVICE]) {
            release((uint32_t)queue, bytes);
        }
        ndt_control_departed(&control, port, bytes);
        counts.departures++;
        break;
    case 'p':
        release((uint32_t)queue, bytes);
        ndt_control_pushed_out(&control, port, bytes);
        note_expelled((uint32_t)queue, (uint32_t)flow);
        note_loss((uint32_t)flow);
        counts.pushed_out++;
        break;
    case 'h':
        compare_head(kind, (uint32_t)queue, (uint32_t)flow);
        release((uint32_t)queue, bytes);
        ndt_control_pushed_out(&control, port, bytes);
        note_loss((uint32_t)flow);
        counts.head_drops++;
        break;
    case 's':
        compare_head(kind, (uint32_t)queue, (uint32_t)flow);
        break;
    case 'u':
        release((uint32_t)queue, bytes);
        break;
    default:
        replay_arrival(kind, port, (uint32_t)queue, bytes, flow);
    }
}

/* ---- decisions ------------------------------------------------------------------------------- */

static enum ndt_cause cause_in(const char *text)
{
    int cause;

    for (cause = NDT_CAUSE_EXCESS; cause <= NDT_CAUSE_INTERVAL; cause++) {
        if (text != NULL && strcmp(text, cause_names[cause]) == 0) {
            return (enum ndt_cause)cause;
        }
    }
    refuse("the cause is '%s'; must be excess, safeguard or interval", text != NULL ? text : "");
    return NDT_CAUSE_NONE;
}

/* Longest time between decisions, ps. */
static uint64_t longest_interval(void)
{
    const uint64_t longest = header.values[KEY_MAX_INTERVAL_PS];
    const uint64_t latency = header.values[KEY_LATENCY_PS];

    if (longest == 0) {
        return UINT64_MAX;
    }
    return longest > latency ? longest : latency;
}

/* The caller's timer, which the control does not have: the recorded one must be on time. */
static void ring_timer(void)
{
    if (now_ps - decided_ps != longest_interval()) {
        differ(TRIGGERS, "a decision by interval %" PRIu64 " ps after the last",
               now_ps - decided_ps);
    }
    if (control.fired == NDT_CAUSE_NONE) {
        ndt_control_interval(&control);
    }
}

/* The levels of one output, of which there are so many; pending are those here. */
static void compare_output(const char *name, uint64_t count, uint8_t *pending)
{
    uint32_t port;

    for (port = 0; port < control.ports; port++) {
        const uint64_t level = next_number(name);

        if (level >= count) {
            refuse("%s %" PRIu64 " of port %" PRIu32 "; must be below %" PRIu64, name, level, port,
                   count);
        }
        counts.compared[LEVELS]++;
        if (pending[port] != level) {
            differ(LEVELS, "port %" PRIu32 " has %s %" PRIu64 ", and %d here", port, name, level,
                   pending[port]);
            pending[port] = (uint8_t)level;
        }
    }
}

static void compare_levels(void)
{
    compare_output("level", NDT_LEVELS, control.pending);
#if NDT_OUTPUTS == 2
    compare_output("early level", NDT_EARLY_LEVELS, early.pending);
#endif
    expect_end_of_line();
}

static void replay_decision(void)
{
    const enum ndt_cause cause = cause_in(next_field());
    int result;

    if (control.suspended) {
        refuse("a decision while the one before is not in force");
    }
    if (cause == NDT_CAUSE_INTERVAL) {
        ring_timer();
    }
    counts.compared[TRIGGERS]++;
    if (control.fired != cause) {
        differ(TRIGGERS, "a decision because of %s, and of %s here", cause_names[cause],
               cause_names[control.fired]);
        control.fired = cause;
    }
    result = make_decision();
    if (result != NDT_OK) {
        refuse("the network refuses %" PRIu32 " ports with code %d", control.ports, result);
    }
    compare_levels();
    counts.decisions++;
    decided_ps = now_ps;
    overdue = 0;
    if (header.values[KEY_LATENCY_PS] == 0 && !header.values[KEY_LATENCY_VARIES]) {
        apply();
    }
}

static void replay_application(void)
{
    expect_end_of_line();
    if (!control.suspended) {
        refuse("levels come into force, and none were decided");
    }
    if (!header.values[KEY_LATENCY_VARIES] &&
        now_ps - decided_ps != header.values[KEY_LATENCY_PS]) {
        differ(TRIGGERS, "levels come into force %" PRIu64 " ps after their decision",
               now_ps - decided_ps);
    }
    apply();
}

static void check_timer(void)
{
    if (!overdue && now_ps - decided_ps > longest_interval()) {
        differ(TRIGGERS, "no decision by interval before this line");
        overdue = 1;
    }
}

/* A trigger that the record knows nothing of. Packets that are pushed out, lost at the head or sent still
 * belong to the event of the line before, after which the decision comes. */
static void check_no_trigger(char kind)
{
    if (control.fired == NDT_CAUSE_NONE || strchr("Dpuhs", kind) != NULL) {
        return;
    }
    differ(TRIGGERS, "no decision before this line, and one because of %s here",
           cause_names[control.fired]);
    control.fired = NDT_CAUSE_NONE;
}

/* ---- the whole record ------------------------------------------------------------------------ */

static void replay_end(void)
{
    const char *reason = next_field();
    const int finished = reason != NULL && strcmp(reason, "finished") == 0;
    uint64_t events, decisions;

    if (!finished && (reason == NULL || strcmp(reason, "limit") != 0)) {
        refuse("the run ends by '%s'; must be finished or limit", reason != NULL ? reason : "");
    }
    events = next_number("events");
    decisions = next_number("decisions");
    expect_end_of_line();
    if (events != counts.events || decisions != counts.decisions) {
        refuse("%" PRIu64 " events and %" PRIu64 " decisions were written, %" PRIu64
               " and %" PRIu64 " are here",
               events, decisions, counts.events, counts.decisions);
    }
    /* At a limit a decision can be due that is not made any more. */
    if (finished) {
        check_no_trigger('E');
    }
    if (next_line()) {
        refuse("a line after the end");
    }
}

/* One line; 0 after the last. */
static int replay_line(void)
{
    const char *kind;
    uint64_t time;

    if (!next_line()) {
        refuse("the record is cut off; must end with a line E");
    }
    kind = next_field();
    if (kind == NULL || strlen(kind) != 1 || strchr(LINES, *kind) == NULL) {
        refuse("'%s' is no event; must be one of the letters " LINES, kind != NULL ? kind : "");
        return 0;
    }
    time = next_number("time");
    if (time < now_ps) {
        refuse("time goes back from %" PRIu64 " to %" PRIu64 " ps", now_ps, time);
    }
    now_ps = time;
    if (*kind == 'E') {
        replay_end();
        return 0;
    }
    check_no_trigger(*kind);
    check_timer();
    counts.events++;
    if (*kind == 'D') {
        replay_decision();
    } else if (*kind == 'L') {
        replay_application();
    } else {
        replay_packet(*kind);
    }
    return 1;
}

/* Prints what was counted; the differences in all. */
static uint64_t print_counts(void)
{
    uint64_t differences = 0;
    int kind;

    printf("events %" PRIu64 "\n", counts.events);
    printf("arrivals %" PRIu64 "\n", counts.arrivals);
    printf("departures %" PRIu64 "\n", counts.departures);
    printf("pushed_out %" PRIu64 "\n", counts.pushed_out);
    printf("decisions %" PRIu64 "\n", counts.decisions);
    for (kind = 0; kind < KINDS; kind++) {
        printf("%ss_compared %" PRIu64 "\n", kind_names[kind], counts.compared[kind]);
        printf("%s_differences %" PRIu64 "\n", kind_names[kind], counts.different[kind]);
        differences += counts.different[kind];
    }
    printf("flow_table_overflows %" PRIu64 "\n", flows.overflows);
#if NDT_OUTPUTS == 2
    printf("early_drops %" PRIu64 "\n", counts.early_drops);
    printf("early_marks %" PRIu64 "\n", counts.early_marks);
    printf("head_drops %" PRIu64 "\n", counts.head_drops);
    printf("loss_table_overflows %" PRIu64 "\n", early.overflows);
    printf("waiting_table_overflows %" PRIu64 "\n", early.uncounted);
#endif
    printf("differences %" PRIu64 "\n", differences);
    return differences;
}

int main(int argc, char **argv)
{
    uint64_t differences;

    if (argc != 2) {
        fprintf(stderr, "usage: %s RECORD   (of bufgym sim --record-control)\n",
                argc > 0 ? argv[0] : "replay");
        return 2;
    }
    input.path = argv[1];
    input.file = fopen(argv[1], "r");
    if (input.file == NULL) {
        fprintf(stderr, "%s: cannot be opened\n", argv[1]);
        return 2;
    }
    read_header();
    start();
    while (replay_line()) {
    }
    fclose(input.file);
    differences = print_counts();
    if (counts.decisions == 0) {
        printf("there was no decision to compare\n");
    }
    return differences == 0 && counts.decisions > 0 ? 0 : 1;
}
