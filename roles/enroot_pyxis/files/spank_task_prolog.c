/*
 * Runs a task prolog before a task enters its container.
 *
 * slurmstepd runs TaskProlog after the plugins' task_init, so inside the container that pyxis has put
 * the task into: the program isn't there, and from Slurm 24.11 on the task then fails (NVIDIA/pyxis#163,
 * #83; src/slurmd/slurmstepd/task.c, exec_task). This plugin is before pyxis in plugstack.conf:
 *   required /usr/local/lib/slurm/spank_task_prolog.so PROGRAM
 * and does with PROGRAM what slurm.conf(5) says of TaskProlog: it runs as the user with the task's
 * environment, and its lines "export NAME=VALUE", "unset NAME" and "print TEXT" are followed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/spank.h>

SPANK_PLUGIN(task_prolog, 1)

static void follow(spank_t spank, char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "export ", 7) == 0) {
		char *value = strchr(line + 7, '=');
		if (value != NULL) {
			*value++ = '\0';
			if (spank_setenv(spank, line + 7, value, 1) != ESPANK_SUCCESS)
				slurm_error("task_prolog: can't set %s", line + 7);
		}
	} else if (strncmp(line, "unset ", 6) == 0) {
		spank_unsetenv(spank, line + 6);
	} else if (strncmp(line, "print ", 6) == 0) {
		printf("%s\n", line + 6);
		fflush(stdout);
	}
}

int slurm_spank_task_init(spank_t spank, int argc, char *argv[])
{
	char **environment = NULL, *line = NULL;
	size_t size = 0;
	int ends[2], status = 0;
	pid_t child;
	FILE *lines;

	if (argc != 1) {
		slurm_error("task_prolog: plugstack.conf must name one program");
		return -1;
	}
	if (access(argv[0], X_OK) != 0)
		return 0; /* no prolog on this node */
	if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS || pipe(ends) != 0) {
		slurm_error("task_prolog: can't prepare %s: %s", argv[0], strerror(errno));
		return -1;
	}
	child = fork();
	if (child == 0) {
		char *arguments[] = {argv[0], NULL};
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execve(argv[0], arguments, environment);
		_exit(127);
	}
	close(ends[1]);
	lines = fdopen(ends[0], "r");
	while (child > 0 && lines != NULL && getline(&line, &size, lines) > 0)
		follow(spank, line);
	free(line);
	if (lines != NULL)
		fclose(lines);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || status != 0) {
		slurm_error("task_prolog: %s failed (status %d)", argv[0], status);
		return -1;
	}
	return 0;
}
