package workers

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"sluice/agents/launch"
	"sluice/internal/cluster"
	"sluice/tools/conform"
	"sluice/tools/natstest"
)

// account is the workers' account, with its users as docs/workers.md has them set up.
type account struct {
	*natstest.Servers
	t      *testing.T
	file   map[string]string // of a user's seed
	public map[string]string
	state  map[string]string // of a worker
	id     map[string]string
}

const testBucket = "SLUICE_LAUNCHES_" + testJournal

// newAccount returns the account of a desk and two workers, good and bad.
func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{t: t, file: map[string]string{}, public: map[string]string{}, state: map[string]string{}, id: map[string]string{}}
	for _, name := range []string{"desk", "good", "bad"} {
		pair, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		seed, err := pair.Seed()
		if err != nil {
			t.Fatal(err)
		}
		a.file[name] = filepath.Join(t.TempDir(), name+".nk")
		if err := os.WriteFile(a.file[name], seed, 0o600); err != nil {
			t.Fatal(err)
		}
		if a.public[name], err = cluster.PublicKey(a.file[name]); err != nil {
			t.Fatal(err)
		}
		a.state[name] = t.TempDir()
		if a.id[name], err = ID(a.state[name]); err != nil {
			t.Fatal(err)
		}
	}
	a.Servers = natstest.Start(t, 1, natstest.Config(fmt.Sprintf("accounts { WORKERS: { jetstream: enabled, users: [\n{nkey: %s}\n%s%s] } }",
		a.public["desk"], Rights(a.public["good"], a.id["good"], testJournal), Rights(a.public["bad"], a.id["bad"], testJournal))))
	js, err := jetstream.New(a.nats("desk", func(error) {}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: testBucket}); err != nil {
		t.Fatal(err)
	}
	return a
}

// hire has the good worker work.
func (a *account) hire(m Maker, logf func(string, ...any)) (p *Post, stop func()) {
	a.t.Helper()
	return hireAs(a.t, PostOptions{Conn: a.as("good"), State: a.state["good"], Slots: 3, Maker: m, Logf: logf,
		Desks: []string{a.public["desk"]}}, nil)
}

// as returns a connection of sluice.
func (a *account) as(name string) *cluster.Conn {
	a.t.Helper()
	s := cluster.Servers{URLs: a.URL(), NKey: a.file[name]}
	if name != "desk" {
		s.Inbox = Inbox(a.id[name])
	}
	return connectTo(a.t, s)
}

// nats returns a plain connection; failed is called with what the servers do not permit.
func (a *account) nats(name string, failed func(error)) *nats.Conn {
	a.t.Helper()
	key, err := nats.NkeyOptionFromSeed(a.file[name])
	if err != nil {
		a.t.Fatal(err)
	}
	opts := []nats.Option{key, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { failed(err) })}
	if name != "desk" {
		opts = append(opts, nats.CustomInboxPrefix(Inbox(a.id[name])))
	}
	nc, err := nats.Connect(a.URL(), opts...)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(nc.Close)
	return nc
}

// attacker has the key of the second worker.
type attacker struct {
	*account
	nc   *nats.Conn
	n    int
	mu   sync.Mutex // guards not
	not  []string   // what the servers did not permit
	came map[string]int
}

func (a *account) attacks() *attacker {
	x := &attacker{account: a, came: map[string]int{}}
	x.nc = a.nats("bad", func(err error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.not = append(x.not, err.Error())
	})
	spy := a.nats("desk", func(error) {})
	for _, subject := range []string{"order", "beat"} {
		_, err := spy.Subscribe(prefix+a.id["good"]+"."+subject, func(m *nats.Msg) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.came[m.Header.Get("X")]++
		})
		if err != nil {
			a.t.Fatal(err)
		}
	}
	if err := spy.Flush(); err != nil {
		a.t.Fatal(err)
	}
	return x
}

func (x *attacker) arrived(name string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.came[name]
}

// refused waits until the servers have refused what names a subject.
func (x *attacker) refused(what, subject string) {
	x.t.Helper()
	until(x.t, "the servers refuse: "+what, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return slices.ContainsFunc(x.not, func(s string) bool {
			return strings.Contains(s, "ermissions Violation") && strings.Contains(s, `"`+subject+`"`)
		})
	})
}

func (x *attacker) publish(subject, reply string, data []byte, header nats.Header) {
	x.t.Helper()
	if err := x.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: data, Header: header}); err != nil {
		x.t.Fatal(err)
	}
}

// stores stores bytes in the bucket, under a subject that is returned.
func (x *attacker) stores(data []byte, header nats.Header) (subject string) {
	x.t.Helper()
	x.n++
	subject = fmt.Sprintf("$O.%s.C.x%d", testBucket, x.n)
	if _, err := x.nc.RequestMsg(&nats.Msg{Subject: subject, Data: data, Header: header}, 10*time.Second); err != nil {
		x.t.Fatal(err)
	}
	return subject
}

// reach returns the ways to have a server send bytes of the attacker's to a subject that it may not
// publish to, with requests that it may make.
func (x *attacker) reach() map[string]func(to string, data []byte, h nats.Header) {
	stream := "OBJ_" + testBucket
	return map[string]func(to string, data []byte, h nats.Header){
		"direct get": func(to string, data []byte, h nats.Header) {
			x.publish("$JS.API.DIRECT.GET."+stream+"."+x.stores(data, h), to, nil, nil)
		},
		"deliver subject": func(to string, data []byte, h nats.Header) {
			filter, name := x.stores(data, h), fmt.Sprintf("c%d", x.n)
			config := fmt.Sprintf(`{"stream_name":%q,"config":{"name":%q,"deliver_subject":%q,"filter_subject":%q,
				"deliver_policy":"all","ack_policy":"none","replay_policy":"instant"}}`, stream, name, to, filter)
			x.publish("$JS.API.CONSUMER.CREATE."+stream+"."+name+"."+filter, x.nc.NewInbox(), []byte(config), nil)
		},
		"acknowledgement": func(to string, data []byte, h nats.Header) {
			x.n++
			x.publish(fmt.Sprintf("$O.%s.C.x%d", testBucket, x.n), to, data, h)
		},
	}
}

// signedBy signs a request with somebody's key, as who may give orders does.
func (x *attacker) signedBy(name, reply string, data []byte) string {
	x.t.Helper()
	seed, err := os.ReadFile(x.file[name])
	if err != nil {
		x.t.Fatal(err)
	}
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		x.t.Fatal(err)
	}
	sum, err := pair.Sign(slices.Concat([]byte("sluice request\n"+prefix+x.id["good"]+orderEnd+"\n"+reply+"\n"), data))
	if err != nil {
		x.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(sum)
}

// orders are what the attacker would have the first worker do.
func orders(t *testing.T) map[string][]byte {
	t.Helper()
	other := sentFor("far-7/A#1.1")
	out := map[string][]byte{}
	for _, c := range []call{{Do: doLaunch, Key: other.Key, Sent: &other}, {Do: doAsk, Key: testKey}, {Do: doStop, Key: testKey},
		{Do: doDrop, Key: testKey}, {Do: doDrain}, {Do: doGreet, Epoch: 1 << 60}} {
		c.Wire, c.Journal, c.Epoch, c.At = versions().Newest, testJournal, max(c.Epoch, 1), time.Now()
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		out[c.Do] = data
	}
	return out
}

// One worker's key gives no orders to another: not directly, not as the reply or deliver subject of a
// request that it may make, not with a signature of its own, nor with one of the desk for another
// answer. What the first worker does goes on, and its result counts.
func TestAnotherWorkersKey(t *testing.T) {
	conform.Rule(t, "13-workers rights", "a worker's key: orders, stops and drains by each allowed request, in another's name: nothing counts")
	conform.Rule(t, "13-workers catcher", "each allowed request with its reply or deliver subject set to another's orders or heartbeats")
	t.Parallel()
	a := newAccount(t)
	m, out := newMaker(), &log{}
	b := newBenchOver(t, a.as("desk"), 1)
	p, _ := a.hire(m, out.logf)
	back := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })

	x, subject := a.attacks(), prefix+a.id["good"]+orderEnd
	answers, err := x.nc.SubscribeSync(Inbox(a.id["bad"]) + ".got")
	if err != nil {
		t.Fatal(err)
	}
	inbox := Inbox(a.id["bad"]) + ".got"
	var sent []string
	for do, data := range orders(t) {
		x.publish(subject, inbox, data, nil)
		for way, reaches := range x.reach() {
			for by, sign := range map[string]string{"nobody": "", "itself": x.signedBy("bad", "", data),
				"the desk, for another answer": x.signedBy("desk", b.conn.Key(), data)} {
				name := strings.Join([]string{do, way, by}, "/")
				sent = append(sent, name)
				reaches(subject, data, nats.Header{"X": {name}, "Sluice-Sign": {sign}})
			}
		}
	}
	x.refused("an order", subject)
	for _, name := range sent {
		if !strings.Contains(name, "/acknowledgement/") { // of these only the servers' own words come
			until(t, name+" comes", func() bool { return x.arrived(name) > 0 })
		}
	}
	// what it had, it has
	a2, err := b.ask(t.Context(), p.ID(), call{Do: doAsk, Key: testKey})
	if err != nil || a2.Is != isRunning {
		t.Errorf("%+v, %v", a2, err)
	}
	if m, err := answers.NextMsg(100 * time.Millisecond); err == nil {
		t.Errorf("it is answered: %s", m.Data)
	}
	p.mu.Lock()
	if len(p.keys) != 1 || p.keys[testKey].Stopped || p.drains.Drains || p.epoch != 1 {
		t.Errorf("it has obeyed: %v %v, epoch %d", slices.Collect(maps.Keys(p.keys)), p.drains, p.epoch)
	}
	p.mu.Unlock()
	if !strings.Contains(out.String(), "none of the keys that this worker obeys") {
		t.Errorf("not reported: %s", out)
	}
	close(m.ends)
	if x := within(t, back).Exit; x.Code != 7 {
		t.Errorf("%+v", x)
	}
}

// Heartbeats that another worker has sent in a worker's name neither keep a launch of it nor lose it.
// A guessed acknowledgement, a result and the consumers of others are out of reach.
func TestHeartbeatInAnothersName(t *testing.T) {
	conform.Rule(t, "13-workers catcher", "heartbeats in another's name keep no launch alive and lose none; a guessed acknowledgement does not arrive")
	t.Parallel()
	a := newAccount(t)
	m := newMaker()
	b := newBenchOver(t, a.as("desk"), 1)
	_, stop := a.hire(m, t.Logf)
	back := b.launches(testKey, launch.Watch{})
	until(t, "it is made", func() bool { return m.begun(testKey) == 1 })
	x, subject := a.attacks(), prefix+a.id["good"]+beatEnd
	forges := func(name string, launches []Doing) {
		data, err := json.Marshal(Beat{Worker: a.id["good"], Name: "w", Journal: testJournal, Versions: versions(), Labels: []string{"linux"}, Slots: 1,
			At: time.Now().Add(time.Hour), Launches: launches})
		if err != nil {
			t.Fatal(err)
		}
		for _, reaches := range x.reach() {
			reaches(subject, data, nats.Header{"X": {name}})
		}
	}
	end := time.Now().Add(2 * b.silence())
	for time.Now().Before(end) { // it lives, and others say that it has nothing
		forges("none", nil)
		rest(t)
	}
	if x.arrived("none") == 0 {
		t.Fatal("no forged heartbeat comes")
	}
	select {
	case got := <-back:
		t.Fatalf("it is lost: %+v", got)
	default:
	}
	for _, subject := range []string{subject, "$JS.ACK.OBJ_" + testBucket + ".c.1.1.1.1.0", nats.NewInbox()} {
		x.publish(subject, "", []byte(`{"is":"ended"}`), nil)
		x.refused("a heartbeat, an acknowledgement, an answer", subject)
	}
	if _, err := x.nc.SubscribeSync(prefix + ">"); err != nil {
		t.Fatal(err)
	}
	x.refused("to read orders", prefix+">")

	stop() // it is dead, and others say that it works
	for lost := false; !lost; {
		forges("all", []Doing{{Key: testKey, Since: time.Now(), Mark: strings.Repeat("0", markLen)}})
		select {
		case got := <-back:
			if lost = true; !got.Exit.Lost {
				t.Errorf("%+v", got)
			}
		default:
			if rest(t); time.Now().After(end.Add(time.Minute)) {
				t.Fatal("forged heartbeats keep the launch of a dead worker")
			}
		}
	}
}

// Nor do they lose one of a live worker that a machine which has just taken over looks for.
func TestTakeoverAmongForgedHeartbeats(t *testing.T) {
	conform.Rule(t, "13-workers catcher", "heartbeats in another's name hide no launch from a machine that takes over")
	t.Parallel()
	a := newAccount(t)
	m := newMaker()
	old := newBenchOver(t, a.as("desk"), 1)
	_, _ = a.hire(m, t.Logf)
	old.sends(m, testKey)
	x, subject := a.attacks(), prefix+a.id["good"]+beatEnd
	data, err := json.Marshal(Beat{Worker: a.id["good"], Name: "w", Journal: testJournal, Versions: versions(), Labels: []string{"linux"}, Slots: 1,
		At: time.Now().Add(time.Hour), Epoch: 2, Launches: []Doing{{Key: testKey, Mark: strings.Repeat("0", markLen)}}})
	if err != nil {
		t.Fatal(err)
	}
	forged := "$JS.API.DIRECT.GET.OBJ_" + testBucket + "." + x.stores(data, nats.Header{"X": {"none"}})
	x.publish(forged, subject, nil, nil)
	until(t, "a forged heartbeat comes", func() bool { return x.arrived("none") > 0 })
	b := newBenchOver(t, a.as("desk"), 2)
	back := b.found(testKey)
	for end := time.Now().Add(time.Minute); !b.Knows(testKey); {
		if time.Now().After(end) {
			t.Fatal("it is looked for, and neither found nor given up")
		}
		for range 20 { // the newest heartbeat in its name is forged, nearly always
			x.publish(forged, subject, nil, nil)
		}
		<-time.After(2 * time.Millisecond)
	}
	close(m.ends)
	if x := within(t, back).Exit; x.Code != 7 || x.Lost {
		t.Errorf("%+v", x)
	}
}

// A worker that names many launches, and answers nothing, costs the desk one request at a time.
func TestHeartbeatsOfManyLaunches(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	b := newBench(t, s, 1)
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	const worker = "0123456789abcdef"
	if _, err := nc.Subscribe(prefix+worker+orderEnd, func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	for slots := 1; slots <= 5; slots++ {
		beat := Beat{Worker: worker, Journal: testJournal, Versions: versions(), Labels: []string{"linux"}, Slots: slots, Epoch: 1}
		for n := range 200 {
			beat.Launches = append(beat.Launches, Doing{Key: fmt.Sprintf("far-%d/A#1.%d", slots, n+1)})
		}
		data, err := json.Marshal(beat)
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Publish(prefix+worker+beatEnd, data); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the last is heard", func() bool {
		last, _ := b.of(worker)
		return last.Slots == 5
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.asks) > 1 {
		t.Errorf("%d requests at once", len(b.asks))
	}
}

// rest waits a little between two forgeries.
func rest(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(20 * time.Millisecond):
	case <-t.Context().Done():
	}
}

// The document has a worker's rights as it prints them.
func TestRightsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/workers.md")
	if err != nil {
		t.Fatal(err)
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	_, want, _ := strings.Cut(Rights("UC…", "<id>", "<ID>"), "publish:")
	if !strings.Contains(words(string(page)), words(want)) {
		t.Errorf("docs/workers.md lacks\n%s", want)
	}
}

// What another worker has stored under the digest of an order's commits is never read as these.
func TestStoredInAnothersPlace(t *testing.T) {
	conform.Rule(t, "13-workers packs", "what another worker has put in a pack's place is not read")
	t.Parallel()
	a := newAccount(t)
	good, x := a.as("good").Launches(testJournal, nil), a.attacks()
	good.Patience = time.Second
	want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // some chunks
	digest, err := good.Put(t.Context(), bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	in, err := a.as("desk").Launches(testJournal, nil).Get(t.Context(), digest)
	if err != nil {
		t.Fatalf("what a worker stores with its rights: %v", err)
	}
	_ = in.Close()
	js, err := jetstream.New(x.nc)
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.ObjectStore(t.Context(), testBucket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutBytes(t.Context(), digest, []byte("evil")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	in, err = good.Get(ctx, digest)
	if unfit := (*cluster.Unfit)(nil); err == nil || !errors.As(err, &unfit) {
		t.Errorf("it is read: %v", err)
	}
	if err == nil {
		_ = in.Close()
	}
	if again, err := good.Put(t.Context(), bytes.NewReader(want)); err != nil || again != digest {
		t.Errorf("it cannot be stored again: %v", err)
	}
	if in, err = good.Get(ctx, digest); err != nil {
		t.Errorf("it is not read once it is stored again: %v", err)
	} else {
		_ = in.Close()
	}
}
