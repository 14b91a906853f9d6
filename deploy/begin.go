package deploy

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"sluice/daemon"
	"sluice/internal/fault"
	"sluice/internal/text"
)

// How often and how long to wait for a user's manager that has just been started: 5s in all.
const (
	managerTries = 100
	managerPause = 50 * time.Millisecond
)

// OpenChange is OpenOwn for a change, which for the machine's service only root may make.
func OpenChange(opt Options) (*Service, error) {
	if opt.System && os.Geteuid() != 0 {
		return nil, fault.Failed("sudo "+strings.Join(os.Args, " "), "the machine's service is root's to change")
	}
	return OpenOwn(opt)
}

// OpenOwn finds the manager of a service that runs this binary.
func OpenOwn(opt Options) (s *Service, err error) {
	if opt.Program, err = os.Executable(); err != nil {
		return nil, err
	}
	s, err = Open(opt)
	for try := 0; opt.Linger && errors.Is(err, ErrNoUserManager) && try < managerTries; try++ {
		time.Sleep(managerPause)
		s, err = Open(opt)
	}
	if errors.Is(err, ErrNoManager) || errors.Is(err, ErrNoUserManager) {
		what, advice := fault.Split(err)
		return nil, &fault.Error{Cause: what, Advice: advice, Code: fault.ExitFailed, Err: err}
	}
	return s, err
}

// CheckProgram refuses a binary that will go away, or that the machine's service cannot see.
func CheckProgram(system bool) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return checkProgram(program, system)
}

func checkProgram(program string, system bool) error {
	if strings.Contains(program, "/go-build") {
		return fault.Failed("run `make install`, then `service install` with the installed binary",
			"%s is a binary of `go run`, which is removed afterwards", program)
	}
	for _, dir := range []string{"/home/", "/root/", "/run/user/"} {
		if system && strings.HasPrefix(program, dir) {
			return fault.Failed("run `sudo make install PREFIX=/usr/local`, then `service install --system` with the "+
				"installed binary",
				"%s is in a home folder, which the machine's service cannot see", program)
		}
	}
	return nil
}

// SettleLinger enables linger for a user's service if want is "yes", or if it is "" and ask agrees. It reports whether
// linger was enabled just now.
func SettleLinger(ctx context.Context, system bool, want string,
	ask func(question string) (bool, error)) (bool, error) {
	switch {
	case want != "" && want != "yes" && want != "no":
		return false, fault.Misused("--linger yes, or --linger no", "--linger %s", text.Line(want))
	case system || runtime.GOOS != "linux" || Lingers() || want == "no":
		return false, nil
	case want == "":
		yes, err := ask("Run it while you are logged out too (loginctl enable-linger)? `--linger yes|no` answers this")
		if err != nil || !yes {
			return false, err
		}
	}
	if err := Linger(ctx, true); err != nil {
		return false, fault.Failed("ask root to do it, or use --linger no", "%s", text.Message(err.Error()))
	}
	return true, nil
}

// Begin starts a service that was just installed. One that was there before is restarted: its
// binary and environment may be others now. Agents go on.
func (s *Service) Begin(ctx context.Context, home string, done Installed) error {
	if err := s.Alone(ctx, home); err != nil {
		return err
	}
	if done.Fresh {
		return s.Start(ctx)
	}
	return s.Restart(ctx)
}

// Alone refuses if a daemon that is not the service's already runs: the service's own would end at
// once, again and again.
func (s *Service) Alone(ctx context.Context, home string) error {
	c := daemon.NewDaemonClient(home)
	defer c.Close()
	within, cancel := context.WithTimeout(ctx, pingMost)
	defer cancel()
	ping, err := c.Ping(within)
	if err != nil {
		return nil //nolint:nilerr // nobody answers
	}
	if st, err := s.Status(ctx); err != nil || st.PID == ping.PID {
		return err
	}
	return fault.Failed("end that one (Ctrl-C, or `kill "+strconv.Itoa(ping.PID)+
		"`: agents keep running), then `sluice service start`",
		"a daemon runs already, pid %d, and it is not the service's", ping.PID)
}
