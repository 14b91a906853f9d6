package deploy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sluice/daemon"
	"sluice/internal/text"
)

// pingMost is how long the daemon may take to answer.
const pingMost = 3 * time.Second

// State is how the service stands: what its manager says, and what the daemon in it does.
type State struct {
	Status
	Version string             `json:"version,omitempty"` // of the daemon that answers
	Repos   []daemon.RepoState `json:"repos"`
}

// DaemonHome is the state folder of the machine's daemon.
func DaemonHome() string { return filepath.Join(SystemHome, ".local", "state", "sluice") }

// Look asks the manager and, if the service runs, the daemon; home names its state folder.
func (s *Service) Look(ctx context.Context, home func() (string, error)) (State, error) {
	st := State{Repos: []daemon.RepoState{}}
	var err error
	if st.Status, err = s.Status(ctx); err != nil || st.State != StateRunning {
		return st, err
	}
	dir, err := home()
	if err != nil {
		st.Why = "the state of its repos is unknown: " + err.Error()
		return st, nil
	}
	st.lookInside(ctx, dir)
	return st, nil
}

// lookInside asks the daemon. The manager knows a process; only the daemon knows whether it serves.
func (st *State) lookInside(ctx context.Context, home string) {
	c := daemon.NewDaemonClient(home)
	defer c.Close()
	within, cancel := context.WithTimeout(ctx, pingMost)
	defer cancel()
	ping, err := c.Ping(within)
	switch {
	case errors.Is(err, daemon.ErrNotServed) && st.System && !isDir(home):
		st.Why = "only root can see the state of its repos"
		return
	case err != nil:
		st.State, st.Why = StateDegraded, "the daemon does not answer: "+err.Error()
		return
	case ping.PID != st.PID:
		st.State, st.Why = StateDegraded, "another daemon than the service's answers: end it (pid "+strconv.Itoa(ping.PID)+")"
		return
	}
	st.Version = ping.Version
	repos, err := c.Repos(within)
	if err != nil {
		st.State, st.Why = StateDegraded, "the daemon does not list its repos: "+err.Error()
		return
	}
	st.Repos = append(st.Repos, repos...)
	unwell := 0
	for _, r := range repos {
		if !r.Served || len(r.Health) > 0 {
			unwell++
		}
	}
	if unwell > 0 {
		st.State, st.Why = StateDegraded, text.Plural(unwell, "repo")+" of "+strconv.Itoa(len(repos))+" with a problem"
	}
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
