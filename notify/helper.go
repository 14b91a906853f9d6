package notify

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"sluice/internal/text"

	"github.com/gen2brain/beeep"
)

const (
	desktopLimit = 5 * time.Second
	// the helper's own limit, to report a hanging desktop before it is killed
	helperLimit = desktopLimit - time.Second
	farewell    = 700 * time.Millisecond // for removing notices from the screen at the end
	startWatch  = 500 * time.Millisecond // a program that fails within it counts as not started
	maxHelperIn = 64 << 10
	appName     = "sluice"
)

// Exit codes of the helper.
const (
	helperDone   = 0
	helperFailed = 1
	helperUsage  = 2
)

type screen interface {
	// show shows a notice, or returns why it could not.
	show(ctx context.Context, r request) (report, error)
	close(ctx context.Context, id string)
	server(ctx context.Context) (report, error)
	// end removes notices whose buttons would do nothing any more.
	end(ctx context.Context)
}

// HelperMain is `sluice notify-helper`. It reads requests for notices from standard input, one line
// of JSON each, and reports the results on standard output, until standard input ends. If the
// desktop hangs, it leaves a goroutine behind: the process must end with it. It returns the exit
// code: 0 when standard input ended, 1 when the desktop hung for good, 2 when a line was no
// request.
func HelperMain(stdin io.Reader) int {
	h := &helper{enc: json.NewEncoder(os.Stdout)}
	if usesDBus(runtime.GOOS) {
		bus, err := sessionBus(os.Getenv(busVariable), userRunDir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return helperFailed
		}
		h.screen = newBusScreen(bus, h.say)
	} else {
		h.screen = beeper{}
	}
	return h.serve(stdin)
}

type helper struct {
	screen screen
	mu     sync.Mutex
	enc    *json.Encoder
}

func (h *helper) say(r report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.enc.Encode(r) // if nobody reads, standard input has ended too
}

func (h *helper) serve(stdin io.Reader) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// buffered, so that the end of standard input is seen while a call hangs
	requests := make(chan request, helperQueue)
	read := make(chan error, 1)
	go func() { read <- readRequests(stdin, requests) }() // ends with standard input or the process
	worked := make(chan bool, 1)
	go func() { worked <- h.work(ctx, requests) }()
	through := false
	var err error
	select {
	case err = <-read:
	case through = <-worked:
		if !through {
			return helperFailed
		}
		err = <-read
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "notify-helper: %v: this command is for sluice itself; use `sluice notify TEXT`\n", err)
		return helperUsage
	}
	bye, stop := context.WithTimeout(context.Background(), farewell)
	defer stop()
	if !through {
		select {
		case <-worked: // requests from before the end
		case <-bye.Done():
		}
	}
	cancel()
	h.screen.end(bye)
	return helperDone
}

// readRequests reads lines until their end, and closes out.
func readRequests(stdin io.Reader, out chan<- request) error {
	defer close(out)
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, maxHelperIn)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("no request on standard input: %w", err)
		}
		out <- r
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	return nil
}

// work reports whether all requests were done; false means that a call hangs and cannot be given
// up.
func (h *helper) work(ctx context.Context, in <-chan request) bool {
	for r := range in {
		if !h.one(ctx, r) {
			return false
		}
	}
	return true
}

// one carries out a request and reports the result; false = it hangs.
func (h *helper) one(ctx context.Context, r request) bool {
	ctx, cancel := context.WithTimeout(ctx, helperLimit)
	defer cancel()
	type answer struct {
		report report
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		switch r.Op {
		case opShow:
			a.report, a.err = h.screen.show(ctx, r)
		case opClose:
			h.screen.close(ctx, r.ID)
		case opServer:
			a.report, a.err = h.screen.server(ctx)
		case opRun:
			a.err = start(r.Argv, r.Dir)
		default:
			a.err = fmt.Errorf("request %q is not known to this release", r.Op)
		}
		done <- a
	}()
	hangs := time.NewTimer(helperLimit + helperLimit/16)
	defer hangs.Stop()
	select {
	case a := <-done:
		if r.Op == opClose {
			return true
		}
		if errors.Is(a.err, context.DeadlineExceeded) {
			a.err = errSilent
		}
		if a.err != nil {
			h.say(failed(r, a.err))
			return true
		}
		a.report.Event, a.report.Seq, a.report.ID = eventShown, r.Seq, r.ID
		h.say(a.report)
		return true
	case <-hangs.C:
		h.say(failed(r, errSilent))
		return false
	}
}

// errSilent reports that the desktop hangs.
var errSilent = fmt.Errorf("the notification service did not answer within %s%w", helperLimit, errHung)

// start starts a program in its own session, which outlives this process.
func start(argv []string, dir string) error {
	if len(argv) == 0 {
		return errors.New("no program to start")
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	errs := &tail{max: maxOutput}
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with it, or with this process
	watch := time.NewTimer(startWatch)
	defer watch.Stop()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w: %s", argv[0], err, text.Clean(string(errs.kept), maxWhy))
		}
	case <-watch.C:
	}
	return nil
}

// beeper shows notices through beeep, without D-Bus: no buttons, and notices cannot be replaced or
// removed.
type beeper struct{}

// show may never return.
func (beeper) show(_ context.Context, r request) (report, error) {
	beeep.AppName = appName
	if !r.Critical {
		return report{}, refused(beeep.Notify(r.Title, r.Body, ""))
	}
	err := beeep.Alert(r.Title, r.Body, "")
	if err != nil && strings.HasPrefix(err.Error(), "beeep: error writing to") {
		return report{}, nil // it was shown; only the beep after it failed
	}
	return report{}, refused(err)
}

func (beeper) close(context.Context, string) {}
func (beeper) end(context.Context)           {}
func (beeper) server(context.Context) (report, error) {
	return report{Server: "the system's notices"}, nil
}

// refused attributes an error to the desktop.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the desktop refused the notice: %w", err)
}
