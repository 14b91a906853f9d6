package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// What is printed to be typed next has the encryption and the key that were given, and no password.
func TestTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   Servers
		want string
	}{
		{Servers{URLs: "nats://a,b:4223"}, "a,b:4223"},
		{Servers{URLs: "tls://u:secret@a,b", NKey: "daemon.nk", CA: "ca.pem"}, "tls://a,b --nkey daemon.nk --ca ca.pem"},
	} {
		if got := c.of.Typed(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// What the servers say unasked is reported with what to do, and not again while they repeat it.
func TestServersAreHeardOnce(t *testing.T) {
	t.Parallel()
	var said []string
	hear := Servers{URLs: "nats://a", Logf: func(f string, a ...any) { said = append(said, fmt.Sprintf(f, a...)) }}.hears()
	for range 3 {
		hear(nil, nil, nats.ErrAuthorization)
	}
	hear(nil, nil, errors.New("permissions violation"))
	hear(nil, nil, nats.ErrAuthorization)
	if len(said) != 3 || !strings.Contains(said[0], "a: the credentials are refused") || !strings.Contains(said[0], "check --nkey") ||
		!strings.Contains(said[1], "violation") || !slices.Contains(said[2:], said[0]) {
		t.Errorf("%q", said)
	}
	Servers{URLs: "nats://a"}.hears()(nil, nil, nats.ErrAuthorization) // nobody hears it
}
