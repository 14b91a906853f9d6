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

	"sluice/daemon"
	"sluice/engine"
)

// aimBurst is how long a burst may take until each of its files is accounted for.
const aimBurst = 10 * time.Second

// burstMost is how long a burst is waited for before what is missing is called lost.
const burstMost = 5 * time.Minute

// burstOfSignals writes many files into an inbox as fast as it can: names that nothing waits for, each of which must be
// refused by name, on the record, and moved to rejected/ with its reason.
func burstOfSignals(ctx context.Context, b *bench) ([]figure, error) {
	n := b.count(50_000, 300)
	strangers, err := burstOfStrangers(ctx, b, n)
	if err != nil {
		return nil, err
	}
	lost, err := plainBurst(ctx, b, n)
	if err != nil {
		return nil, err
	}
	strangers.beside = fmt.Sprintf("fsnotify alone loses %d", lost)
	return []figure{strangers}, nil
}

// writeBurst renames n files into the inbox; name gives each its name below it.
func writeBurst(inbox string, n int, text string, name func(int) string) error {
	for i := range n {
		file := filepath.Join(inbox, name(i))
		tmp := filepath.Join(filepath.Dir(file), ".tmp")
		if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
			return err
		}
		if err := os.Rename(tmp, file); err != nil {
			return err
		}
	}
	return nil
}

func burstOfStrangers(ctx context.Context, b *bench, n int) (f figure, err error) {
	s, err := b.newSite(ctx, b.burst, "row7", nil, "repo")
	if err != nil {
		return f, err
	}
	defer s.close(&err)
	inbox := filepath.Join(s.repos[0], ".workflow", "signals")
	if err := errors.Join(os.MkdirAll(inbox, 0o755), s.boot(ctx)); err != nil {
		return f, err
	}
	name := func(i int) string { return fmt.Sprintf("S%05d-done.json", i) }
	began := time.Now()
	if err := writeBurst(inbox, n, "{}\n", name); err != nil {
		return f, err
	}
	wrote := time.Since(began)
	left := 0
	took, waited := time.Duration(0), within(ctx, burstMost, "the inbox is empty", func() (bool, error) {
		left, err = filesIn(inbox)
		return err == nil && left == 0, errors.Join(err, pause(ctx, 100*pollEvery))
	})
	took = time.Since(began)
	missing, err := unaccounted(ctx, s, n, name)
	if err != nil {
		return f, err
	}
	f = figure{what: fmt.Sprintf("a burst of %d files that nothing waits for, until each is refused by name and moved", n),
		got: seconds(took), aim: "none lost, <= " + seconds(aimBurst), met: holds(missing == 0 && waited == nil && took <= aimBurst), signals: n, lost: missing}
	f.notes = []string{fmt.Sprintf("written in %s; %d not on the record; %d left in the inbox", seconds(wrote), missing, left)}
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

// plainBurst gives how many files of the same burst a watcher misses that trusts its events: for each it only reads the
// file and appends a line, synced in groups.
func plainBurst(ctx context.Context, b *bench, n int) (lost int, err error) {
	dir := filepath.Join(b.burst, "row7-plain")
	defer os.RemoveAll(dir)
	inbox := filepath.Join(dir, "inbox")
	if err := os.MkdirAll(inbox, 0o755); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, b.self, inbox, filepath.Join(dir, "journal"))
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
		err = writeBurst(inbox, n, "{}\n", func(i int) string { return fmt.Sprintf("S%05d-done.json", i) })
	}
	seen := 0
	if err == nil {
		err = writeFile(filepath.Join(inbox, lastName), "")
	}
	if err == nil {
		_, err = fmt.Fscan(lines, &seen)
	}
	return n - seen, errors.Join(err, cmd.Wait())
}

// lastName is the file that ends a burst for the plain watcher.
const lastName = "the-last"

// plainBurstWatcher counts the files it hears of until it has heard nothing for a while; each is read and journaled.
func plainBurstWatcher(inbox, journal string) error {
	log, err := os.OpenFile(journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	if err := w.Add(inbox); err != nil {
		return err
	}
	fmt.Println("ready")
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
			if _, err := fmt.Fprintf(log, "%s %s", name, text); err != nil {
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
