// Package natstest runs NATS servers for tests, each as a process of its own: tools/natstest/server,
// which is built once, and never with the race detector. So they can be killed, stopped and continued
// as real ones.
package natstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// Environ names the variable that has the options of a server, as JSON.
const Environ = "SLUICE_TEST_NATS"

// Options are those of one server.
type Options struct {
	Name         string
	Place        Place
	Port, Routes int      // own ports
	Others       []string // addresses of the others' routes
	Payload      int32
	Store        int64 // bytes; 0 = no limit
	User, Pass   string
	NoJetStream  bool
	NKey         string // public key of the one user
	Cert, Key    string // files, for TLS
	Config       string // of a server's configuration file: its accounts
}

// Place is where a server runs.
type Place struct {
	Host  string   // the address that it listens at
	Dir   string   // where it stores
	Front []string // a command that it is started behind
}

// program returns the server's file. The go command keeps it in its cache: it is linked once for all packages.
var program = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "tool", "-n", "sluice/tools/natstest/server")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath "+os.Getenv("GOFLAGS"))
	var why strings.Builder
	cmd.Stderr = &why
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go tool: %w\n%s", err, why.String())
	}
	return strings.TrimSpace(string(out)), nil
})

// Servers are some servers, one cluster.
type Servers struct {
	t   testing.TB
	all []*one
}

type one struct {
	Options
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts n servers and waits until they take requests.
func Start(t testing.TB, n int, set ...func(*Servers)) *Servers {
	t.Helper()
	s := &Servers{t: t}
	dir, ports := t.TempDir(), freePorts(t, 2*n)
	for i := range n {
		o := Options{Name: fmt.Sprintf("s%d", i), Port: ports[i], Routes: ports[n+i], Payload: 8 << 20,
			Place: Place{Host: "127.0.0.1", Dir: filepath.Join(dir, fmt.Sprint(i))}}
		s.all = append(s.all, &one{Options: o})
	}
	for _, f := range set {
		f(s)
	}
	for i, x := range s.all {
		for k, other := range s.all {
			if k != i {
				x.Others = append(x.Others, fmt.Sprintf("%s:%d", other.Place.Host, other.Routes))
			}
		}
	}
	for i := range s.all {
		s.Run(i)
	}
	t.Cleanup(func() {
		for i := range s.all {
			s.Kill(i)
		}
	})
	s.Ready()
	return s
}

// Payload limits the bytes of a message.
func Payload(n int32) func(*Servers) {
	return func(s *Servers) { s.each(func(o *Options) { o.Payload = n }) }
}

// Store limits the bytes that a server stores.
func Store(n int64) func(*Servers) {
	return func(s *Servers) { s.each(func(o *Options) { o.Store = n }) }
}

// Login has clients log in.
func Login(user, pass string) func(*Servers) {
	return func(s *Servers) { s.each(func(o *Options) { o.User, o.Pass = user, pass }) }
}

// Secure has clients prove that they have an nkey, and speak TLS.
func Secure(nkey, cert, key string) func(*Servers) {
	return func(s *Servers) { s.each(func(o *Options) { o.NKey, o.Cert, o.Key = nkey, cert, key }) }
}

// Config adds to the servers' configuration, for example accounts.
func Config(text string) func(*Servers) {
	return func(s *Servers) { s.each(func(o *Options) { o.Config = text }) }
}

// At has the servers run at places of their own.
func At(places ...Place) func(*Servers) {
	return func(s *Servers) {
		for i, x := range s.all {
			x.Place = places[i]
		}
	}
}

// Plain has no JetStream.
func Plain(s *Servers) { s.each(func(o *Options) { o.NoJetStream = true }) }

func (s *Servers) each(f func(*Options)) {
	for _, x := range s.all {
		f(&x.Options)
	}
}

func freePorts(t testing.TB, n int) (ports []int) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// Run starts server i, which does not run.
func (s *Servers) Run(i int) {
	s.t.Helper()
	x := s.all[i]
	if err := os.MkdirAll(x.Place.Dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	text, err := json.Marshal(x.Options)
	if err != nil {
		s.t.Fatal(err)
	}
	server, err := program()
	if err != nil {
		s.t.Fatal(err)
	}
	argv := append(slices.Clone(x.Place.Front), server)
	x.cmd = exec.Command(argv[0], argv[1:]...)
	x.cmd.Env = append(os.Environ(), Environ+"="+string(text))
	x.cmd.Stderr = os.Stderr
	if _, err := x.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := x.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	x.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // it is killed
		close(ended)
	}(x.cmd, x.ended)
}

// Kill ends server i at once, as a power cut does.
func (s *Servers) Kill(i int) {
	if x := s.all[i]; x.cmd != nil && x.cmd.Process != nil {
		_ = x.cmd.Process.Kill() // it may have ended
		<-x.ended
	}
}

// Stop has server i do nothing until Continue.
func (s *Servers) Stop(i int) {
	s.t.Helper()
	s.signal(i, syscall.SIGSTOP)
	stat := fmt.Sprintf("/proc/%d/stat", s.all[i].cmd.Process.Pid)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(stat)
		if os.IsNotExist(err) { // no Linux: it will have stopped
			time.Sleep(100 * time.Millisecond)
			return
		}
		if _, rest, _ := strings.Cut(string(text), ") "); strings.HasPrefix(rest, "T") {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("server %d does not stop: %s", i, text)
		}
	}
}

// Continue ends a Stop.
func (s *Servers) Continue(i int) { s.signal(i, syscall.SIGCONT) }

func (s *Servers) signal(i int, sig syscall.Signal) {
	s.t.Helper()
	if err := s.all[i].cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Wipe removes what server i, which does not run, has stored.
func (s *Servers) Wipe(i int) {
	s.t.Helper()
	if err := os.RemoveAll(s.all[i].Place.Dir); err != nil {
		s.t.Fatal(err)
	}
}

// URL returns the addresses of some servers; of all without any.
func (s *Servers) URL(of ...int) string {
	if len(of) == 0 {
		for i := range s.all {
			of = append(of, i)
		}
	}
	var out []string
	for _, i := range of {
		x, user := s.all[i], ""
		if x.User != "" {
			user = x.User + ":" + x.Pass + "@"
		}
		out = append(out, fmt.Sprintf("nats://%s%s:%d", user, x.Place.Host, x.Port))
	}
	return strings.Join(out, ",")
}

// Ready waits until the running servers answer requests to JetStream.
func (s *Servers) Ready() {
	s.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; {
		err := s.ask()
		if err == nil || s.all[0].Cert != "" && strings.Contains(err.Error(), "tls:") ||
			s.all[0].Config != "" && errors.Is(err, nats.ErrAuthorization) { // it answers who has no key
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the servers are not ready: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *Servers) ask() error {
	nc, err := nats.Connect(s.URL(), nats.Timeout(time.Second))
	if err != nil {
		return err
	}
	defer nc.Close()
	if s.all[0].NoJetStream {
		return nil
	}
	js, err := nc.JetStream(nats.MaxWait(time.Second))
	if err != nil {
		return err
	}
	_, err = js.AccountInfo()
	return err
}

// LeaderOf returns the server that leads a stream.
func (s *Servers) LeaderOf(stream string) int {
	s.t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := js.StreamInfo(stream)
	if err != nil {
		s.t.Fatal(err)
	}
	for i, x := range s.all {
		if info.Cluster != nil && x.Name == info.Cluster.Leader {
			return i
		}
	}
	s.t.Fatalf("stream %s has no leader", stream)
	return -1
}
