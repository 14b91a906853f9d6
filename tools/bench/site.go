//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/daemon"
)

// site is a place where a daemon works: repos, with a home, settings and state of their own, and the real daemon.
type site struct {
	b     *bench
	dir   string
	repos []string
	env   []string
	cmd   *exec.Cmd // the daemon; nil = none runs
	log   *os.File
	boots int // of a daemon that is profiled

	manager  string // the socket that the daemon tells its state; "" = none
	profiled bool   // where profiles are asked for: they cost something
}

// settings leave everything as it is shipped, but that no desktop is asked.
const settings = "notify: {desktop: false}\n"

// newSite makes one in a folder, with a git repo for each of the names. specs are workflow id -> YAML, in every repo.
func (b *bench) newSite(ctx context.Context, folder, name string, specs map[string]string, repos ...string) (*site, error) {
	s := &site{b: b, dir: filepath.Join(folder, name)}
	s.env = []string{
		"HOME=" + s.at("home"), "XDG_STATE_HOME=" + s.at("state"), "XDG_CONFIG_HOME=" + s.at("config"), "XDG_RUNTIME_DIR=" + s.at("run"), "SLUICE_CONFIG_SANDBOX_MODE=off",
		"GIT_CONFIG_NOSYSTEM=1", "NO_COLOR=1", "LC_ALL=C", "PATH=" + os.Getenv("PATH"),
	}
	files := map[string]string{
		"home/.gitconfig":           "[user]\n\tname = A Person\n\temail = person@example.org\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n",
		"config/sluice/config.yaml": settings,
		"state/sluice/.keep":        "",
		"run/.keep":                 "",
	}
	for _, r := range repos {
		files[r+"/.workflow/.gitignore"] = "signals/\nruns/\nretry-context/\nbacklog/\n"
		files[r+"/README.md"] = "a repo\n"
		for id, spec := range specs {
			files[r+"/.workflow/specs/"+id+".yaml"] = spec
		}
	}
	for file, text := range files {
		if err := writeFile(s.at(file), text); err != nil {
			return nil, err
		}
	}
	for _, r := range repos {
		s.repos = append(s.repos, s.at(r))
		for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "start"}} {
			if _, err := s.run(ctx, s.at(r), "git", args...); err != nil {
				return nil, err
			}
		}
		if _, err := s.run(ctx, s.at(r), b.sluice, "watch", "add"); err != nil {
			return nil, err
		}
	}
	var err error
	s.log, err = os.OpenFile(s.at("daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return s, err
}

// writeFile writes a file, and the folders above it where they are missing.
func writeFile(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func (s *site) at(name string) string { return filepath.Join(s.dir, name) }

// run runs a command in a folder of the site.
func (s *site) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// boot starts the daemon and waits until it answers for all its repos.
func (s *site) boot(ctx context.Context) error {
	if err := s.exec(); err != nil {
		return err
	}
	return eventually(ctx, "the daemon serves", func() (bool, error) { return s.serves(ctx) })
}

// exec starts the daemon.
func (s *site) exec() error {
	s.cmd = exec.Command(s.b.sluice, "daemon")
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = s.dir, s.env, s.log, s.log
	if s.manager != "" {
		s.cmd.Env = append(slices.Clip(s.env), "NOTIFY_SOCKET="+s.manager)
	}
	if s.b.profile != "" && s.profiled {
		s.boots++
		dir, err := filepath.Abs(filepath.Join(s.b.profile, fmt.Sprintf("%s-%d", filepath.Base(s.dir), s.boots)))
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err != nil {
			return err
		}
		s.cmd.Env = append(slices.Clip(s.cmd.Env), "SLUICE_PROFILE="+dir)
	}
	return s.cmd.Start()
}

// serves reports whether every repo is served.
func (s *site) serves(ctx context.Context) (bool, error) {
	c := daemon.NewDaemonClient(s.at("state/sluice"))
	defer c.Close()
	states, err := c.Repos(ctx)
	if err != nil {
		return false, err
	}
	n := 0
	for _, r := range states {
		if r.Served {
			n++
		}
	}
	return n == len(s.repos), nil
}

// client talks to who serves a repo.
func (s *site) client(repo string) (*daemon.Client, error) {
	dir, err := s.state(repo)
	if err != nil {
		return nil, err
	}
	return daemon.NewClient(dir), nil
}

// state is the state folder of a repo.
func (s *site) state(repo string) (string, error) {
	dirs, err := filepath.Glob(s.at("state/sluice/" + filepath.Base(repo) + "-????????????"))
	if err != nil || len(dirs) != 1 {
		return "", fmt.Errorf("the state folder of %s: %d there are (%v)", repo, len(dirs), err)
	}
	return dirs[0], nil
}

// stop ends the daemon as a service manager would.
func (s *site) stop() error {
	if s.cmd == nil {
		return nil
	}
	cmd := s.cmd
	s.cmd = nil
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return errors.Join(err, cmd.Wait())
	}
	late := time.AfterFunc(waitMost, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("the daemon ends with %w", err)
	}
	return nil
}

// close ends the daemon and puts the site aside; after a failure it prints the end of the daemon's log. What is on the
// disk is removed with the bench: for each new file ext4 looks through those nearby that were removed in the last minutes.
func (s *site) close(failed *error) {
	err := s.stop()
	s.log.Close()
	if *failed == nil {
		*failed = err
	}
	if *failed != nil {
		text, _ := os.ReadFile(s.at("daemon.log"))
		fmt.Fprintf(s.b.progress, "the daemon's log ends:\n%s\n", text[max(0, len(text)-4000):])
	}
	if filepath.Dir(s.dir) == s.b.work {
		s.b.aside++
		if os.Rename(s.dir, filepath.Join(s.b.work, fmt.Sprint("aside-", s.b.aside))) == nil {
			return
		}
	}
	_ = os.RemoveAll(s.dir)
}
