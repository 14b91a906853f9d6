package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
)

// maxWithin bounds what a command within the service may say.
const maxWithin = 1 << 20

// Within runs the service's binary once with other arguments, as the service itself runs: by a unit
// made of the installed one and its drop-ins, with its user, its environment and its limits. It
// gives what was said, and complaints; that the command ended with an error is none here.
func (s *Service) Within(ctx context.Context, args ...string) (said, complaints []byte, err error) {
	if s.launchd {
		return nil, nil, fmt.Errorf("within the service: %w: launchd runs nothing in another's environment", ErrNoManager)
	}
	st, err := s.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	if st.State == StateAbsent || st.Program == "" {
		return nil, nil, fault.New(fmt.Sprintf("`sluice service install%s` does it", s.flag()), "service: not installed")
	}
	// Not CombinedOutput: what systemctl complains of is no part of the unit.
	text, err := exec.CommandContext(ctx, "systemctl", s.scoped("cat", Unit)...).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("service: systemctl cat: %w", err)
	}
	run, units := "/run", "/run/systemd/system"
	if !s.opt.System {
		run = os.Getenv("XDG_RUNTIME_DIR") // Open saw to it
		units = filepath.Join(run, "systemd", "user")
	}
	name := fmt.Sprintf("%s-once-%d.service", Name, os.Getpid())
	out := filepath.Join(run, strings.TrimSuffix(name, ".service")+".out")
	text2, err := Once(string(text), append([]string{st.Program}, args...), out)
	if err != nil {
		return nil, nil, fmt.Errorf("service: %w", err)
	}
	if err := os.MkdirAll(units, 0o755); err != nil {
		return nil, nil, fmt.Errorf("service: %w", err)
	}
	file := filepath.Join(units, name)
	if err := atomicfile.Write(file, []byte(text2), 0o644); err != nil {
		return nil, nil, fmt.Errorf("service: %w", err)
	}
	defer func() {
		err = errors.Join(err, os.Remove(file), s.systemctl(context.WithoutCancel(ctx), "daemon-reload"))
		// only where it failed there is something to forget
		_, _ = command(context.WithoutCancel(ctx), "systemctl", s.scoped("reset-failed", name)...)
		_, _ = os.Remove(out), os.Remove(out+".err")
	}()
	if err := s.systemctl(ctx, "daemon-reload"); err != nil {
		return nil, nil, err
	}
	started := s.systemctl(ctx, "start", name) // comes back when the command has ended
	if said, err = readSome(out); err == nil {
		complaints, err = readSome(out + ".err")
	}
	if err != nil || started != nil && len(said) == 0 {
		p := s.show(ctx, name)
		return said, complaints,
			fmt.Errorf("service: nothing runs in it: %s: %s", lastEnd(p), strings.TrimSpace(string(complaints)))
	}
	return said, complaints, nil
}

func readSome(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxWithin {
		err = fmt.Errorf("%s has %d bytes: more than %d are not read", file, info.Size(), maxWithin)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}
