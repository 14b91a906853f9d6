package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"sluice/tools/conform"
	"sluice/tools/natstest"
)

const packsID = "0123456789abcdef0123456789abcdef"

func newPacks(t *testing.T, urls string, replicas int) *Packs {
	t.Helper()
	p := newMachine(t, "a", urls).conn.Packs(packsID, replicas)
	p.Patience = 2 * time.Second
	return p
}

func bytesOf(seed uint64, n int) []byte {
	data := make([]byte, n)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	return data
}

func hexOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (p *Packs) mustPut(t *testing.T, data []byte) string {
	t.Helper()
	digest, err := p.Put(t.Context(), bytes.NewReader(data))
	if err != nil || digest != hexOf(data) {
		t.Fatalf("%s, %v", digest, err)
	}
	return digest
}

func (p *Packs) has(ctx context.Context, digest string, want []byte) error {
	f, err := p.Get(ctx, digest)
	if err != nil {
		return err
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes, want %d: %w", len(got), len(want), err)
	}
	return nil
}

// unfit checks that an error says that the servers have nothing that can be used.
func unfit(t *testing.T, err error, want string) {
	t.Helper()
	var u *Unfit
	if !errors.As(err, &u) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// What one machine stores is read through another server at once, also while it is stored again.
func TestPacksThroughAnotherServer(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 3)
	a, b := newPacks(t, servers.URL(0), 3), newPacks(t, servers.URL(1), 3)
	b.Patience = patience // a loaded server may be silent for a while
	for i := range 60 {
		data := bytesOf(uint64(i), 1+i*10_000)
		digest := a.mustPut(t, data)
		again := make(chan error, 1)
		go func() {
			_, err := a.Put(t.Context(), bytes.NewReader(data))
			again <- err
		}()
		if err := errors.Join(b.has(t.Context(), digest, data), <-again); err != nil {
			t.Fatalf("object %d: %v", i, err)
		}
		name := fmt.Sprintf("work/%d", i)
		if err := a.Name(t.Context(), name, digest); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Named(t.Context(), name); err != nil || got != digest {
			t.Fatalf("%s stands for %s, want %s: %v", name, got, digest, err)
		}
	}
	info, err := a.js.Stream(t.Context(), "OBJ_"+packPrefix+packsID)
	if err != nil || info.CachedInfo().Config.Replicas != 3 {
		t.Errorf("%v, %v", info, err)
	}
}

// What is missing or another is read again for a while, and never returned.
func TestPacksUnfit(t *testing.T) {
	conform.Rule(t, "13-cluster packs", "what has another digest is read again, and never returned")
	t.Parallel()
	p := newPacks(t, natstest.Start(t, 1).URL(), 1)
	data, other := bytesOf(1, 300_000), bytesOf(2, 300_000)
	digest := hexOf(data)
	unfit(t, p.has(t.Context(), digest, data), "no such bucket")
	p.mustPut(t, other)
	unfit(t, p.has(t.Context(), digest, data), "do not have it")
	unfit(t, p.has(t.Context(), "../x", nil), "no digest")
	_, err := p.Named(t.Context(), "nothing")
	unfit(t, err, "do not have it")

	// another's bytes under the digest, which the servers themselves find right
	put := func(data []byte) {
		t.Helper()
		if _, err := p.store.Put(t.Context(), jetstream.ObjectMeta{Name: digest}, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	put(other)
	unfit(t, p.has(t.Context(), digest, data), hexOf(other))
	p.mustPut(t, data) // it notices, and stores its own
	if err := p.has(t.Context(), digest, data); err != nil {
		t.Fatal(err)
	}

	// it is right by the time of a later read
	put(other)
	right := time.AfterFunc(500*time.Millisecond, func() { put(data) })
	defer right.Stop()
	short := p.Patience
	p.Patience = time.Minute // it returns as soon as it is right
	if err := p.has(t.Context(), digest, data); err != nil {
		t.Errorf("not read again: %v", err)
	}
	p.Patience = short

	// its parts are gone
	info, err := p.store.GetInfo(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.js.Stream(t.Context(), "OBJ_"+packPrefix+packsID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context(), jetstream.WithPurgeSubject("$O."+packPrefix+packsID+".C."+info.NUID)); err != nil {
		t.Fatal(err)
	}
	unfit(t, p.has(t.Context(), digest, data), "or not all")

	// a name of something else
	if _, err := p.store.Put(t.Context(), jetstream.ObjectMeta{Name: "odd",
		Metadata: map[string]string{standsIn: "x"}}, nil); err != nil {
		t.Fatal(err)
	}
	_, err = p.Named(t.Context(), "odd")
	unfit(t, err, "no digest")
	if what := p.Stalled(); what != "" {
		t.Errorf("it waits for %q", what)
	}
}

// What a worker writes of an object is not believed: neither a link to another object or to itself, nor parts under a
// name that is none. What has the wrong size is read all the same.
func TestPacksMisdescribed(t *testing.T) {
	t.Parallel()
	p := newPacks(t, natstest.Start(t, 1).URL(), 1)
	data := bytesOf(1, 300_000)
	digest, other := p.mustPut(t, data), p.mustPut(t, bytesOf(2, 100))
	was, err := p.store.GetInfo(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	link := func(to string) *jetstream.ObjectMetaOptions {
		return &jetstream.ObjectMetaOptions{Link: &jetstream.ObjectLink{Bucket: p.bucket, Name: to}}
	}
	meta := jetstream.ObjectMeta{Name: digest}
	for name, c := range map[string]struct {
		info jetstream.ObjectInfo
		want string // "" = it is read
	}{
		"a link to itself":    {jetstream.ObjectInfo{NUID: "x", Size: 1, ObjectMeta: jetstream.ObjectMeta{Opts: link(digest)}}, "or not all"},
		"a link":              {jetstream.ObjectInfo{NUID: "x", ObjectMeta: jetstream.ObjectMeta{Opts: link(other)}}, "their SHA-256"},
		"no parts":            {jetstream.ObjectInfo{Size: 1, ObjectMeta: meta}, "no parts"},
		"parts of two":        {jetstream.ObjectInfo{NUID: "*", Size: 1, ObjectMeta: meta}, "no parts"},
		"a long name":         {jetstream.ObjectInfo{NUID: strings.Repeat("x", 100_000), Size: 1, ObjectMeta: meta}, "no parts"},
		"a size that is less": {jetstream.ObjectInfo{NUID: was.NUID, Size: 1, ObjectMeta: meta}, ""},
		"a size that is more": {jetstream.ObjectInfo{NUID: was.NUID, Size: 1 << 60, ObjectMeta: meta}, ""},
	} {
		text, err := json.Marshal(c.info)
		if err != nil {
			t.Fatal(err)
		}
		subject := "$O." + p.bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(digest))
		if _, err := p.js.Publish(t.Context(), subject, text); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*p.Patience)
		err = p.has(ctx, digest, data)
		cancel()
		if u := (*Unfit)(nil); c.want == "" && err != nil || c.want != "" && !errors.As(err, &u) ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What is stored once is not sent again.
func TestPacksNeverOverwritten(t *testing.T) {
	t.Parallel()
	p := newPacks(t, natstest.Start(t, 1).URL(), 1)
	data := bytesOf(1, 100_000)
	digest := p.mustPut(t, data)
	before, err := p.store.GetInfo(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	p.mustPut(t, data)
	if after, err := p.store.GetInfo(t.Context(), digest); err != nil || after.NUID != before.NUID {
		t.Errorf("it was sent again: %v, %v", after, err)
	}
}

// Sizes are bounded, on both ways.
func TestPacksBounds(t *testing.T) {
	t.Parallel()
	p := newPacks(t, natstest.Start(t, 1).URL(), 1)
	data := bytesOf(1, 5000)
	digest := p.mustPut(t, data)
	p.most = 4999
	if _, err := p.Put(t.Context(), bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), "more than 4999 bytes") {
		t.Errorf("stored: %v", err)
	}
	unfit(t, p.has(t.Context(), digest, data), "more than 4999 bytes")
	p.most = 5000
	if err := p.has(t.Context(), digest, data); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	if _, err := p.Put(t.Context(), io.MultiReader(bytes.NewReader(data), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("half of it is stored: %v", err)
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// While no server answers, calls wait and say so; they go on by themselves, or end with their context.
func TestPacksWait(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, 1)
	p := newPacks(t, servers.URL(), 1)
	data := bytesOf(1, 100_000)
	digest := p.mustPut(t, data)
	servers.Stop(0)
	within, cancel := context.WithTimeout(t.Context(), 2*p.Patience)
	defer cancel()
	var u *Unfit
	if err := p.has(within, digest, data); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &u) {
		t.Errorf("silence proves nothing, and %v", err)
	}
	done := make(chan error, 2)
	more := bytesOf(2, 100_000)
	go func() { _, err := p.Put(t.Context(), bytes.NewReader(more)); done <- err }()
	go func() { done <- p.has(t.Context(), digest, data) }()
	for until := time.Now().Add(time.Minute); p.Stalled() == ""; time.Sleep(retryAfter) {
		if time.Now().After(until) {
			t.Fatal("nobody is told that it waits")
		}
	}
	servers.Continue(0)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := p.has(t.Context(), hexOf(more), more); err != nil || p.Stalled() != "" {
		t.Errorf("%q, %v", p.Stalled(), err)
	}
}
