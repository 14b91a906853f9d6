package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"sluice/internal/fault"
	"sluice/journal"
)

// TestRefusalKeepsItsAdvice: what the API refuses comes back with its advice apart, so that nobody
// looks for it in a sentence.
func TestRefusalKeepsItsAdvice(t *testing.T) {
	s := serveTest(t, t.TempDir(), newStage())
	_, err := s.client.Run(context.Background(), "none-1")
	if err == nil || err.Error() != "no run none-1 is known here: sluice ls names them" {
		t.Fatalf("%v", err)
	}
	if what, advice := fault.Split(err); what != "no run none-1 is known here" || advice != "sluice ls names them" {
		t.Errorf("%q, %q", what, advice)
	}
}

// TestPingOfAProcessThatEnds: its socket still takes connections, cuts them, and is gone.
func TestPingOfAProcessThatEnds(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range 3 {
			if conn, err := l.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 1)) // what is left unread is a reset
				conn.Close()
			}
		}
		l.Close()
	}()
	c := NewClient(dir)
	defer c.Close()
	if _, err := c.Ping(context.Background()); !errors.Is(err, ErrNotServed) {
		t.Errorf("%v", err)
	}
}

// TestDaemonThatHangs: the kernel accepts connections for a stopped process. A request to the daemon fails; one to a repo
// has the time that its caller sets.
func TestDaemonThatHangs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "daemon."+SocketName)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := newClient(socket, time.Millisecond)
	defer c.Close()
	_, err = c.Repos(ctx)
	if what, advice := fault.Split(err); what != "the daemon does not answer" || advice == "" {
		t.Errorf("%q, %q", what, advice)
	}
	of := func(c *Client) time.Duration { return c.http.Transport.(*http.Transport).ResponseHeaderTimeout }
	if of(NewDaemonClient(t.TempDir())) == 0 || of(NewClient(t.TempDir())) != 0 {
		t.Error("a list of the daemon has no end, or an event of a repo has one")
	}
}

// TestAnswersLength: what an answer says of its length is no reason to make room for it.
func TestAnswersLength(t *testing.T) {
	for head, want := range map[string]bool{
		"Content-Length: 9223372036854775000": false, // it is cut
		"Content-Length: 12":                  true,
		"Connection: close":                   true,
	} {
		dir := t.TempDir()
		l, err := net.Listen("unix", filepath.Join(dir, SocketName))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer l.Close()
			if conn, err := l.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+head+"\r\n\r\n{\"pid\":1234}")
				conn.Close()
			}
		}()
		c := NewClient(dir)
		var p Ping
		if err := c.ask(t.Context(), "GET", "/v1/ping", nil, &p); (err == nil) != want {
			t.Errorf("%s: %+v %v", head, p, err)
		}
		c.Close()
	}
}

// TestFactsOfChildRuns: a run's facts include those of its child runs, whoever reads the journal.
func TestFactsOfChildRuns(t *testing.T) {
	state := t.TempDir()
	log, _, err := journal.Open(state, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var facts []json.RawMessage
	for _, run := range []string{"w-1", "w-1.T1.1", "w-1.T1.1.T2.3", "w-11", "w-2.T1.1"} {
		facts = append(facts, json.RawMessage(`{"kind":"run_began","run":"`+run+`"}`))
	}
	if _, _, err := log.Append(journal.Entry{At: time.Now(), Event: json.RawMessage(`{}`), Facts: facts}); err != nil {
		t.Fatal(err)
	}
	r := &Reader{c: &core{log: log}}
	for run, want := range map[string]int{"": 5, "w-1": 3, "w-1.T1.1": 2, "w-11": 1, "w-2": 1, "w-3": 0} {
		n := 0
		if err := r.Facts(run, 1, func(Line) error { n++; return nil }); err != nil || n != want {
			t.Errorf("%q: %d facts (%v), want %d", run, n, err, want)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}
