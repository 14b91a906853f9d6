package launch

import (
	"context"
	"io"
	"testing"

	"sluice/engine"
	"sluice/tools/conform"
)

// known is an Afar that has sent some keys.
type known struct {
	keys         map[string]bool
	sends, looks int
}

func (k *known) Launch(_ context.Context, _ string, _ []string, prepare func() (Sent, error), _ Watch) (Back, error) {
	if prepare == nil {
		k.looks++
	} else {
		k.sends++
	}
	return Back{Exit: engine.Exit{Code: 7}}, nil
}
func (*known) Stop(context.Context, string) (*Back, error)        { return nil, nil }
func (k *known) Knows(key string) bool                            { return k.keys[key] }
func (*known) Token(string) string                                { return "" }
func (*known) Get(context.Context, string) (io.ReadCloser, error) { return nil, nil }

// A launch that was on the record before, and that this machine has never sent, may be on a worker
// already: it is looked for, and not sent.
func TestFoundLaunchIsSentOnce(t *testing.T) {
	conform.Rule(t, "13-workers keys", "after a takeover no key is sent a second time")
	t.Parallel()
	const key = "far-1/A#1.1"
	for _, c := range []struct {
		name         string
		l            Order
		own          bool
		sends, looks int
	}{
		{"decided now", Order{Key: key}, false, 1, 0},
		{"found, of another machine", Order{Key: key, Found: true}, false, 0, 1},
		{"found, of this machine", Order{Key: key, Found: true}, true, 1, 0},
	} {
		of := &known{keys: map[string]bool{key: c.own}}
		_, err := Far{&Launches{}, of}.launch(t.Context(), c.l, nil)
		if err != nil || of.sends != c.sends || of.looks != c.looks {
			t.Errorf("%s: sent %d times, looked for %d times, %v", c.name, of.sends, of.looks, err)
		}
	}
}
