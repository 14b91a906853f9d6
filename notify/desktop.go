package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gen2brain/beeep"
)

const (
	desktopLimit = 5 * time.Second
	helperLimit  = desktopLimit - time.Second // the helper's own, so that it ends also when nobody is left to kill it
	maxHelperIn  = 64 << 10
	appName      = "sluice"
	busVariable  = "DBUS_SESSION_BUS_ADDRESS"
	userRunDir   = "/run/user"
)

// Exit codes of the helper.
const (
	helperShown  = 0
	helperFailed = 1
	helperUsage  = 2
)

// desktop is the channel that shows a notice through the helper process.
type desktop struct {
	helper []string
	limit  time.Duration
	goos   string
	runDir string   // the folder of the users' run-time folders
	env    []string // the helper's; nil = this process's
}

func newDesktop(helperArgv []string) *desktop {
	return &desktop{helper: helperArgv, limit: desktopLimit, goos: runtime.GOOS, runDir: userRunDir}
}

// DesktopChannel is the name of the desktop in a Result.
const DesktopChannel = "desktop"

func (d *desktop) Name() string { return DesktopChannel }

func (d *desktop) Send(ctx context.Context, n Notice) error {
	env := d.env
	if env == nil {
		env = os.Environ()
	}
	if usesDBus(d.goos) {
		if _, err := sessionBus(lookup(env, busVariable), d.runDir); err != nil {
			return err
		}
	}
	said, err := runWithNotice(ctx, d.limit, d.helper, env, n)
	if err == nil {
		return nil
	}
	if said != "" && ctx.Err() == nil { // the helper's own reason says more than its exit code
		if errors.Is(err, errHung) {
			return fmt.Errorf("%s%w", said, errHung)
		}
		return errors.New(said)
	}
	return fmt.Errorf("the desktop did not answer: %w", err)
}

// lookup is the value of a variable in an environment: the last one given
// counts, as it does for a process that is started with it.
func lookup(env []string, name string) string {
	value := ""
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// HelperMain is the whole of `sluice notify-helper`: it reads one notice as
// JSON, shows it on the desktop and returns the exit code: 0 shown, 1 not (the
// reason is on standard error), 2 no notice. It changes this process's
// environment, and leaves a goroutine behind if the desktop hangs: call it from
// a process that ends with it.
func HelperMain(stdin io.Reader) int {
	n, err := readNotice(stdin)
	if err != nil {
		fmt.Fprintf(os.Stderr, "notify-helper: %v: this command is for sluice itself; use `sluice notify TEXT`\n", err)
		return helperUsage
	}
	if usesDBus(runtime.GOOS) {
		if err := enterBus(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return helperFailed
		}
	}
	shown := make(chan error, 1)
	go func() { shown <- show(n) }()
	limit := time.NewTimer(helperLimit)
	defer limit.Stop()
	select {
	case err := <-shown:
		if err == nil {
			return helperShown
		}
		fmt.Fprintln(os.Stderr, Clean(reason(err), maxWhy))
	case <-limit.C:
		fmt.Fprintf(os.Stderr, "the notification service did not answer within %s\n", helperLimit)
	}
	return helperFailed
}

func readNotice(r io.Reader) (Notice, error) {
	var n Notice
	data, err := io.ReadAll(io.LimitReader(r, maxHelperIn+1))
	switch {
	case err != nil:
		return n, fmt.Errorf("standard input: %w", err)
	case len(data) > maxHelperIn:
		return n, fmt.Errorf("more than %d bytes on standard input", maxHelperIn)
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, fmt.Errorf("no notice on standard input: %w", err)
	}
	return cleaned(n), nil
}

// enterBus fixes the session bus for this process, and takes away PATH: the
// library would otherwise try dbus-launch where it finds no bus (a stray bus
// stays for ever) and notify-send where the bus refuses (same bus, no better,
// and a title that begins with "-" is an option to it).
func enterBus() error {
	bus, err := sessionBus(os.Getenv(busVariable), userRunDir)
	if err != nil {
		return err
	}
	if err := os.Setenv(busVariable, bus); err != nil {
		return err
	}
	return os.Setenv("PATH", "")
}

// show hands a notice to the desktop library. It may never return.
func show(n Notice) error {
	beeep.AppName = appName
	title, body := dress(runtime.GOOS, n)
	if n.Urgency != UrgencyCritical {
		return beeep.Notify(title, body, "")
	}
	err := beeep.Alert(title, body, "")
	if err != nil && strings.HasPrefix(err.Error(), "beeep: error writing to") {
		return nil // it was shown; only the beep after it failed
	}
	return err
}

// reason is the first cause in the library's error, which also tells of the
// programs it then did not find.
func reason(err error) string {
	s, _, _ := strings.Cut(err.Error(), "; notify-send:")
	return "the desktop refused the notice: " + strings.TrimPrefix(s, "beeep: ")
}

func usesDBus(goos string) bool {
	switch goos {
	case "darwin", "ios", "windows", "js", "wasip1", "plan9", "android":
		return false
	}
	return true
}

// sessionBus is the address of the user's session bus, of which only unix
// sockets and TCP are taken: "autolaunch:" would start a bus that nobody ends.
func sessionBus(address, runDir string) (string, error) {
	if address != "" {
		for part := range strings.SplitSeq(address, ";") {
			transport, _, _ := strings.Cut(part, ":")
			switch transport {
			case "unix", "tcp", "nonce-tcp":
			default:
				return "", fmt.Errorf("no desktop: %s names no running bus (%q): set it to the session's own, or use notify.command", busVariable, Clean(part, maxField))
			}
		}
		return address, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("no desktop: the user is unknown: %w", err)
	}
	socket := filepath.Join(runDir, u.Uid, "bus")
	if _, err := os.Stat(socket); err != nil {
		return "", fmt.Errorf("no desktop: %s is unset and there is no %s: log in to a desktop, or use notify.command", busVariable, socket)
	}
	return "unix:path=" + socket, nil
}

// dress makes a clean notice safe for what interprets text on each system, and
// gives title and body.
func dress(goos string, n Notice) (title, body string) {
	title, body = n.Title, n.Body
	switch {
	case goos == "windows":
		// The library pastes both into XML and that, as its last resort, into a
		// PowerShell string which expands $(…).
		r := strings.NewReplacer("<", "‹", ">", "›", "$", "＄", "`", "'", `"`, "”", "\n", " ")
		title, body = r.Replace(title), r.Replace(body)
	case usesDBus(goos):
		// By the notification specification a body is markup and a summary is
		// not; some servers read both, so the summary goes without brackets.
		title = strings.NewReplacer("<", "‹", ">", "›").Replace(title)
		body = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(body)
	}
	return undashed(title), undashed(body)
}

// undashed keeps a text from being read as an option by a program it is an
// argument of.
func undashed(s string) string {
	if strings.HasPrefix(s, "-") {
		return " " + s
	}
	return s
}
