//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"sluice/daemon"
	"sluice/engine"
)

// aimBurst is how long a burst may take until each of its files is accounted for.
const aimBurst = 10 * time.Second

// burstMost is how long a burst is waited for before what is missing is called lost.
const burstMost = 3 * time.Minute

// burstOfSignals writes many files as fast as it can, in two ways: a person's passes, each for a gate that waits for it,
// all of which must count; and names that nothing waits for, each of which must be refused by name, on the record, and
// moved to rejected/ with its reason.
func burstOfSignals(ctx context.Context, b *bench) ([]figure, error) {
	runs, gates := b.count(1000, 3), b.count(50, 4)
	lost, err := plainBurst(ctx, b, runs*gates)
	if err != nil {
		return nil, err
	}
	passes, err := burstOfPasses(ctx, b, runs, gates)
	if err != nil {
		return nil, err
	}
	strangers, err := burstOfStrangers(ctx, b, runs*gates)
	out := []figure{passes, strangers}
	for i := range out {
		out[i].beside = fmt.Sprintf("a plain durable watcher loses %d", lost)
	}
	return out, err
}

// burst is many files that lie ready beside an inbox.
type burst struct {
	staged, inbox string
	names         []string // below the inbox
}

// stage writes n files beside the inbox, on the same file system; name gives each its place below the inbox.
func stage(inbox string, n int, text string, name func(int) string) (burst, error) {
	u := burst{staged: inbox + ".staged", inbox: inbox}
	if err := os.MkdirAll(u.staged, 0o755); err != nil {
		return u, err
	}
	for i := range n {
		u.names = append(u.names, name(i))
		if err := os.WriteFile(filepath.Join(u.staged, fmt.Sprint(i)), []byte(text), 0o644); err != nil {
			return u, err
		}
	}
	return u, nil
}

// strike renames all of them into the inbox, one after the other and as fast as it can, and gives when it began and how
// long that took.
func (u burst) strike() (began time.Time, took time.Duration, err error) {
	began = time.Now()
	for i, name := range u.names {
		if err := os.Rename(filepath.Join(u.staged, fmt.Sprint(i)), filepath.Join(u.inbox, name)); err != nil {
			return began, 0, err
		}
	}
	return began, time.Since(began), os.Remove(u.staged)
}

// burstOfPasses has many runs wait at many gates each, and passes them all at once.
func burstOfPasses(ctx context.Context, b *bench, runs, gates int) (f figure, err error) {
	spec := gatesSpec("gates", gates)
	s, err := b.newSite(ctx, b.burst, "row7-passes", map[string]string{"gates": spec}, "repo")
	if err != nil {
		return f, err
	}
	defer s.close(&err)
	s.profiled = true
	ids, err := s.waitingAtGates(ctx, spec, runs, gates)
	if err != nil {
		return f, err
	}
	inbox := filepath.Join(s.repos[0], ".workflow", "signals")
	for _, id := range ids {
		if err := os.MkdirAll(filepath.Join(inbox, id), 0o755); err != nil {
			return f, err
		}
	}
	if err := errors.Join(s.boot(ctx), s.waitHumans(ctx, s.repos[0], runs*gates)); err != nil {
		return f, err
	}
	n := runs * gates
	files, err := stage(inbox, n, passText, func(i int) string { return fmt.Sprintf("%s/G%d-pass.json", ids[i/gates], i%gates) })
	if err != nil {
		return f, err
	}
	began, wrote, err := files.strike()
	if err != nil {
		return f, err
	}
	waited := within(ctx, burstMost, "every gate has passed", func() (bool, error) {
		if err := pause(ctx, 50*pollEvery); err != nil {
			return true, err
		}
		for _, id := range ids {
			if left, err := filesIn(filepath.Join(inbox, id)); err != nil && !errors.Is(err, os.ErrNotExist) || left > 0 {
				return false, err
			}
		}
		return true, nil
	})
	took := time.Since(began)
	passed, twice, err := passesOnRecord(ctx, s)
	if err != nil {
		return f, err
	}
	f = figure{what: fmt.Sprintf("a burst of %d passes of people, until each is recorded and moved", n), got: seconds(took), aim: "none lost, <= " + seconds(aimBurst),
		met: holds(passed == n && twice == 0 && waited == nil && took <= aimBurst), signals: n, lost: n - passed + twice}
	f.notes = []string{fmt.Sprintf("%d runs at %d gates each; renamed in %s; %d gates passed, %d recorded twice; the daemon had %s at most", runs, gates, seconds(wrote), passed, twice, s.peak())}
	if waited != nil {
		f.notes = append(f.notes, waited.Error())
	}
	return f, nil
}

// waitingAtGates lays out a journal whose runs all wait at all their gates, and gives the runs' ids.
func (s *site) waitingAtGates(ctx context.Context, spec string, runs, gates int) (ids []string, err error) {
	like, err := likenessOf(ctx, s, "gates", gates)
	if err != nil {
		return nil, err
	}
	h, err := newHistory(s, like, int64(runs*gates*4))
	if err != nil {
		return nil, err
	}
	for len(ids) < runs && err == nil && ctx.Err() == nil {
		var id string
		id, err = h.start(spec)
		ids = append(ids, id)
	}
	if err = errors.Join(err, ctx.Err(), h.end(s)); err != nil {
		return nil, err
	}
	return ids, copyAttempts(s, "gates-1", ids)
}

// passesOnRecord counts the rounds that the journal says a person passed, and those that it says so of more than once.
func passesOnRecord(ctx context.Context, s *site) (passed, twice int, err error) {
	api, err := s.client(s.repos[0])
	if err != nil {
		return 0, 0, err
	}
	defer api.Close()
	seen := map[string]bool{}
	err = api.Facts(ctx, "", 0, false, func(l daemon.Line) error {
		f, err := engine.DecodeFact(l.Fact)
		if p, ok := f.(engine.RoundPassed); ok {
			key := fmt.Sprintf("%s/%s#%d", p.Run, p.Gate, p.N)
			if seen[key] {
				twice++
			}
			seen[key] = true
		}
		return err
	})
	return len(seen), twice, err
}

func burstOfStrangers(ctx context.Context, b *bench, n int) (f figure, err error) {
	s, err := b.newSite(ctx, b.burst, "row7", nil, "repo")
	if err != nil {
		return f, err
	}
	defer s.close(&err)
	s.profiled = true
	inbox := filepath.Join(s.repos[0], ".workflow", "signals")
	if err := errors.Join(os.MkdirAll(inbox, 0o755), s.boot(ctx)); err != nil {
		return f, err
	}
	name := func(i int) string { return fmt.Sprintf("S%05d-done.json", i) }
	files, err := stage(inbox, n, "{}\n", name)
	if err != nil {
		return f, err
	}
	began, wrote, err := files.strike()
	if err != nil {
		return f, err
	}
	left := 0
	waited := within(ctx, burstMost, "the inbox is empty", func() (bool, error) {
		left, err = filesIn(inbox)
		return err == nil && left == 0, errors.Join(err, pause(ctx, 100*pollEvery))
	})
	took := time.Since(began)
	missing, err := unaccounted(ctx, s, n, name)
	if err != nil {
		return f, err
	}
	f = figure{what: fmt.Sprintf("a burst of %d files that nothing waits for, until each is refused by name and moved", n),
		got: seconds(took), aim: "none lost, <= " + seconds(aimBurst), met: holds(missing == 0 && waited == nil && took <= aimBurst), signals: n, lost: missing}
	f.notes = []string{fmt.Sprintf("renamed in %s; %d not on the record; %d left in the inbox; the daemon had %s at most", seconds(wrote), missing, left, s.peak())}
	return f, nil
}

// filesIn counts the files of a folder that are not hidden.
func filesIn(dir string) (int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	n := 0
	for _, name := range names {
		if !strings.HasPrefix(name, ".") && name != "rejected" {
			n++
		}
	}
	return n, err
}

// unaccounted counts the files of a burst that no fact of the journal names, or that do not lie in rejected/ with a reason.
func unaccounted(ctx context.Context, s *site, n int, name func(int) string) (int, error) {
	api, err := s.client(s.repos[0])
	if err != nil {
		return 0, err
	}
	defer api.Close()
	taken := map[string]int{}
	err = api.Facts(ctx, "", 0, false, func(l daemon.Line) error {
		var fact struct {
			Kind string      `json:"kind"`
			Move engine.Move `json:"move"`
		}
		if err := json.Unmarshal(l.Fact, &fact); err != nil {
			return err
		}
		if fact.Kind == (engine.FileTaken{}).FactKind() {
			taken[fact.Move.Name]++
		}
		return nil
	})
	missing := 0
	rejected := filepath.Join(s.repos[0], ".workflow", "signals", "rejected")
	for i := range n {
		file := filepath.Join(rejected, name(i))
		_, err1 := os.Lstat(file)
		_, err2 := os.Lstat(file + ".why")
		if taken[name(i)] != 1 || err1 != nil || err2 != nil {
			missing++
		}
	}
	return missing, err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// plainBurst returns how many files of the same burst a watcher misses that trusts its events: for each it only reads the
// file, and appends a line that it syncs, on the disk.
func plainBurst(ctx context.Context, b *bench, n int) (lost int, err error) {
	dir := filepath.Join(b.burst, "row7-plain")
	defer os.RemoveAll(dir)
	inbox := filepath.Join(dir, "inbox")
	if err := os.MkdirAll(inbox, 0o755); err != nil {
		return 0, err
	}
	files, err := stage(inbox, n, "{}\n", func(i int) string { return fmt.Sprintf("S%05d-done.json", i) })
	if err != nil {
		return 0, err
	}
	log := filepath.Join(b.work, "row7-journal")
	defer os.Remove(log)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(ctx, b.self, inbox, log)
	cmd.Env, cmd.Stderr = append(os.Environ(), floorRole+"=burst"), os.Stderr
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, err
	}
	lines := bufio.NewReader(said)
	if _, err = lines.ReadString('\n'); err == nil {
		_, _, err = files.strike()
	}
	seen := 0
	if err == nil {
		err = writeFile(filepath.Join(inbox, lastName), "")
	}
	if err == nil {
		_, err = fmt.Fscan(lines, &seen)
	}
	if err != nil {
		stop() // it waits for its last file
	}
	return n - seen, errors.Join(err, cmd.Wait())
}

// lastName is the file that ends a burst for the plain watcher.
const lastName = "the-last"

// plainBurstWatcher counts the files it hears of until it has heard nothing for a while. Each is read and journaled.
func plainBurstWatcher(inbox, journal string) error {
	log, w, err := plainOpen(journal, inbox)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for {
		select {
		case <-w.Errors: // an overflow: what it took with it is what is counted
		case ev := <-w.Events:
			name := filepath.Base(ev.Name)
			if !ev.Has(fsnotify.Create) || strings.HasPrefix(name, ".") || name == lastName || seen[name] {
				continue
			}
			seen[name] = true
			text, err := os.ReadFile(ev.Name)
			if err != nil {
				return err
			}
			if _, err = fmt.Fprintf(log, "%s %s", name, text); err == nil {
				err = unix.Fdatasync(int(log.Fd()))
			}
			if err != nil {
				return err
			}
		case <-time.After(2 * time.Second):
			if _, err := os.Stat(filepath.Join(inbox, lastName)); err == nil {
				fmt.Println(len(seen))
				return nil
			}
		}
	}
}
