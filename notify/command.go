package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"sluice/internal/text"
)

const (
	commandLimit = 10 * time.Second
	pipeGrace    = 200 * time.Millisecond // for output that a process outside the group keeps open
	maxOutput    = 2048                   // bytes of a process's output that are kept
)

// commandDir is where the person's program runs: a folder that no agent writes. In the repo, python -c would import an
// agent's json.py, outside any sandbox.
const commandDir = "/"

// command is the channel that runs a person's own program.
type command struct {
	argv  []string
	limit time.Duration
}

// CommandChannel is the name of the command in a Result.
const CommandChannel = "command"

func (c *command) Name() string { return CommandChannel }

func (c *command) Send(ctx context.Context, n Notice) error {
	escalated := ""
	if n.Escalated {
		escalated = "1"
	}
	env := append(os.Environ(),
		"SLUICE_NOTICE_ID="+n.ID,
		"SLUICE_NOTICE_KIND="+n.Kind,
		"SLUICE_NOTICE_TITLE="+n.Title,
		"SLUICE_NOTICE_BODY="+n.Body,
		"SLUICE_NOTICE_RUN="+n.Run,
		"SLUICE_NOTICE_GATE="+n.Gate,
		"SLUICE_NOTICE_URGENCY="+n.Urgency,
		"SLUICE_NOTICE_REPO="+n.Repo,
		"SLUICE_NOTICE_URL="+n.URL,
		"SLUICE_NOTICE_ESCALATED="+escalated,
	)
	said, err := runWithNotice(ctx, c.limit, c.argv, env, n)
	if err != nil && said != "" {
		return fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// runWithNotice runs argv with the notice as JSON on its standard input and waits up to limit.
// However it ends, nothing of its process group remains. It returns the end of the output.
func runWithNotice(ctx context.Context, limit time.Duration, argv, env []string, n Notice) (said string, err error) {
	data, err := json.Marshal(n)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if ctx.Err() != nil {
		return "", errors.New("cancelled before it started")
	}

	out := &tail{max: maxOutput}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = commandDir, append(env, "PWD="+commandDir)
	cmd.Stdin = bytes.NewReader(append(data, '\n'))
	cmd.Stdout = out
	cmd.Stderr = out
	cmd.WaitDelay = pipeGrace
	err = runGroup(cmd, ctx.Done())

	said = text.Clean(string(out.kept), maxWhy)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return said, fmt.Errorf("%s had not ended after %s: it was killed%w", argv[0], limit, errHung)
	case ctx.Err() != nil:
		return said, fmt.Errorf("%s was cancelled", argv[0])
	case errors.Is(err, exec.ErrWaitDelay): // exit 0, but a process outside the group keeps the pipe open
		return said, nil
	case err != nil:
		return said, fmt.Errorf("%s: %w", argv[0], err)
	}
	return said, nil
}

// tail keeps the last max bytes written to it.
type tail struct {
	max  int
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.max {
		p = p[len(p)-t.max:]
	}
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.max; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return n, nil
}
