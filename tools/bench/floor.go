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
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// floorRole is the variable under which this binary is one of the floors, with its arguments behind it.
const floorRole = "SLUICE_BENCH_FLOOR"

// floor plays a floor where this process is one.
func floor(args []string) bool {
	role := os.Getenv(floorRole)
	if role == "" {
		return false
	}
	var err error
	switch role {
	case "watcher":
		err = plainWatcher(args[0], args[1], args[2:])
	case "burst":
		err = plainBurstWatcher(args[0], args[1])
	case "talker":
		err = talker()
	case "idle":
		err = plainIdle(args)
	default:
		err = fmt.Errorf("%s=%s: no such floor", floorRole, role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: floor:", err)
		os.Exit(1)
	}
	return true
}

// plainWatcher is the least that a durable watcher does: for each file that appears in the inbox it appends one line to a
// journal, syncs it, and starts the command in a process group of its own, its output in a file. It keeps no state, checks
// nothing and would lose what comes while it is away.
func plainWatcher(inbox, out string, command []string) error {
	log, w, err := plainOpen(filepath.Join(out, "journal"), inbox)
	if err != nil {
		return err
	}
	for n := 0; ; {
		select {
		case err := <-w.Errors:
			return err
		case ev := <-w.Events:
			if !ev.Has(fsnotify.Create) || strings.HasPrefix(filepath.Base(ev.Name), ".") {
				continue
			}
			n++
			if err := plainStep(log, ev.Name, filepath.Join(out, fmt.Sprint("out-", n)), command); err != nil {
				return err
			}
		}
	}
}

// plainOpen opens the journal of a plain watcher and watches its inbox.
func plainOpen(journal, inbox string) (*os.File, *fsnotify.Watcher, error) {
	log, err := os.OpenFile(journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	w, err := plainWatch(inbox)
	return log, w, err
}

// plainWatch watches folders, and says when it does.
func plainWatch(dirs ...string) (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := w.Add(dir); err != nil {
			return nil, err
		}
	}
	fmt.Println("ready")
	return w, nil
}

func plainStep(log *os.File, name, out string, command []string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	line, err := json.Marshal(map[string]any{"at": time.Now(), "file": filepath.Base(name), "text": string(text)})
	if err != nil {
		return err
	}
	if _, err := log.Write(append(line, '\n')); err != nil {
		return err
	}
	if err := unix.Fdatasync(int(log.Fd())); err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = f, f, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Wait()
}

// plainIdle watches folders, and looks at each every five seconds for what no event reports.
func plainIdle(dirs []string) error {
	w, err := plainWatch(dirs...)
	if err != nil {
		return err
	}
	look := time.NewTicker(5 * time.Second)
	for {
		select {
		case err := <-w.Errors:
			return err
		case <-w.Events:
		case <-look.C:
			for _, dir := range dirs {
				if _, err := os.Lstat(dir); err != nil {
					return err
				}
			}
		}
	}
}

// plain is a running plainWatcher.
type plain struct {
	cmd   *exec.Cmd
	inbox string
	to    *stamps
	n     int
}

// newPlain starts one in a folder of its own.
func (b *bench) newPlain(ctx context.Context, dir string) (*plain, error) {
	p := &plain{inbox: filepath.Join(dir, "inbox")}
	out := filepath.Join(dir, "out")
	if err := errors.Join(os.MkdirAll(p.inbox, 0o755), os.MkdirAll(out, 0o755)); err != nil {
		return nil, err
	}
	var err error
	if p.to, err = newStamps(filepath.Join(dir, "stamps")); err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, b.self, p.inbox, out, b.stamp, p.to.path)
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), floorRole+"=watcher"), os.Stderr
	said, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(said).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("the plain watcher: %w", err), p.cmd.Wait())
	}
	return p, nil
}

// sample measures it once.
func (p *plain) sample(ctx context.Context) (time.Duration, error) {
	p.n++
	return p.to.timed(ctx, filepath.Join(p.inbox, fmt.Sprintf("X-%d-done.json", p.n)), doneText)
}

func (p *plain) close() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.to.close()
}
