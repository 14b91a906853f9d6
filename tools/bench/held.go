//go:build linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"sluice/daemon"
)

// aimHeld is the most that a launch in a sandbox may take, as a multiple of bubblewrap alone.
const aimHeld = 1.25

// heldLaunches measures what the sandbox adds to a launch: a chain of no-op commands, with and without it, in turns.
func heldLaunches(ctx context.Context, b *bench) (out []figure, err error) {
	n := b.count(50, 3)
	kinds := []struct{ name, settings string }{
		{"none", "sandbox: {mode: off}\n"},
		{"sandbox, no network", "sandbox: {mode: on}\nroles: {\"*\": {agent: claude, network: none}}\n"},
		{"sandbox, network by the proxy", "sandbox: {mode: on}\n"},
	}
	if _, err := exec.LookPath("bwrap"); err != nil {
		return []figure{{what: "sandbox: what it adds to a launch", got: "not measured", aim: fmt.Sprintf("<= %.2fx", aimHeld), met: notShown, notes: []string{"needs: bwrap (apt-get install bubblewrap)"}}}, nil
	}
	var sites []*site
	for i, k := range kinds {
		s, err := b.newSite(ctx, b.work, fmt.Sprint("row11-", i), map[string]string{"chain": commandsSpec(n)}, "repo")
		if err != nil {
			return nil, err
		}
		defer s.close(&err)
		s.env = slices.DeleteFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "SLUICE_CONFIG_SANDBOX_MODE=") })
		if err := writeFile(s.at("config/sluice/config.yaml"), settings+k.settings); err != nil {
			return nil, err
		}
		if err := s.boot(ctx); err != nil {
			return nil, err
		}
		sites = append(sites, s)
	}
	got := make([]samples, len(kinds))
	var alone, bare samples
	for range b.count(7, 1) {
		for range b.count(10, 1) {
			for to, argv := range map[*samples][]string{&alone: append(bubblewrap(b.work), "true"), &bare: {"true"}} {
				began := time.Now()
				if _, err := command(ctx, b.work, argv[0], argv[1:]...); err != nil {
					return nil, err
				}
				*to = append(*to, time.Since(began))
			}
		}
		for i, s := range sites {
			d, err := s.wholeRun(ctx, "chain")
			if err != nil {
				return nil, err
			}
			got[i] = append(got[i], d/time.Duration(n))
		}
	}
	plain, floor := got[0].p50(), alone.p50()-bare.p50()
	for i, k := range kinds[1:] {
		with := got[i+1].p50()
		f := figure{what: k.name + ": what it adds to a launch", got: ms(with - plain), beside: ms(floor) + " bubblewrap alone", ratio: over(with-plain, floor),
			aim: fmt.Sprintf("<= %.2fx", aimHeld), met: holds(over(with-plain, floor) <= aimHeld)}
		f.notes = []string{fmt.Sprintf("%d no-op commands in a row, the middle of %d runs; a step takes %s with it, %s without", n, len(got[i+1]), ms(with), ms(plain))}
		out = append(out, f)
	}
	return out, nil
}

// bubblewrap returns the arguments of a sandbox by hand, with the namespaces and about the mounts that a launch has: what is
// waited for is its own end, not that of all that it leaves to the kernel.
func bubblewrap(dir string) []string {
	a := []string{"bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net", "--die-with-parent", "--new-session", "--disable-userns",
		"--ro-bind", "/", "/", "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/sys", "--tmpfs", "/mnt", "--tmpfs", "/media", "--tmpfs", "/var/tmp"}
	for range 16 {
		a = append(a, "--ro-bind", dir, dir)
	}
	return append(a, "--chdir", dir)
}

// commandsSpec is a workflow of n no-op commands in a row.
func commandsSpec(n int) string {
	var t strings.Builder
	t.WriteString("workflow: {id: chain}\nsteps:\n")
	for i := range n {
		next := fmt.Sprint("S", i+1)
		if i == n-1 {
			next = "DONE"
		}
		fmt.Fprintf(&t, "  - {id: S%d, run: [\"true\"], next_step: %s}\n", i, next)
	}
	return t.String()
}

// wholeRun starts a workflow and gives the time from its run's start to its end, by its own record.
func (s *site) wholeRun(ctx context.Context, workflow string) (time.Duration, error) {
	if _, err := s.run(ctx, s.repos[0], s.b.sluice, "start", workflow); err != nil {
		return 0, err
	}
	return s.ended(ctx)
}

// ended waits for the end of the newest run that is nobody's child, and gives how long that took.
func (s *site) ended(ctx context.Context) (time.Duration, error) {
	api, err := s.client(s.repos[0])
	if err != nil {
		return 0, err
	}
	defer api.Close()
	var took time.Duration
	err = within(ctx, 10*waitMost, "the run is over", func() (bool, error) {
		st, err := api.Status(ctx, "")
		if err != nil {
			return false, err
		}
		var r *daemon.RunStatus
		for i := range st.Runs {
			if st.Runs[i].Child == nil {
				r = &st.Runs[i]
			}
		}
		if r == nil {
			return false, nil
		}
		took = r.Ended.Sub(r.Started)
		if r.Ended.IsZero() {
			return false, pause(ctx, 20*pollEvery)
		}
		if r.Phase != "completed" {
			return false, fmt.Errorf("run %s has ended as %s: %s", r.ID, r.Phase, r.EndWhy)
		}
		return true, nil
	})
	return took, err
}
