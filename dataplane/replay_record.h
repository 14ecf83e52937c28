/*
 * Reads a record of `bufgym sim --record-control`: its lines, their fields, and the header. What is
 * wrong with it ends the program with exit code 2 and one line. Part of replay.c, which alone
 * includes it.
 */
#ifndef NDT_REPLAY_RECORD_H
#define NDT_REPLAY_RECORD_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndt_control.h"

/* The version follows from what the network sets; the header of one that sets alpha only has no
 * NDT_OUTPUTS. */
#ifndef NDT_OUTPUTS
#define NDT_OUTPUTS 1
#endif

#define FORMAT_NAME "bufgym-control-record,"
#define MAX_QUEUES_PER_PORT 8
#define MAX_LINE (8192 + 4 * NDT_MAX_PORTS)

enum low_level { LOW_LEVEL_OTHER, LOW_LEVEL_DT, LOW_LEVEL_FAB };

/* The header's numbers, by key. */
enum key {
    KEY_PORTS,
    KEY_QUEUES_PER_PORT,
    KEY_BUFFER_BYTES,
    KEY_RATE_BPS,
    KEY_BETA_BYTES,
    KEY_GAMMA_BYTES,
    KEY_COUNT_IN_SERVICE,
    KEY_LATENCY_PS,
    KEY_MAX_INTERVAL_PS,
    KEY_FAB_SHORT_BYTES,
    KEY_FAB_IDLE_PS,
    KEY_LATENCY_VARIES,
    KEY_EARLY_MIN_BYTES,
    KEY_EARLY_GRACE_PS,
    KEY_EARLY_SPARE,
    KEY_EARLY_MARK,
    KEY_EARLY_FROM_FRONT,
    KEY_EARLY_PATIENCE,
    KEYS
};

static const char *const key_names[KEYS] = {
    "ports",           "queues_per_port",     "buffer_bytes",     "rate_bps",
    "beta_bytes",      "gamma_bytes",         "count_in_service", "decision_latency_ps",
    "max_interval_ps", "fab_short_bytes",     "fab_idle_ps",      "decision_latency_varies",
    "early_min_bytes", "early_grace_ps",      "early_spare",      "early_mark",
    "early_from_front", "early_patience",
};

static struct {
    const char *path;
    FILE *file;
    unsigned long number; /* of the line */
    char line[MAX_LINE];
    char *rest; /* what is not read yet of it */
} input;

static struct {
    uint64_t values[KEYS];
    int given[KEYS];
    enum low_level low_level;
    int has_low_level, has_trigger, has_short_shift, short_shift;
#if NDT_OUTPUTS == 2
    int has_gaps;
    uint64_t gaps[NDT_EARLY_LEVELS]; /* of early drop by level, packets */
    uint32_t generators;
    uint64_t random[NDT_MAX_PORTS][4]; /* states of the ports' generators */
#endif
} header;

/* ---- lines ----------------------------------------------------------------------------------- */

static void refuse(const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s:%lu: ", input.path, input.number);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

/* The next line without its end; 0 at the end of the file. */
static int next_line(void)
{
    size_t length;

    if (fgets(input.line, sizeof input.line, input.file) == NULL) {
        if (ferror(input.file)) {
            refuse("cannot be read");
        }
        return 0;
    }
    input.number++;
    length = strlen(input.line);
    if (length == 0 || input.line[length - 1] != '\n') {
        refuse(length + 1 == sizeof input.line ? "the line is too long"
                                               : "the line does not end, the record is cut off");
    }
    input.line[length - 1] = '\0';
    input.rest = input.line;
    return 1;
}

/* The next field of the line, or none. */
static char *next_field(void)
{
    char *field = input.rest, *comma;

    if (field == NULL) {
        return NULL;
    }
    comma = strchr(field, ',');
    if (comma != NULL) {
        *comma = '\0';
    }
    input.rest = comma != NULL ? comma + 1 : NULL;
    return field;
}

static uint64_t number_in(const char *text, const char *name)
{
    uint64_t value = 0;
    const char *digit;

    if (text == NULL || *text == '\0') {
        refuse("%s is missing; must be a whole number", name);
        return 0;
    }
    for (digit = text; *digit != '\0'; digit++) {
        const uint64_t one = (uint64_t)(*digit - '0');

        if (*digit < '0' || *digit > '9' || value > (UINT64_MAX - one) / 10u) {
            refuse("%s is '%s'; must be a whole number below 2^64", name, text);
        }
        value = 10u * value + one;
    }
    return value;
}

static uint64_t next_number(const char *name)
{
    return number_in(next_field(), name);
}

static void expect_end_of_line(void)
{
    if (input.rest != NULL) {
        refuse("'%s' is one field too many", input.rest);
    }
}

/* ---- header ---------------------------------------------------------------------------------- */

/* The k of 2^k. */
static int exponent_of(const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    double power = 1.0;
    int shift;

    if (end == text || *end != '\0') {
        refuse("fab_alpha_short is '%s'; must be a number", text);
    }
    for (shift = 0; power < value && shift < 20; shift++) {
        power *= 2.0;
    }
    for (; power > value && shift > -20; shift--) {
        power /= 2.0;
    }
    if (power < value || power > value) {
        refuse("fab_alpha_short is %s; this replay needs a power of two from 2^-20 to 2^20, which "
               "a dataplane multiplies with by a shift",
               text);
    }
    return shift;
}

/* Returns 1 if the text is so many numbers with a blank between them, which go to values. */
static int read_numbers(const char *text, uint64_t *values, int count)
{
    int number;

    for (number = 0; number < count; number++) {
        const size_t length = strcspn(text, " ");
        char digits[21];

        if (length == 0 || length >= sizeof digits || (text[length] == ' ') != (number + 1 < count)) {
            return 0;
        }
        memcpy(digits, text, length);
        digits[length] = '\0';
        values[number] = number_in(digits, "a number of the line");
        text += length + 1;
    }
    return 1;
}

/* The keys of records with early drop whose values are several numbers; 0 for any other. */
static int read_early_key(const char *key, const char *value)
{
#if NDT_OUTPUTS == 2
    if (strcmp(key, "early_gaps") == 0) {
        if (!read_numbers(value, header.gaps, NDT_EARLY_LEVELS)) {
            refuse("early_gaps is '%s'; must be %d numbers", value, NDT_EARLY_LEVELS);
        }
        header.has_gaps = 1;
        return 1;
    }
    if (strcmp(key, "early_random") == 0) {
        if (header.generators >= NDT_MAX_PORTS ||
            !read_numbers(value, header.random[header.generators], 4)) {
            refuse("early_random is '%s'; must be four numbers, for %d ports at most", value,
                   NDT_MAX_PORTS);
        }
        header.generators++;
        return 1;
    }
#else
    (void)key;
    (void)value;
    (void)read_numbers;
#endif
    return 0;
}

/* The heuristic, which early drop may follow behind a +. */
static enum low_level low_level_in(const char *text)
{
    const char *const plus = strchr(text, '+');
    const size_t name = strcspn(text, ":+");

    /* With other queue management behind it, verdicts are not of the heuristic alone. */
    if (plus != NULL && (NDT_OUTPUTS != 2 || strncmp(plus, "+early", 6) != 0)) {
        return LOW_LEVEL_OTHER;
    }
    if (name == 2 && strncmp(text, "dt", name) == 0) {
        return LOW_LEVEL_DT;
    }
    return name == 3 && strncmp(text, "fab", name) == 0 ? LOW_LEVEL_FAB : LOW_LEVEL_OTHER;
}

static void read_key(const char *key, const char *value)
{
    int which;

    for (which = 0; which < (NDT_OUTPUTS == 2 ? KEYS : KEY_EARLY_MIN_BYTES); which++) {
        if (strcmp(key, key_names[which]) == 0) {
            header.values[which] = number_in(value, key);
            header.given[which] = 1;
            return;
        }
    }
    if (strcmp(key, "low_level") == 0) {
        header.has_low_level = 1;
        header.low_level = low_level_in(value);
    } else if (strcmp(key, "fab_alpha_short") == 0) {
        header.has_short_shift = 1;
        header.short_shift = exponent_of(value);
    } else if (strcmp(key, "trigger") == 0) {
        header.has_trigger = 1;
        if (strcmp(value, "cumulative-event") != 0) {
            refuse("trigger '%s' is not for a dataplane; must be cumulative-event", value);
        }
    } else if (strcmp(key, "policy") != 0 && !read_early_key(key, value)) {
        refuse("unknown key '%s'", key);
    }
}

static void require(int condition, const char *key)
{
    if (!condition) {
        refuse("the header has no usable %s", key);
    }
}

static void check_header(void)
{
    const uint64_t *values = header.values;
    int which;

    for (which = 0; which < KEY_FAB_SHORT_BYTES; which++) {
        require(header.given[which], key_names[which]);
    }
    require(header.has_low_level, "low_level");
    require(header.has_trigger, "trigger");
    require(values[KEY_QUEUES_PER_PORT] >= 1 &&
                values[KEY_QUEUES_PER_PORT] <= MAX_QUEUES_PER_PORT,
            "queues_per_port (1 to 8)");
    require(values[KEY_COUNT_IN_SERVICE] <= 1, "count_in_service (0 or 1)");
    require(values[KEY_LATENCY_VARIES] <= 1, "decision_latency_varies (0 or 1)");
    if (values[KEY_PORTS] < 1 || values[KEY_PORTS] > NDT_MAX_PORTS) {
        refuse("%" PRIu64 " ports; this replay is compiled for 1 to %d, see NDT_MAX_PORTS",
               values[KEY_PORTS], NDT_MAX_PORTS);
    }
    if (header.low_level == LOW_LEVEL_FAB) {
        require(header.has_short_shift, "fab_alpha_short");
        require(header.given[KEY_FAB_SHORT_BYTES], "fab_short_bytes");
        require(header.given[KEY_FAB_IDLE_PS], "fab_idle_ps");
    }
#if NDT_OUTPUTS == 2
    for (which = KEY_EARLY_MIN_BYTES; which <= KEY_EARLY_SPARE; which++) {
        require(header.given[which], key_names[which]);
    }
    require(values[KEY_EARLY_SPARE] <= 1, "early_spare (0 or 1)");
    require(values[KEY_EARLY_MARK] <= 1, "early_mark (0 or 1)");
    require(values[KEY_EARLY_FROM_FRONT] <= 1, "early_from_front (0 or 1)");
    require(values[KEY_EARLY_PATIENCE] <= UINT32_MAX, "early_patience (below 2^32)");
    require(values[KEY_EARLY_PATIENCE] == 0 || values[KEY_EARLY_FROM_FRONT],
            "early_from_front, which early_patience needs");
    require(header.has_gaps, "early_gaps");
    require(header.generators == values[KEY_PORTS], "early_random for every port");
#endif
}

/* The first line: early drop is in version 2, and in no other. */
static void read_format(void)
{
    static const char version = '0' + NDT_OUTPUTS;
    const size_t length = sizeof FORMAT_NAME - 1;
    const int named = next_line() && strncmp(input.line, FORMAT_NAME, length) == 0;

    if (named && input.line[length] == version && input.line[length + 1] == '\0') {
        return;
    }
    if (named && (strcmp(input.line + length, "1") == 0 || strcmp(input.line + length, "2") == 0)) {
        refuse("a record of version %s, with decisions about %s; the network that this replay is "
               "compiled with sets %s",
               input.line + length, NDT_OUTPUTS == 2 ? "alpha only" : "early drop too",
               NDT_OUTPUTS == 2 ? "early drop too" : "alpha only");
    }
    refuse("not a record of version %c; must begin with the line " FORMAT_NAME "%c", version, version);
}

static void read_header(void)
{
    read_format();
    for (;;) {
        char *comma;

        if (!next_line()) {
            refuse("the header does not end; must end with the line begin");
        }
        if (strcmp(input.line, "begin") == 0) {
            break;
        }
        comma = strchr(input.line, ',');
        if (comma == NULL) {
            refuse("'%s' is no line of a header; must be key,value", input.line);
            return;
        }
        *comma = '\0';
        read_key(input.line, comma + 1);
    }
    check_header();
}

#endif
