package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sluice/internal/fault"
	"sluice/journal"
)

const (
	connectIn = 3 * time.Second // for each server
	requestIn = 2 * time.Second // for each request
	// payloadNeeded is the least that the servers must accept in one message: a line and its headers.
	payloadNeeded = journal.MaxLineBytes + 4<<10
)

// Servers says which servers to use, and how to log in there.
type Servers struct {
	URLs string // nats://a,b,c; the scheme and the user of the first hold for those without one
	NKey string // file with the seed of an nkey; "": what the addresses say
	// Inbox is the prefix of the subjects that the servers and others reply to: an account can give it to
	// this process alone. "" = the client's own.
	Inbox string
	CA    string // file with the certificates that the servers' are checked against; "": the system's
	// Logf receives what the servers report unasked, such as a refused key; nil: it is dropped.
	Logf func(string, ...any)
}

// Conn is a connection to the servers. It reconnects by itself.
type Conn struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	key *key // nil: it has logged in without one
}

// Connect connects to one of the servers.
func Connect(s Servers) (*Conn, error) {
	urls, err := s.list()
	if err != nil {
		return nil, err
	}
	opts := []nats.Option{nats.Name("sluice"), nats.Timeout(connectIn), nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond), nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1),
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2), nats.ErrorHandler(s.hears()),
		nats.SyncQueueLen(8)} // Ask's: by default each has half a megabyte
	k, err := readKey(s.NKey)
	if err != nil {
		return nil, err
	}
	if k != nil {
		opts = append(opts, nats.Nkey(k.public, k.login))
	}
	if s.Inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(s.Inbox))
	}
	if s.CA != "" {
		opts = append(opts, nats.RootCAs(s.CA))
	}
	nc, err := nats.Connect(strings.Join(urls, ","), opts...)
	if err != nil {
		return nil, s.explain(err)
	}
	if most := nc.MaxPayload(); most < payloadNeeded {
		nc.Close()
		return nil, fault.Failed("set `max_payload: 8MB` on every server",
			"the servers accept messages of %d bytes only, and a record may have %d", most, payloadNeeded)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &Conn{nc, js, k}, nil
}

// hears reports what the servers say unasked, what is repeated once: a refused key is tried ten times a second.
func (s Servers) hears() nats.ErrHandler {
	var mu sync.Mutex // guards last
	last := ""
	return func(_ *nats.Conn, _ *nats.Subscription, err error) {
		what := err.Error()
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) {
			what = s.explain(err).Error()
		}
		mu.Lock()
		said := what == last
		last = what
		mu.Unlock()
		if !said && s.Logf != nil {
			s.Logf("the servers: %s", what)
		}
	}
}

// Key returns the public key that signs what this connection asks; "" = nothing is signed.
func (c *Conn) Key() string {
	if c.key == nil {
		return ""
	}
	return c.key.public
}

// Close closes the connection.
func (c *Conn) Close() { c.nc.Close() }

// list returns the addresses, each in full.
func (s Servers) list() ([]string, error) {
	scheme, user := "nats", ""
	var out []string
	for i, one := range strings.Split(s.URLs, ",") {
		if before, rest, ok := strings.Cut(one, "://"); ok {
			scheme, one = before, rest
		} else if i > 0 && user != "" && !strings.Contains(one, "@") {
			one = user + "@" + one
		}
		if at := strings.LastIndex(one, "@"); at >= 0 {
			user = one[:at]
		}
		u, err := url.Parse(scheme + "://" + one)
		if err != nil || u.Hostname() == "" || scheme != "nats" && scheme != "tls" || strings.Trim(u.Path, "/") != "" {
			return nil, fault.Misused("give them as nats://a,b,c or tls://a:4222,b:4222",
				"the servers: address %d names no server", i+1) // it may hold a password
		}
		out = append(out, u.String())
	}
	return out, nil
}

// Hosts returns the servers without users and passwords, for people.
func (s Servers) Hosts() string {
	urls, err := s.list()
	if err != nil {
		return "the servers"
	}
	for i, one := range urls {
		u, _ := url.Parse(one) // list has read it
		urls[i] = u.Host
	}
	return strings.Join(urls, ",")
}

// Typed returns the servers and the other values as the options of a command, without users and passwords.
func (s Servers) Typed() string {
	out := s.Hosts()
	if strings.HasPrefix(s.URLs, "tls://") {
		out = "tls://" + out
	}
	for _, file := range [][2]string{{" --nkey ", s.NKey}, {" --ca ", s.CA}} {
		if file[1] != "" {
			out += file[0] + file[1]
		}
	}
	return out
}

// explain turns an error of the first connection into one for people.
func (s Servers) explain(err error) error {
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired),
		errors.Is(err, nats.ErrNkeysNotSupported):
		return fault.Failed("check --nkey, or user and password in the address, against the servers' accounts",
			"%s: the credentials are refused: %w", s.Hosts(), err)
	case errors.Is(err, nats.ErrNoServers):
		return fault.Failed("check the addresses, and that nats-server runs there", "no server answers at %s", s.Hosts())
	}
	return fault.Failed("check the addresses, and that nats-server runs there", "%s: %w", s.Hosts(), err)
}

// why describes an error of a request to JetStream, for people.
func why(err error) string {
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return "JetStream is not enabled on the servers, or not for this account"
	case errors.Is(err, nats.ErrConnectionReconnecting), errors.Is(err, nats.ErrReconnectBufExceeded),
		errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected):
		return "no server can be reached"
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, jetstream.ErrNoStreamResponse):
		return "no answer: fewer than half of the servers are up, they are choosing a leader, or none has JetStream"
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return "the servers refuse it: " + api.Description
	}
	return err.Error()
}

// Listen has what is published to a subject sent to a channel; what finds it full is lost.
func (c *Conn) Listen(subject string, to chan *nats.Msg) (*nats.Subscription, error) {
	return c.nc.ChanSubscribe(subject, to)
}

// Ask sends a request, signed if this connection has a key, and returns the first answer. Each is
// answered under a subject of its own, which is signed with it. It is random: the client's own inboxes are
// counted, so that who is asked once could send answers in the name of others.
func (c *Conn) Ask(ctx context.Context, subject string, data []byte) ([]byte, error) {
	m := nats.NewMsg(subject)
	m.Data, m.Reply = data, nats.InboxPrefix+rand.Text()
	if c.key != nil {
		if err := c.key.sign(m); err != nil {
			return nil, err
		}
	}
	sub, err := c.nc.SubscribeSync(m.Reply)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // a late answer is dropped
	if err := c.nc.PublishMsg(m); err != nil {
		return nil, err
	}
	answer, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return nil, err
	}
	return answer.Data, nil
}

// Say publishes to a subject. While no server can be reached it is lost.
func (c *Conn) Say(subject string, data []byte) error {
	if err := c.nc.Publish(subject, data); err != nil {
		return errors.New(why(err))
	}
	return nil
}
