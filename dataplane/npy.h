/*
 * Reads the arrays that the checks need from NumPy's files, and runs the checks on them.
 */
#ifndef NPY_H
#define NPY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An array of a .npy file: data of 4-byte floats or of bytes. */
struct array {
    unsigned char *data;
    unsigned long sizes[4];
    unsigned dimensions;
};

static void stop(const char *file, const char *problem)
{
    fprintf(stderr, "%s: %s\n", file, problem);
    exit(2);
}

/* Reads a file of version 1 as NumPy and bufgym write them: ten bytes, then a header of text. */
static struct array read_array(const char *name, const char *descr, unsigned long item)
{
    struct array array;
    unsigned char start[10];
    char header[1024];
    const char *text;
    unsigned long count = 1;
    size_t length;
    FILE *file = fopen(name, "rb");

    memset(&array, 0, sizeof array);
    if (file == NULL)
        stop(name, "cannot be opened");
    if (fread(start, 1, sizeof start, file) != sizeof start || memcmp(start, "\x93NUMPY\x01", 7) != 0)
        stop(name, "is no .npy file of version 1");
    length = start[8] + 256u * start[9];
    if (length >= sizeof header || fread(header, 1, length, file) != length)
        stop(name, "has a header that is too long or cut off");
    header[length] = '\0';
    if (strstr(header, descr) == NULL || strstr(header, "False") == NULL)
        stop(name, "has another type or order");
    text = strstr(header, "'shape': (");
    if (text == NULL)
        stop(name, "has no shape");
    text += strlen("'shape': (");
    while (*text != ')' && array.dimensions < 4) {
        char *end;
        array.sizes[array.dimensions] = strtoul(text, &end, 10);
        if (end == text)
            stop(name, "has a shape that cannot be read");
        count *= array.sizes[array.dimensions++];
        text = end + strspn(end, ", ");
    }
    array.data = malloc(count * item + 1);
    if (array.data == NULL || fread(array.data, item, count, file) != count)
        stop(name, "is cut off");
    fclose(file);
    return array;
}

static struct array read_named(const char *folder, const char *what, unsigned long ports,
    const char *descr, unsigned long item, unsigned dimensions)
{
    char name[1024];
    struct array array;

    if (snprintf(name, sizeof name, "%s/%s-%lu.npy", folder, what, ports) >= (int)sizeof name)
        stop(folder, "is too long a name");
    array = read_array(name, descr, item);
    if (array.dimensions != dimensions || array.sizes[1] != ports)
        stop(name, "has another shape");
    return array;
}

/* Outputs of the exported network, whose header comes first, and what the names of the files of each
 * begin with. Networks that set alpha only do not define NDT_OUTPUTS. */
#ifndef NDT_OUTPUTS
#define NDT_OUTPUTS 1
#endif

static const char *const prefixes[] = { "", "early-" };

/* As read_named, the array of one output. */
static struct array read_output(const char *folder, unsigned output, const char *what,
    unsigned long ports, const char *descr, unsigned long item)
{
    char name[64];

    snprintf(name, sizeof name, "%s%s", prefixes[output], what);
    return read_named(folder, name, ports, descr, item, 2);
}

/* Runs `check` on the folder and every number of ports of the command line. Returns an exit code. */
static int run_checks(int argc, char **argv, int refusal_failures,
    int (*check)(const char *folder, unsigned long ports))
{
    int failures = refusal_failures, k;

    if (failures != 0)
        printf("numbers of ports that there cannot be are not refused\n");
    if (argc < 3)
        stop(argv[0], "give a folder and numbers of ports");
    for (k = 2; k < argc; k++)
        failures += check(argv[1], strtoul(argv[k], NULL, 10));
    return failures != 0;
}

#endif
