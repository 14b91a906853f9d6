package notify

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"sluice/tools/conform"
)

const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=SOCKET</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>`

// startBus runs a bus of this test's own, on which nothing is activatable.
func startBus(t *testing.T) (address string) {
	t.Helper()
	daemon, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("needs: dbus-daemon (apt-get install dbus-daemon)")
	}
	dir, err := os.MkdirTemp("", "bus") // short: a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := filepath.Join(dir, "conf")
	text := strings.Replace(busConfig, "SOCKET", filepath.Join(dir, "bus"), 1)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(daemon, "--config-file="+config, "--nofork", "--print-address=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("dbus-daemon printed no address: %v", err)
	}
	return strings.TrimSpace(line)
}

// shownNotice is what the stub of a notification service was asked to show.
type shownNotice struct {
	app, title, body string
	urgency          byte
}

// stub owns org.freedesktop.Notifications. It answers, or, if mute is set,
// holds every call until that is closed.
type stub struct {
	shown chan shownNotice
	mute  chan struct{}
}

func (s *stub) Notify(app string, _ uint32, _, title, body string, _ []string, hints map[string]dbus.Variant, _ int32) (uint32, *dbus.Error) {
	urgency, _ := hints["urgency"].Value().(byte)
	s.shown <- shownNotice{app, title, body, urgency}
	if s.mute != nil {
		<-s.mute
	}
	return 1, nil
}

// startStub puts a notification service on the bus.
func startStub(t *testing.T, address string, mute chan struct{}) *stub {
	t.Helper()
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := &stub{shown: make(chan shownNotice, 16), mute: mute}
	if mute != nil {
		t.Cleanup(func() { close(mute) })
	}
	if err := conn.Export(s, "/org/freedesktop/Notifications", "org.freedesktop.Notifications"); err != nil {
		t.Fatal(err)
	}
	reply, err := conn.RequestName("org.freedesktop.Notifications", dbus.NameFlagDoNotQueue)
	if err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("cannot own the name: %v %v", reply, err)
	}
	return s
}

// onDesktop sends one notice through a notifier whose desktop is the helper in
// the given environment (PATH and more are added), and returns its result.
func onDesktop(t *testing.T, n Notice, runDir string, env ...string) Result {
	t.Helper()
	d := NewDesk(helperArgv(t), nil)
	d.env = append([]string{"PATH=" + os.Getenv("PATH"), mark(t)}, env...)
	d.runDir = runDir
	notifier := New(Options{Channels: []Channel{&desktop{desk: d, own: true}}})
	r := byName(t, notifier.Send(context.Background(), n), "desktop")
	if err := notifier.Close(); err != nil {
		t.Error(err)
	}
	return r
}

func TestDesktopShowsANotice(t *testing.T) {
	conform.Rule(t, "004 §6 experiment 5.notify", "a desktop notification is shown")
	t.Parallel()
	address := startBus(t)
	service := startStub(t, address, nil)
	r := onDesktop(t, Notice{Kind: "human", Title: "Gate XG-1 needs you", Body: "look at\ndocs/plan.md", Urgency: UrgencyCritical}, t.TempDir(), busVariable+"="+address)
	if !r.OK || r.Why != "" {
		t.Fatalf("not shown: %+v", r)
	}
	want := shownNotice{"sluice", "Gate XG-1 needs you", "look at\ndocs/plan.md", 2}
	if got := <-service.shown; got != want {
		t.Errorf("shown %+v, want %+v", got, want)
	}
	r = onDesktop(t, Notice{Title: "Run r-1 completed"}, t.TempDir(), busVariable+"="+address)
	if got := <-service.shown; !r.OK || got.urgency != 1 {
		t.Errorf("an ordinary notice: %+v, shown %+v", r, got)
	}
}

func TestDesktopHostileText(t *testing.T) {
	t.Parallel()
	address := startBus(t)
	service := startStub(t, address, nil)
	r := onDesktop(t, Notice{
		Title: "--help \x1b[31m<b>red</b>\x1b[0m \u202egnp.exe\nsecond \"line\" $(id)",
		Body:  "<a href=\"x\">&amp;</a>\x1b]0;title\x07\x00\u2066end" + strings.Repeat("x", 100_000),
	}, t.TempDir(), busVariable+"="+address)
	if !r.OK {
		t.Fatalf("not shown: %+v", r)
	}
	got := <-service.shown
	if want := " --help ‹b›red‹/b› gnp.exe second \"line\" $(id)"; got.title != want {
		t.Errorf("title %q, want %q", got.title, want)
	}
	wantBody := "&lt;a href=\"x\"&gt;&amp;amp;&lt;/a&gt;endxxx"
	if !strings.HasPrefix(got.body, wantBody) || len(got.body) > 2*MaxBody || !strings.HasSuffix(got.body, "…") {
		t.Errorf("body of %d bytes %q, want it to begin with %q and be cut", len(got.body), got.body[:min(len(got.body), 80)], wantBody)
	}
}

func TestDesktopThatNeverAnswersHoldsUpNothing(t *testing.T) {
	t.Parallel()
	address := startBus(t)
	service := startStub(t, address, make(chan struct{}))
	began := time.Now()
	r := onDesktop(t, Notice{Title: "x"}, t.TempDir(), busVariable+"="+address)
	const slack = 2 * time.Second // for a busy machine: that the limit is kept to is shown on a fake clock
	if took := time.Since(began); took > sendLimit+slack {
		t.Errorf("Send took %s", took)
	}
	if r.OK || !strings.Contains(r.Why, "did not answer") && !strings.Contains(r.Why, "no longer waited for") {
		t.Errorf("result %+v", r)
	}
	select {
	case <-service.shown: // so it really hung in the call, nowhere before
	default:
		t.Error("the service was never asked")
	}
}

// A bus that takes the connection and then says nothing.
func TestMuteBusHoldsUpNothing(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "bus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "bus"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	r := onDesktop(t, Notice{Title: "x"}, t.TempDir(), busVariable+"=unix:path="+filepath.Join(dir, "bus"))
	if r.OK || !strings.Contains(r.Why, "did not answer") && !strings.Contains(r.Why, "no longer waited for") {
		t.Errorf("result %+v", r)
	}
}

func TestDesktopRefusedAtOnce(t *testing.T) {
	t.Parallel()
	dead := filepath.Join(t.TempDir(), "dead")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	for _, c := range []struct {
		name string
		env  []string
		why  string
	}{
		{"no bus", nil, "DBUS_SESSION_BUS_ADDRESS is unset and there is no "},
		{"empty address", []string{busVariable + "="}, "DBUS_SESSION_BUS_ADDRESS is unset and there is no "},
		{"autolaunch", []string{busVariable + "=autolaunch:"}, "names no running bus"},
		{"autolaunch second", []string{busVariable + "=unix:path=/none;autolaunch:scope=*user"}, "names no running bus"},
		{"dead socket", []string{busVariable + "=unix:path=" + dead}, "connection refused"},
		{"no socket", []string{busVariable + "=unix:path=" + dead + "2"}, "no such file"},
		{"senseless address", []string{busVariable + "=unix:"}, "the desktop refused the notice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := onDesktop(t, Notice{Title: "x"}, t.TempDir(), c.env...)
			if r.OK || !strings.Contains(r.Why, c.why) {
				t.Errorf("result %+v, want a reason with %q", r, c.why)
			}
			if strings.Contains(r.Why, "notify-send") || r.Took > 4*time.Second {
				t.Errorf("result %+v: took long or tells of programs it never had", r)
			}
		})
	}
}

// A launcher on PATH is the trap: the library runs it in every process that
// finds no bus.
func TestDesktopStartsNoLauncherAndNoOtherProgram(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	for _, name := range []string{"dbus-launch", "notify-send", "kdialog"} {
		script := "#!/bin/sh\necho " + name + " >> " + ran + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := "PATH=" + bin + ":" + os.Getenv("PATH")
	dead := busVariable + "=unix:path=" + filepath.Join(bin, "none")
	for _, env := range [][]string{{path}, {path, busVariable + "=autolaunch:"}, {path, dead}} {
		if r := onDesktop(t, Notice{Title: "x"}, t.TempDir(), env...); r.OK {
			t.Errorf("with %v: %+v", env, r)
		}
		// The helper by itself must hold too, whoever starts it.
		cmd := exec.Command(helperArgv(t)[0], "notify-helper")
		cmd.Env = env
		cmd.Stdin = strings.NewReader(`{"op":"show","title":"x"}` + "\n")
		_ = cmd.Run()
	}
	if got, err := os.ReadFile(ran); err == nil {
		t.Errorf("started: %s", got)
	}
}

func TestDesktopBusWithoutService(t *testing.T) {
	t.Parallel()
	r := onDesktop(t, Notice{Title: "x"}, t.TempDir(), busVariable+"="+startBus(t))
	if r.OK || !strings.Contains(r.Why, "org.freedesktop.Notifications") {
		t.Errorf("result %+v", r)
	}
}

func TestHelperThatIsStuckIsKilledWithItsTree(t *testing.T) {
	t.Parallel()
	d := NewDesk([]string{"sh", "-c", "trap '' TERM; sleep 300 & sleep 300"}, nil)
	d.env = []string{"PATH=" + os.Getenv("PATH"), busVariable + "=unix:path=/none", mark(t)}
	d.limit = 200 * time.Millisecond
	err := (&desktop{desk: d}).Send(context.Background(), Notice{Title: "x"})
	_ = d.Close()
	if err == nil || !strings.Contains(err.Error(), "it was killed") {
		t.Errorf("error %v", err)
	}
}

func TestNoHelperIsStartedWhereThereIsNoBus(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	d := NewDesk([]string{"touch", started}, nil)
	d.env = []string{"PATH=" + os.Getenv("PATH")}
	d.runDir = t.TempDir()
	if err := (&desktop{desk: d}).Send(context.Background(), Notice{}); err == nil || !strings.Contains(err.Error(), "use notify.command") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the helper was started")
	}
}

func TestBusOfTheUser(t *testing.T) {
	t.Parallel()
	run := t.TempDir()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(run, u.Uid, "bus")
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := sessionBus("", run); err != nil || got != "unix:path="+socket {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := sessionBus("unix:path=/a;tcp:host=b", run); err != nil || got != "unix:path=/a;tcp:host=b" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestHelperRefusesWhatIsNoNotice(t *testing.T) {
	for _, in := range []string{"{", "[]", `{"title":1}`, `{"title":"x"}` + strings.Repeat(" ", maxHelperIn)} {
		cmd := exec.Command(helperArgv(t)[0], "notify-helper")
		cmd.Env = append(os.Environ(), busVariable+"=unix:path=/none")
		cmd.Stdin = strings.NewReader(in)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != helperUsage || !strings.Contains(string(out), "use `sluice notify TEXT`") {
			t.Errorf("%.20q: exit %d, %s", in, code, out)
		}
	}
}
