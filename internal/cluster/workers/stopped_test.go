//go:build unix

package workers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/internal/cluster"
	"sluice/internal/layout"
	"sluice/journal"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// deciderVar has this binary be a machine that decides, and that stops all of itself at a point.
const deciderVar = "SLUICE_TEST_DECIDER"

// Points at which a leader stops.
const (
	afterAck   = "between acknowledgement and effect"
	afterLease = "between lease check and act"
)

const stopLease = time.Second

// lead has a machine lead, and returns its desk.
func lead(ctx context.Context, conn *cluster.Conn, id, state string, standby bool, check func(int64) int64,
	logf func(string, ...any)) (*Desk, *journal.Log, *cluster.Member, error) {
	m := conn.Member(cluster.Options{ID: id, By: "test", Standby: standby, Logf: logf})
	if err := m.Take(ctx, state); err != nil {
		return nil, nil, nil, err
	}
	log, _, err := journal.Open(state, journal.Options{Copy: m.Copy})
	if err != nil {
		return nil, nil, nil, err
	}
	d, err := NewDesk(DeskOptions{Secret: secret, Conn: conn, Packs: conn.Packs(id, 1), Layout: layout.Layout{Root: state, State: state},
		Journal: id, By: "test", Lead: func() int64 { return check(m.Leads()) }, Lease: m.Lease, Logf: logf,
		Pack: func(context.Context, launch.Sent, []string) (string, error) { return strings.Repeat("0", 64), nil }})
	return d, log, m, err
}

// decide is that machine: it leads, records a launch and sends it, and stops itself once on the way. It
// says when it may begin nothing any more.
func decide() {
	if os.Getenv(deciderVar) == "" {
		return
	}
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	urls, id, state, point, key := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	conn, err := cluster.Connect(cluster.Servers{URLs: urls})
	fail(err)
	stop := func() {
		on := make(chan os.Signal, 1)
		signal.Notify(on, syscall.SIGCONT)
		fail(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
		<-on // this thread can go on for a moment before all are stopped
	}
	acts := point == afterLease
	d, log, _, err := lead(context.Background(), conn, id, state, false, func(epoch int64) int64 {
		at := string(debug.Stack())
		if epoch > 0 && strings.Contains(at, ".give(") && strings.Contains(at, ".ask(") && acts { // the launch's goroutine alone
			acts = false
			stop()
		}
		return epoch
	}, func(string, ...any) {})
	fail(err)
	answered := func() bool { // before that, no order is sent
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, w := range d.workers {
			if w.answered {
				return true
			}
		}
		return false
	}
	for !answered() {
		time.Sleep(time.Millisecond)
	}
	_, _, err = log.Append(journal.Entry{At: time.Now(), Event: []byte(`{"kind":"test"}`)})
	fail(err)
	if point == afterAck {
		stop()
	}
	order := func() (launch.Sent, error) { return sentFor(key), nil }
	held := func(why string) { fmt.Println(why) }
	_, err = d.Launch(context.Background(), key, []string{"linux"}, order, launch.Watch{Waits: held, Began: func() { held("it began") }})
	fail(err)
}

// A leader is stopped, all of it, and goes on after another machine has begun to decide. Workers accept
// nothing of its epoch. SLUICE_CLUSTER_STOPS says how often.
func TestStoppedLeaderSendsNothing(t *testing.T) {
	conform.Rule(t, "13-cluster stopped", "a stopped leader's order is refused, or not sent")
	t.Parallel()
	s := natstest.Start(t, 1)
	conn := connect(t, s)
	a, b := t.TempDir(), t.TempDir()
	options := cluster.Options{By: "test", Logf: t.Logf, Now: time.Now}
	begun, err := conn.Begin(t.Context(), options, a, cluster.New{Replicas: 1, Lease: stopLease})
	if err != nil {
		t.Fatal(err)
	}
	id := begun.ID
	options.ID = id
	if err := conn.Join(t.Context(), options, b, nil); err != nil {
		t.Fatal(err)
	}
	m, out := newMaker(), &log{}
	p, err := NewPost(PostOptions{Conn: connect(t, s), State: t.TempDir(), Journal: id, Name: "w", Labels: []string{"linux"}, Slots: 100,
		Maker: m, Logf: out.logf, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	worker := make(chan error, 1)
	go func() { worker <- p.Run(ctx, nil) }()
	defer func() {
		cancel()
		if err := <-worker; err != nil {
			t.Error(err)
		}
	}()
	sent := 0
	for i := range stops(t) {
		point, key := []string{afterAck, afterLease}[i%2], fmt.Sprintf("far-%d/A#1.1", i+1)
		leader := exec.Command(os.Args[0], s.URL(), id, a, point, key)
		leader.Env = append(os.Environ(), deciderVar+"=1")
		said, err := leader.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		leader.Stderr = os.Stderr
		if err := leader.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(time.Minute, func() { _ = leader.Process.Kill() })
		awaitStop(t, leader.Process.Pid)
		d, file, member, err := lead(t.Context(), conn, id, b, true, func(e int64) int64 { return e }, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		until(t, "the worker knows who decides", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.epoch == member.Report().Epoch
		})
		refused := strings.Count(out.String(), "is refused")
		if err := leader.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(said).ReadString('\n')
		if err != nil || !strings.Contains(line, "may begin nothing") {
			t.Errorf("%s: the stopped leader says %q, %v", point, line, err)
		}
		if now := strings.Count(out.String(), "is refused"); now > refused {
			sent++
		} else if point == afterLease {
			t.Errorf("its request never came: nothing was tried")
		}
		if n := m.begun(key); n != 0 {
			t.Errorf("%s: an order of an epoch that is over was made %d times", point, n)
		}
		late.Stop()
		_ = leader.Process.Kill()
		_, _ = io.Copy(io.Discard, said)
		_ = leader.Wait() // it was killed
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		member.Close()
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d of %d orders were sent, and refused", sent, stops(t))
}

func stops(t *testing.T) (n int) {
	t.Helper()
	text := os.Getenv("SLUICE_CLUSTER_STOPS")
	if text == "" {
		return 4
	}
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// awaitStop waits until a child has stopped.
func awaitStop(t *testing.T, pid int) {
	t.Helper()
	until(t, "the leader stops", func() bool {
		var is syscall.WaitStatus
		got, err := syscall.Wait4(pid, &is, syscall.WUNTRACED|syscall.WNOHANG, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) || got == pid && !is.Stopped() {
			t.Fatalf("the leader has ended: %v, %v", is, err)
		}
		return got == pid
	})
}
