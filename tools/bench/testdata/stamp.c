/* The command of a measured step: its first act is to read the clock. argv[1] is the pipe that it tells. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct timespec t;
	char line[32];
	clock_gettime(CLOCK_MONOTONIC, &t);
	if (argc < 2)
		return 2;
	int fd = open(argv[1], O_WRONLY | O_NONBLOCK);
	int n = snprintf(line, sizeof line, "%lld\n", t.tv_sec * 1000000000LL + t.tv_nsec);
	return fd < 0 || write(fd, line, n) != n;
}
